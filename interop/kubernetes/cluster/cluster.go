// Package cluster holds what the stand-ins share: the cluster's address plan and the API client.
package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The address plan. scripts/kubernetes-cluster uses the same values.
var (
	Pods          = netip.MustParsePrefix("10.244.0.0/16")
	Services      = netip.MustParsePrefix("10.96.0.0/16")
	LoadBalancers = netip.MustParsePrefix("10.245.0.0/16")
	// Node is the address of the cluster's network namespace, and the gateway of every Pod.
	Node = netip.MustParseAddr("10.244.0.1")
	// APIServer is the cluster IP of the Service `kubernetes`.
	APIServer = netip.MustParseAddr("10.96.0.1")
)

// NodeName is the name of the only Node.
const NodeName = "weir-node"

// Config returns the configuration of an API client without a rate limit.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w; use the path that scripts/kubernetes-cluster prints", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// Client returns an API client without a rate limit.
func Client(kubeconfig string) (kubernetes.Interface, error) {
	config, err := Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// namespaces are the network namespaces that scripts/kubernetes-cluster creates.
const namespaces = "/run/netns/weir-kube-*"

// RequireNamespace returns an error unless this process is in the network namespace of a cluster: the addresses, routes
// and rules of the host must not be changed.
func RequireNamespace() error {
	own, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return err
	}
	candidates, err := filepath.Glob(namespaces)
	if err != nil {
		return err
	}
	for _, candidate := range candidates {
		// Another cluster may have ended since.
		if found, err := os.Stat(candidate); err == nil && os.SameFile(own, found) {
			return nil
		}
	}
	return fmt.Errorf("this network namespace is none of %s and would be changed; "+
		"start the cluster with scripts/kubernetes-cluster", namespaces)
}

// Interrupted returns a context that ends with SIGINT or SIGTERM.
func Interrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
