// Package controllers runs Kubernetes' own controllers, but only those that the tests need. The program
// kube-controller-manager would bring the scheduler's and the kubelet's code with it: twelve per cent more packages.
package controllers

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"weir.test/interop/kubernetes/cluster"
)

const (
	// workers is the number of objects that a controller handles at the same time.
	workers = 4
	// collectorSync is how often the garbage collector looks for new kinds of objects.
	collectorSync        = 10 * time.Second
	namespaceResync      = 5 * time.Minute
	endpointsPerSliceMax = 100
)

// scalerSync is how often HorizontalPodAutoscalers are evaluated: often, so that tests do not wait.
const scalerSync = 2 * time.Second

// The defaults of kube-controller-manager.
const (
	scalerStabilization  = 5 * time.Minute
	scalerTolerance      = 0.1
	scalerInitialization = 5 * time.Minute
	scalerReadinessDelay = 30 * time.Second
)

// set is what the controllers are made of.
type set struct {
	config *rest.Config
	// rootCA are the certificates that Pods verify the API server with.
	rootCA   []byte
	client   kubernetes.Interface
	metadata metadata.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	shared   informers.SharedInformerFactory
	// all makes informers for kinds that this program does not know, too.
	all     informerfactory.InformerFactory
	started chan struct{}
}

// Run is the command `controllers`.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("controllers", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "`FILE` with the API server's address and credentials")
	rootCA := flags.String("root-ca", "", "`FILE` with the certificates that Pods verify the API server with")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	s, err := newSet(*kubeconfig)
	if err != nil {
		return err
	}
	if s.rootCA, err = os.ReadFile(*rootCA); err != nil {
		return fmt.Errorf("--root-ca: %w", err)
	}
	interrupted, stop := cluster.Interrupted()
	defer stop()
	for _, start := range []func(context.Context) error{
		s.endpointSlices, s.replicaSets, s.deployments, s.namespaces, s.serviceAccounts, s.rootCertificates, s.garbage,
		s.autoscalers,
	} {
		if err := start(interrupted); err != nil {
			return fmt.Errorf("a controller could not be started: %w", err)
		}
	}
	s.all.Start(interrupted.Done())
	close(s.started)
	s.shared.WaitForCacheSync(interrupted.Done())
	// scripts/kubernetes-cluster waits for this line.
	log.Print("controllers: ready")
	<-interrupted.Done()
	return nil
}

func newSet(kubeconfig string) (*set, error) {
	config, err := cluster.Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	return &set{
		config: config, client: client, metadata: metadataClient, shared: shared,
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		all:     informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(metadataClient, 0)),
		started: make(chan struct{}),
	}, nil
}

func (s *set) endpointSlices(ctx context.Context) error {
	core := s.shared.Core().V1()
	controller := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		s.shared.Discovery().V1().EndpointSlices(), endpointsPerSliceMax, s.client, 0)
	go controller.Run(ctx, workers)
	return nil
}

func (s *set) replicaSets(ctx context.Context) error {
	controller := replicaset.NewReplicaSetController(ctx, s.shared.Apps().V1().ReplicaSets(), s.shared.Core().V1().Pods(),
		s.client, replicaset.BurstReplicas)
	go controller.Run(ctx, workers)
	return nil
}

func (s *set) deployments(ctx context.Context) error {
	apps := s.shared.Apps().V1()
	controller, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(),
		s.shared.Core().V1().Pods(), s.client)
	if err != nil {
		return err
	}
	go controller.Run(ctx, workers)
	return nil
}

func (s *set) namespaces(ctx context.Context) error {
	controller := namespace.NewNamespaceController(ctx, s.client, s.metadata,
		s.client.Discovery().ServerPreferredNamespacedResources, s.shared.Core().V1().Namespaces(), namespaceResync,
		corev1.FinalizerKubernetes)
	go controller.Run(ctx, workers)
	return nil
}

// serviceAccounts creates the ServiceAccount `default` of each namespace.
func (s *set) serviceAccounts(ctx context.Context) error {
	core := s.shared.Core().V1()
	controller, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(),
		core.Namespaces(), s.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	go controller.Run(ctx, workers)
	return nil
}

// rootCertificates creates the ConfigMap `kube-root-ca.crt` of each namespace.
func (s *set) rootCertificates(ctx context.Context) error {
	core := s.shared.Core().V1()
	controller, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), s.client, s.rootCA)
	if err != nil {
		return err
	}
	go controller.Run(ctx, workers)
	return nil
}

func (s *set) garbage(ctx context.Context) error {
	ignored := map[schema.GroupResource]struct{}{}
	for resource := range garbagecollector.DefaultIgnoredResources() {
		ignored[resource] = struct{}{}
	}
	controller, err := garbagecollector.NewGarbageCollector(ctx, s.client, s.metadata, s.mapper, ignored, s.all, s.started)
	if err != nil {
		return err
	}
	go controller.Run(ctx, workers, collectorSync)
	go controller.Sync(ctx, s.client.Discovery(), collectorSync)
	return nil
}

// autoscalers evaluates HorizontalPodAutoscalers. Metrics come from API services that a test registers: without them, only
// the minimum and the maximum of replicas count.
func (s *set) autoscalers(ctx context.Context) error {
	kinds := scale.NewDiscoveryScaleKindResolver(s.client.Discovery())
	scales, err := scale.NewForConfig(s.config, s.mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return err
	}
	resources, err := resourceclient.NewForConfig(s.config)
	if err != nil {
		return err
	}
	external, err := external_metrics.NewForConfig(s.config)
	if err != nil {
		return err
	}
	available := custom_metrics.NewAvailableAPIsGetter(s.client.Discovery())
	measured := metrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(s.config, s.mapper, available), external)
	controller := podautoscaler.NewHorizontalController(ctx, s.client.CoreV1(), scales, s.client.AutoscalingV2(), s.mapper,
		measured, s.shared.Autoscaling().V2().HorizontalPodAutoscalers(), s.shared.Core().V1().Pods(),
		scalerSync, scalerStabilization, scalerTolerance, scalerInitialization, scalerReadinessDelay)
	go controller.Run(ctx, workers)
	return nil
}
