// Package loadbalancers makes Services reachable. It stands in for kube-proxy and for the load-balancer controller of
// a cloud: each Service of type LoadBalancer gets an address, and nftables sends the traffic to its address and to
// its cluster IP to the ready endpoints.
//
// The endpoints are those of the Service's EndpointSlices, no matter who wrote them.
package loadbalancers

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"weir.test/interop/kubernetes/cluster"
	"weir.test/interop/kubernetes/pool"
)

const (
	// settle is the wait for more changes before the rules are written.
	settle = 10 * time.Millisecond
	// retry is the wait after a failed write.
	retry = 500 * time.Millisecond
)

type controller struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	pool     *pool.Pool
	// assigned are the addresses of Services by their UID.
	assigned map[types.UID]netip.Addr
	// refused are the errors of Services that got no address, each logged once.
	refused map[types.UID]string
	rules   string
	changed chan struct{}
}

// Run is the command `loadbalancers`.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("loadbalancers", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "`FILE` with the API server's address and credentials")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	client, err := cluster.Client(*kubeconfig)
	if err != nil {
		return err
	}
	if err := cluster.RequireNamespace(); err != nil {
		return err
	}
	if err := addRoutes(); err != nil {
		return err
	}
	interrupted, stop := cluster.Interrupted()
	defer stop()

	factory := informers.NewSharedInformerFactory(client, 0)
	services, endpointSlices := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	c := &controller{
		client: client, services: services.Lister(), slices: endpointSlices.Lister(),
		pool:     pool.New(cluster.LoadBalancers, cluster.LoadBalancers.Addr()),
		assigned: map[types.UID]netip.Addr{}, refused: map[types.UID]string{},
		changed: make(chan struct{}, 1),
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.wake() },
		UpdateFunc: func(_, _ any) { c.wake() },
		DeleteFunc: func(any) { c.wake() },
	}
	for _, informer := range []cache.SharedIndexInformer{services.Informer(), endpointSlices.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(interrupted.Done())
	factory.WaitForCacheSync(interrupted.Done())
	c.wake()
	c.loop(interrupted)
	return nil
}

func (c *controller) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// loop brings addresses and rules up to date after each change.
func (c *controller) loop(ctx context.Context) {
	ready := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		wait := settle
		err := c.update(ctx)
		if err != nil && ctx.Err() == nil {
			log.Printf("the Services could not be updated; trying again: %v", err)
			c.wake()
			wait = retry
		}
		if err == nil && !ready {
			ready = true
			// scripts/kubernetes-cluster waits for this line.
			log.Print("loadbalancers: ready")
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (c *controller) update(ctx context.Context) error {
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return err
	}
	// The oldest Service gets its address first.
	slices.SortFunc(services, func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	c.releaseRemoved(services)
	c.claimReported(services)
	var forwards []forward
	var failed error
	for _, service := range services {
		address, balanced := c.assign(service)
		if err := c.report(ctx, service, address, balanced); err != nil {
			failed = err
		}
		endpointSlices, err := c.slices.EndpointSlices(service.Namespace).
			List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}))
		if err != nil {
			return err
		}
		forwards = append(forwards, serviceForwards(service, address, balanced, endpointSlices)...)
	}
	if rules := ruleset(forwards); rules != c.rules {
		if err := apply(ctx, rules); err != nil {
			return err
		}
		c.rules = rules
	}
	return failed
}

// isBalanced reports whether this controller is responsible for the Service's address.
func isBalanced(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil &&
		service.DeletionTimestamp == nil
}

func (c *controller) releaseRemoved(services []*corev1.Service) {
	kept := map[types.UID]bool{}
	for _, service := range services {
		kept[service.UID] = isBalanced(service)
	}
	for uid, address := range c.assigned {
		if !kept[uid] {
			c.pool.Release(address)
			delete(c.assigned, uid)
		}
	}
	for uid := range c.refused {
		if !kept[uid] {
			delete(c.refused, uid)
		}
	}
}

// claimReported keeps the addresses that Services have from an earlier run.
func (c *controller) claimReported(services []*corev1.Service) {
	for _, service := range services {
		ingress := service.Status.LoadBalancer.Ingress
		if _, known := c.assigned[service.UID]; known || !isBalanced(service) || len(ingress) == 0 {
			continue
		}
		if address, err := netip.ParseAddr(ingress[0].IP); err == nil && c.pool.Claim(address) {
			c.assigned[service.UID] = address
		}
	}
}

// assign returns the address of the Service, and whether it has one.
func (c *controller) assign(service *corev1.Service) (netip.Addr, bool) {
	if !isBalanced(service) {
		return netip.Addr{}, false
	}
	asked := service.Spec.LoadBalancerIP
	address, known := c.assigned[service.UID]
	if known && (asked == "" || asked == address.String()) {
		return address, true
	}
	if known {
		c.pool.Release(address)
		delete(c.assigned, service.UID)
	}
	var err error
	if asked == "" {
		address, err = c.pool.Take()
	} else if address, err = netip.ParseAddr(asked); err == nil && !c.pool.Claim(address) {
		err = fmt.Errorf("loadBalancerIP %s is in use or not in %s", asked, cluster.LoadBalancers)
	}
	if err != nil {
		if c.refused[service.UID] != err.Error() {
			c.refused[service.UID] = err.Error()
			log.Printf("Service %s/%s gets no address: %v", service.Namespace, service.Name, err)
		}
		return netip.Addr{}, false
	}
	delete(c.refused, service.UID)
	c.assigned[service.UID] = address
	return address, true
}

// report writes the address into the Service's status.
func (c *controller) report(ctx context.Context, service *corev1.Service, address netip.Addr, balanced bool) error {
	if service.Spec.LoadBalancerClass != nil {
		return nil
	}
	var want []corev1.LoadBalancerIngress
	if balanced {
		mode := corev1.LoadBalancerIPModeVIP
		want = []corev1.LoadBalancerIngress{{IP: address.String(), IPMode: &mode}}
	}
	if got := service.Status.LoadBalancer.Ingress; reflect.DeepEqual(want, got) || len(want)+len(got) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": service.UID},
		"status":   map[string]any{"loadBalancer": map[string]any{"ingress": want}},
	})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Services(service.Namespace).
		Patch(ctx, service.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if errors.IsNotFound(err) || errors.IsConflict(err) {
		// The Service was removed meanwhile; the informer reports it.
		return nil
	}
	return err
}
