// The network of the Pods. Each Pod has a network namespace and a veth pair. Its address is routed through the
// host's end; there is no bridge, so that all traffic between Pods passes the routing and NAT of the cluster's
// namespace, and no source address needs to be rewritten.
//
// The namespaces have no names: the kernel removes them when this process ends.

package nodes

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"weir.test/interop/kubernetes/cluster"
	"weir.test/interop/kubernetes/pool"
)

type network struct {
	addresses *pool.Pool
	links     atomic.Int64
}

// podNetwork is the namespace of one Pod.
type podNetwork struct {
	namespace netns.NsHandle
	address   netip.Addr
	link      netlink.Link
}

// newNetwork prepares the current network namespace for Pods.
func newNetwork() (*network, error) {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return nil, err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, err
	}
	node := &netlink.Addr{IPNet: hostNet(cluster.Node)}
	if err := netlink.AddrReplace(lo, node); err != nil {
		return nil, fmt.Errorf("address %s: %w", cluster.Node, err)
	}
	return &network{addresses: pool.New(cluster.Pods, cluster.Node)}, nil
}

// add creates the namespace of a Pod.
func (n *network) add() (*podNetwork, error) {
	address, err := n.addresses.Take()
	if err != nil {
		return nil, err
	}
	p := &podNetwork{address: address}
	if err := p.create(fmt.Sprintf("pod%d", n.links.Add(1))); err != nil {
		n.remove(p)
		return nil, fmt.Errorf("network namespace for %s: %w", address, err)
	}
	return p, nil
}

// remove deletes what add created.
func (n *network) remove(p *podNetwork) {
	if p.link != nil {
		// It is gone already if the namespace was removed.
		_ = netlink.LinkDel(p.link)
	}
	if p.namespace > 0 {
		p.namespace.Close()
	}
	n.addresses.Release(p.address)
}

func (p *podNetwork) create(name string) error {
	var err error
	if p.namespace, err = newNamespace(); err != nil {
		return err
	}
	veth := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name},
		PeerName:      "eth0",
		PeerNamespace: netlink.NsFd(p.namespace),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	p.link = veth
	if err := p.configureInside(); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{
		LinkIndex: veth.Attrs().Index,
		Dst:       hostNet(p.address),
		Src:       cluster.Node.AsSlice(),
		Scope:     netlink.SCOPE_LINK,
	})
}

func (p *podNetwork) configureInside() error {
	inside, err := netlink.NewHandleAt(p.namespace)
	if err != nil {
		return err
	}
	defer inside.Close()
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := inside.LinkSetUp(lo); err != nil {
		return err
	}
	eth0, err := inside.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := inside.AddrAdd(eth0, &netlink.Addr{IPNet: hostNet(p.address)}); err != nil {
		return err
	}
	if err := inside.LinkSetUp(eth0); err != nil {
		return err
	}
	index := eth0.Attrs().Index
	gateway := &netlink.Route{LinkIndex: index, Dst: hostNet(cluster.Node), Scope: netlink.SCOPE_LINK}
	if err := inside.RouteAdd(gateway); err != nil {
		return err
	}
	everything := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	return inside.RouteAdd(&netlink.Route{LinkIndex: index, Dst: everything, Gw: cluster.Node.AsSlice()})
}

// newNamespace creates a network namespace and returns to the current one.
func newNamespace() (netns.NsHandle, error) {
	runtime.LockOSThread()
	current, err := netns.Get()
	if err != nil {
		return 0, err
	}
	defer current.Close()
	created, err := netns.New()
	if err != nil {
		return 0, err
	}
	// Container runtimes let every user listen on every port, too.
	err = os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0o644)
	if back := unix.Setns(int(current), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked: Go ends it with this goroutine, and runs nothing else in the wrong namespace.
		created.Close()
		return 0, back
	}
	runtime.UnlockOSThread()
	if err != nil {
		created.Close()
		return 0, err
	}
	return created, nil
}

func hostNet(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
