// Package nodes runs Pods as processes of this machine. It stands in for the scheduler and the kubelets: it binds
// each Pod to the cluster's only Node, gives it a network namespace, starts a process for each container, and
// reports the Pod's status.
//
// There are no images: an image is replaced by a program of this machine, chosen by the image's name.
package nodes

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"weir.test/interop/kubernetes/cluster"
)

// image replaces the images whose name contains part by a program with its first arguments.
type image struct {
	part    string
	command []string
}

// images are the values of --image, in their order.
type images []image

func (i *images) String() string { return "" }

// Set parses the value of --image.
func (i *images) Set(value string) error {
	part, command, found := strings.Cut(value, "=")
	words := strings.Fields(command)
	if !found || part == "" || len(words) == 0 {
		return fmt.Errorf("%q is not NAME=PROGRAM [ARGUMENT]", value)
	}
	*i = append(*i, image{part, words})
	return nil
}

// command returns the program of the last match, so that a later option overrides an earlier one.
func (i images) command(name string) ([]string, error) {
	for _, candidate := range slices.Backward(i) {
		if strings.Contains(name, candidate.part) {
			return candidate.command, nil
		}
	}
	return nil, fmt.Errorf("no program is known for image %q; start nodes with --image NAME=PROGRAM", name)
}

// agent runs the Pods of the Node.
type agent struct {
	client  kubernetes.Interface
	images  images
	network *network
	starter *starter
	// state is the folder of the Pods' files, program is the path of the helper in pod/.
	state, program string

	mutex sync.Mutex
	pods  map[types.UID]*pod
	// running counts the Pods that have not ended.
	running sync.WaitGroup
}

// Run is the command `nodes`.
func Run(arguments []string) error {
	flags := flag.NewFlagSet("nodes", flag.ExitOnError)
	a := &agent{pods: map[types.UID]*pod{}}
	kubeconfig := flags.String("kubeconfig", "", "`FILE` with the API server's address and credentials")
	flags.StringVar(&a.state, "state", "", "`FOLDER` for the files and logs of Pods")
	flags.StringVar(&a.program, "pod", "", "`PATH` of the helper program weir-pod")
	flags.Var(&a.images, "image",
		"run `NAME=PROGRAM` [ARGUMENT]... for images whose name contains NAME; repeatable, the last match is used")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if a.state == "" || a.program == "" {
		return fmt.Errorf("--state and --pod are required; scripts/kubernetes-cluster sets them")
	}
	if err := cluster.RequireNamespace(); err != nil {
		return err
	}
	// Programs in containers expect the usual modes of files.
	syscall.Umask(0o022)
	// The folder pods has the files of Secrets, which other users of the host must not read.
	for folder, mode := range map[string]os.FileMode{"pods": 0o700, "logs": 0o755} {
		if err := os.MkdirAll(a.state+"/"+folder, mode); err != nil {
			return err
		}
	}
	var err error
	if a.client, err = cluster.Client(*kubeconfig); err != nil {
		return err
	}
	if a.network, err = newNetwork(); err != nil {
		return err
	}
	a.starter = newStarter()

	interrupted, stop := cluster.Interrupted()
	defer stop()
	if err := a.serveLogs(interrupted); err != nil {
		return fmt.Errorf("the logs of containers cannot be served: %w", err)
	}
	if err := a.registerNode(interrupted); err != nil {
		return fmt.Errorf("the Node could not be registered: %w", err)
	}
	// scripts/kubernetes-cluster waits for this line.
	log.Print("nodes: ready")
	informer := informers.NewSharedInformerFactory(a.client, 0).Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { a.observe(interrupted, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { a.observe(interrupted, object.(*corev1.Pod)) },
		DeleteFunc: a.remove,
	}); err != nil {
		return err
	}
	informer.Run(interrupted.Done())
	// The cluster ends with the Pods: they are stopped without their grace periods, and without a report.
	a.running.Wait()
	return nil
}

// registerNode creates the Node and reports it as ready.
func (a *agent) registerNode(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   cluster.NodeName,
		Labels: map[string]string{corev1.LabelHostname: cluster.NodeName, corev1.LabelOSStable: "linux"},
	}}
	created, err := a.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		created, err = a.client.CoreV1().Nodes().Get(ctx, cluster.NodeName, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	now := metav1.Now()
	created.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: cluster.Node.String()}}
	created.Status.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
	created.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Started", LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	_, err = a.client.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// observe starts a Pod that is new, and stops one that is being deleted.
func (a *agent) observe(ctx context.Context, object *corev1.Pod) {
	if object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed {
		return
	}
	if object.Spec.NodeName != "" && object.Spec.NodeName != cluster.NodeName {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	p, known := a.pods[object.UID]
	if !known {
		p = newPod(a, object)
		a.pods[object.UID] = p
		a.running.Go(func() { p.run(ctx) })
	}
	if object.DeletionTimestamp != nil {
		p.stop(gracePeriod(object))
	}
}

// remove stops a Pod that was removed without a grace period.
func (a *agent) remove(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	removed, ok := object.(*corev1.Pod)
	if !ok {
		log.Printf("ignoring a deletion of %T", object)
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if p, known := a.pods[removed.UID]; known {
		p.stop(0)
		delete(a.pods, removed.UID)
	}
}

func gracePeriod(object *corev1.Pod) time.Duration {
	if seconds := object.DeletionGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 0
}
