// The rules of nftables and the routes that bring traffic to them.

package loadbalancers

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir.test/interop/kubernetes/cluster"
)

// addRoutes makes all addresses of Services local to this network namespace. A process of the namespace then
// connects from the Node's address, and a port without a Service refuses connections.
func addRoutes() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	for _, prefix := range []netip.Prefix{cluster.Services, cluster.LoadBalancers} {
		route := &netlink.Route{
			LinkIndex: lo.Attrs().Index,
			Table:     unix.RT_TABLE_LOCAL,
			Type:      unix.RTN_LOCAL,
			Scope:     netlink.SCOPE_HOST,
			Dst:       &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), 32)},
			Src:       cluster.Node.AsSlice(),
		}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route to %s: %w; nodes must be started first, it adds %s", prefix, err, cluster.Node)
		}
	}
	return nil
}

// ruleset returns the whole table. Its first lines replace the old table in the same transaction.
func ruleset(forwards []forward) string {
	var rules strings.Builder
	rules.WriteString("table ip weir-services\ndelete table ip weir-services\ntable ip weir-services {\n\tchain services {\n")
	for _, f := range forwards {
		if len(f.endpoints) > 0 {
			fmt.Fprintf(&rules, "\t\tip daddr %s %s dport %d %s\n",
				f.address, strings.ToLower(string(f.protocol)), f.port, target(f.endpoints))
		}
	}
	rules.WriteString(`	}
	chain prerouting {
		type nat hook prerouting priority dstnat;
		jump services
	}
	chain output {
		type nat hook output priority -100;
		jump services
	}
`)
	// Traffic that is forwarded has the endpoint's address when it gets here. What is left has no endpoint. Without
	// this chain, a process of the namespace that listens on 0.0.0.0 would answer.
	services := fmt.Sprintf("ip daddr { %s, %s }", cluster.Services, cluster.LoadBalancers)
	fmt.Fprintf(&rules, `	chain input {
		type filter hook input priority filter;
		%s meta l4proto tcp reject with tcp reset
		%s reject
	}
`, services, services)
	rules.WriteString(hairpin(forwards))
	rules.WriteString("}\n")
	return rules.String()
}

// hairpin returns the chain for Pods that reach themselves through a Service: a Pod would ignore packets from its
// own address, so they come from the Node's.
func hairpin(forwards []forward) string {
	var pairs []string
	for _, f := range forwards {
		for _, endpoint := range f.endpoints {
			address := endpoint.Addr()
			if cluster.Pods.Contains(address) && address != cluster.Node {
				pairs = append(pairs, fmt.Sprintf("%s . %s", address, address))
			}
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	slices.Sort(pairs)
	return fmt.Sprintf(`	chain postrouting {
		type nat hook postrouting priority srcnat;
		ip saddr . ip daddr { %s } snat to %s
	}
`, strings.Join(slices.Compact(pairs), ", "), cluster.Node)
}

// target returns the statement that sends a connection to a random endpoint.
func target(endpoints []netip.AddrPort) string {
	if len(endpoints) == 1 {
		return fmt.Sprintf("dnat to %s", endpoints[0])
	}
	var elements []string
	for i, endpoint := range endpoints {
		elements = append(elements, fmt.Sprintf("%d : %s . %d", i, endpoint.Addr(), endpoint.Port()))
	}
	return fmt.Sprintf("dnat ip to numgen random mod %d map { %s }", len(endpoints), strings.Join(elements, ", "))
}

func apply(ctx context.Context, rules string) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft refused the rules: %w: %s", err, output)
	}
	return nil
}
