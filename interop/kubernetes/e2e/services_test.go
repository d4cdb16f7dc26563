package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (w *world) scale(deployment string, replicas int) {
	w.Helper()
	patch := []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	_, err := w.client.AppsV1().Deployments(w.namespace).
		Patch(context.Background(), deployment, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	if err != nil {
		w.Fatal(err)
	}
}

func TestServicesLeadToPods(t *testing.T) {
	w := newWorld(t)
	w.wait("both endpoints are ready", func() bool { return len(w.ready("echo")) == 2 })
	balancer, clusterIP := w.addresses("echo")
	for _, address := range []string{balancer, clusterIP} {
		address = "http://" + address + ":8080/"
		w.wait(address+" answers", func() bool { status, _ := get(address); return status == http.StatusOK })
		// From the network namespace of a Pod.
		var status int
		if w.ask(&status, app, "fetch", "url", address); status != http.StatusOK {
			t.Errorf("%s: %d from a Pod", address, status)
		}
		answered := map[string]int{}
		for range 40 {
			_, body := get(address)
			for _, pod := range w.pods("echo") {
				if strings.Contains(body, pod.Name) {
					answered[pod.Name]++
				}
			}
		}
		if len(answered) != 2 {
			t.Errorf("%s was answered by %v", address, answered)
		}
	}
	for _, address := range w.ready("echo") {
		var status int
		if w.ask(&status, app, "fetch", "url", "http://"+address+":3000/"); status != http.StatusOK {
			t.Errorf("%s: %d from a Pod", address, status)
		}
	}
	// A Pod that reaches itself through its Service.
	own, _ := w.addresses("app")
	var status int
	if w.ask(&status, app, "fetch", "url", "http://"+own+"/ready"); status != http.StatusOK {
		t.Errorf("%d from itself", status)
	}
	// A port without a Service, of an address that has one.
	if status, _ := get("http://" + balancer + ":8081/"); status != 0 {
		t.Errorf("%d from a port without a Service", status)
	}
}

func TestDeploymentsScale(t *testing.T) {
	w := newWorld(t)
	for _, replicas := range []int{5, 1, 0, 2} {
		w.scale("echo", replicas)
		w.wait(fmt.Sprintf("%d ready endpoints", replicas), func() bool { return len(w.ready("echo")) == replicas })
		w.wait(fmt.Sprintf("%d Pods", replicas), func() bool { return len(w.pods("echo")) == replicas })
	}
}

func TestAnAutoscalerFollowsAnExternalMetric(t *testing.T) {
	w := newWorld(t)
	w.apply("autoscaler.yaml")
	t.Cleanup(func() { w.run("", "delete", "apiservice/v1beta1.external.metrics.k8s.io") })
	w.run("", "wait", "--namespace", w.namespace, "--for", "condition=Available", "deployment/metrics")
	w.run("", "wait", "--for", "condition=Available", "apiservice/v1beta1.external.metrics.k8s.io")
	for _, step := range []struct {
		value string
		pods  int
	}{{"35", 4}, {"1000", 5}, {"8", 1}} {
		// The API server reaches the metrics through the Service; a test may go to the Pod.
		address := "https://" + w.pod("metrics").Status.PodIP + ":6443/values/weir-concurrency"
		request, err := http.NewRequest(http.MethodPut, address, bytes.NewBufferString(step.value))
		if err != nil {
			t.Fatal(err)
		}
		response, err := insecure.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		w.wait(fmt.Sprintf("%d Pods for %s", step.pods, step.value), func() bool { return len(w.ready("echo")) == step.pods })
	}
}
