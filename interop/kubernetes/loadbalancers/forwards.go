// What the rules do, without nftables: which address and port leads to which endpoints.

package loadbalancers

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// forward sends the traffic of an address and a port to endpoints.
type forward struct {
	address  netip.Addr
	port     uint16
	protocol corev1.Protocol
	// endpoints are sorted. Without endpoints, connections are refused.
	endpoints []netip.AddrPort
}

// serviceForwards returns the forwards of the Service's cluster IP, and of its load balancer's address.
func serviceForwards(
	service *corev1.Service, address netip.Addr, balanced bool, endpointSlices []*discoveryv1.EndpointSlice,
) []forward {
	var addresses []netip.Addr
	if clusterIP, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && clusterIP.Is4() {
		addresses = append(addresses, clusterIP)
	}
	if balanced {
		addresses = append(addresses, address)
	}
	var forwards []forward
	for _, port := range service.Spec.Ports {
		if port.Protocol != corev1.ProtocolTCP && port.Protocol != corev1.ProtocolUDP {
			continue
		}
		endpoints := portEndpoints(port, endpointSlices)
		for _, address := range addresses {
			forwards = append(forwards, forward{address, uint16(port.Port), port.Protocol, endpoints})
		}
	}
	return forwards
}

// portEndpoints returns the ready endpoints of a Service's port. The name connects the port with those of slices.
func portEndpoints(port corev1.ServicePort, endpointSlices []*discoveryv1.EndpointSlice) []netip.AddrPort {
	var found []netip.AddrPort
	for _, slice := range endpointSlices {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, candidate := range slice.Ports {
			if candidate.Port == nil || value(candidate.Name) != port.Name || protocol(candidate.Protocol) != port.Protocol {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
					continue
				}
				for _, address := range endpoint.Addresses {
					if parsed, err := netip.ParseAddr(address); err == nil {
						found = append(found, netip.AddrPortFrom(parsed, uint16(*candidate.Port)))
					}
				}
			}
		}
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return slices.Compact(found)
}

func value(name *string) string {
	if name == nil {
		return ""
	}
	return *name
}

func protocol(p *corev1.Protocol) corev1.Protocol {
	if p == nil {
		return corev1.ProtocolTCP
	}
	return *p
}
