package loadbalancers

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func slice(name string, port int32, ready bool, addresses ...string) *discoveryv1.EndpointSlice {
	protocol := corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return s
}

func TestTrafficGoesToTheReadyEndpointsOfTheNamedPort(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{
		ClusterIP: "10.96.0.7",
		Ports: []corev1.ServicePort{
			{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP},
			{Name: "other", Port: 81, Protocol: corev1.ProtocolTCP},
		},
	}}
	forwards := serviceForwards(service, netip.MustParseAddr("10.245.0.1"), true, []*discoveryv1.EndpointSlice{
		slice("web", 3000, true, "10.244.0.3", "10.244.0.2"),
		slice("web", 3000, false, "10.244.0.4"),
	})
	rules := ruleset(forwards)
	for _, want := range []string{
		"ip daddr 10.96.0.7 tcp dport 80 dnat ip to numgen random mod 2 map { 0 : 10.244.0.2 . 3000, 1 : 10.244.0.3 . 3000 }\n",
		"ip daddr 10.245.0.1 tcp dport 80 dnat ip to numgen random mod 2 map",
		"ip daddr { 10.96.0.0/16, 10.245.0.0/16 } reject\n",
		"{ 10.244.0.2 . 10.244.0.2, 10.244.0.3 . 10.244.0.3 } snat to 10.244.0.1",
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("%q is missing in:\n%s", want, rules)
		}
	}
	for _, unwanted := range []string{"10.244.0.4", "dport 81"} {
		if strings.Contains(rules, unwanted) {
			t.Errorf("%q is in:\n%s", unwanted, rules)
		}
	}
}
