// Finds what is measured: Weir's Pods, and where the Gateway is served. scripts/kubernetes-scale applies testbed.yaml
// and Weir's manifests first.

package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	pollInterval = 200 * time.Millisecond
	// setupLimit covers the drain of a Pod of Weir that is removed.
	setupLimit = 2 * time.Minute
)

// testbed is what is measured.
type testbed struct {
	client              kubernetes.Interface
	namespace, selector string
	deployment          string
	// pods are Weir's, and addresses where each of them serves the Gateway.
	pods, addresses []string
	// gateway is the address of the Gateway, with its port.
	gateway string
}

// poll calls check until it returns true, or an error, which ends the wait.
func poll(ctx context.Context, limit time.Duration, what string, check func() (bool, error)) error {
	for deadline := time.Now().Add(limit); ; {
		done, err := check()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s; look into the cluster's logs", what, limit)
		}
		if !pause(ctx, pollInterval) {
			return context.Cause(ctx)
		}
	}
}

// resize gives a Deployment another number of Pods.
func (t *testbed) resize(ctx context.Context, namespace, name string, replicas int) (*appsv1.Deployment, error) {
	deployments := t.client.AppsV1().Deployments(namespace)
	size, err := deployments.GetScale(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	size.Spec.Replicas = int32(replicas)
	if _, err := deployments.UpdateScale(ctx, name, size, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	return deployments.Get(ctx, name, metav1.GetOptions{})
}

// prepare gives Weir the number of Pods, unless that is 0, and waits until they run and the Gateway is programmed.
func (t *testbed) prepare(ctx context.Context, a *api, replicas int) error {
	deployment, err := t.client.AppsV1().Deployments(t.namespace).Get(ctx, t.deployment, metav1.GetOptions{})
	if err == nil && replicas > 0 {
		deployment, err = t.resize(ctx, t.namespace, t.deployment, replicas)
	}
	if err != nil {
		return err
	}
	t.selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	var pods []corev1.Pod
	what := fmt.Sprintf("%d ready Pods of the Deployment %s, and no others", *deployment.Spec.Replicas, t.deployment)
	err = poll(ctx, setupLimit, what, func() (bool, error) {
		pods, err = t.listPods(ctx)
		return len(pods) == int(*deployment.Spec.Replicas) && !slices.ContainsFunc(pods, unready), err
	})
	if err != nil {
		return err
	}
	return t.locate(ctx, a, pods)
}

func (t *testbed) listPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := t.client.CoreV1().Pods(t.namespace).List(ctx, metav1.ListOptions{LabelSelector: t.selector})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func unready(pod corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// locate finds the addresses of the Gateway: its own, and those of Weir's Pods behind it.
func (t *testbed) locate(ctx context.Context, a *api, pods []corev1.Pod) error {
	gateway := struct {
		Status struct {
			Addresses  []struct{ Value string }
			Conditions []condition
		}
	}{}
	err := poll(ctx, setupLimit, "an address of the Gateway, and its condition Programmed", func() (bool, error) {
		err := a.get(ctx, gatewayPath, &gateway)
		return len(gateway.Status.Addresses) > 0 && slices.ContainsFunc(gateway.Status.Conditions, func(c condition) bool {
			return c.Type == "Programmed" && c.Status == "True"
		}), err
	})
	if err != nil {
		return err
	}
	address := gateway.Status.Addresses[0].Value
	t.gateway = net.JoinHostPort(address, "80")
	port, err := t.portOf(ctx, address)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		t.pods = append(t.pods, pod.Name)
		t.addresses = append(t.addresses, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)))
	}
	return nil
}

// portOf returns the port of Weir's Pods to which the Service with the address forwards.
func (t *testbed) portOf(ctx context.Context, address string) (int, error) {
	services, err := t.client.CoreV1().Services(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, service := range services.Items {
		ingress := service.Status.LoadBalancer.Ingress
		if len(ingress) > 0 && ingress[0].IP == address && len(service.Spec.Ports) == 1 {
			return service.Spec.Ports[0].TargetPort.IntValue(), nil
		}
	}
	return 0, fmt.Errorf("no Service in the namespace %s has the Gateway's address %s and one port", t.namespace, address)
}

// restarts returns how often containers of Weir's Pods were restarted; a Pod that was replaced counts once.
func (t *testbed) restarts(ctx context.Context) (int, error) {
	pods, err := t.listPods(ctx)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, pod := range pods {
		if !slices.Contains(t.pods, pod.Name) {
			count++
		}
		for _, container := range pod.Status.ContainerStatuses {
			count += int(container.RestartCount)
		}
	}
	return count, nil
}

// usage returns what each of Weir's Pods has used.
func (t *testbed) usage() ([]usage, error) {
	used := make([]usage, len(t.pods))
	for i, pod := range t.pods {
		var err error
		if used[i], err = usageOf(pod); err != nil {
			return nil, err
		}
	}
	return used, nil
}
