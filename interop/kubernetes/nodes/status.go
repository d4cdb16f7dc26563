// The status of a Pod, as a kubelet reports it.

package nodes

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"weir.test/interop/kubernetes/cluster"
)

// pending is the status of a Pod that has not started its containers.
func (p *pod) pending(message string) corev1.PodStatus {
	status := p.base(corev1.PodPending, false, message)
	for _, c := range p.object.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: new(bool),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: message}},
		})
	}
	return status
}

// status is the status of a Pod whose containers have been started, and whether it is ready.
func (p *pod) status() (corev1.PodStatus, bool) {
	ready := true
	var containers []corev1.ContainerStatus
	for _, c := range p.containers {
		status := c.status()
		ready = ready && status.Ready
		containers = append(containers, status)
	}
	message := ""
	if !ready {
		message = "a container does not run, does not listen, or fails a probe"
	}
	status := p.base(corev1.PodRunning, ready, message)
	status.ContainerStatuses = containers
	return status, ready
}

func (p *pod) base(phase corev1.PodPhase, ready bool, message string) corev1.PodStatus {
	node := cluster.Node.String()
	status := corev1.PodStatus{
		Phase: phase, HostIP: node, HostIPs: []corev1.HostIP{{IP: node}}, StartTime: &p.started,
		QOSClass: p.object.Status.QOSClass,
	}
	if p.network != nil {
		status.PodIP = p.network.address.String()
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	condition := func(kind corev1.PodConditionType, met bool) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
		if !met {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", message
		}
		status.Conditions = append(status.Conditions, c)
	}
	condition(corev1.PodScheduled, true)
	condition(corev1.PodInitialized, true)
	condition(corev1.ContainersReady, ready)
	condition(corev1.PodReady, ready)
	return status
}

// keepTransitionTimes copies the transition times of conditions that have not changed.
func keepTransitionTimes(status *corev1.PodStatus, before corev1.PodStatus) {
	for i := range status.Conditions {
		for _, old := range before.Conditions {
			if old.Type == status.Conditions[i].Type && old.Status == status.Conditions[i].Status {
				status.Conditions[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
}

// patchStatus writes the status, unless another Pod has the name of this one.
func patchStatus(ctx context.Context, client kubernetes.Interface, object *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": object.UID},
		"status":   status,
	})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(object.Namespace).
		Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
