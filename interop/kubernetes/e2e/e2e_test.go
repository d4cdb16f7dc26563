// Package e2e tests the cluster itself, from within its network namespace. scripts/kubernetes-check starts the cluster
// and runs these tests; without it, they are skipped.
package e2e

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"weir.test/interop/kubernetes/cluster"
)

const (
	// eventually bounds the wait for anything that the cluster does on its own.
	eventually   = 60 * time.Second
	pollInterval = 50 * time.Millisecond
)

//go:embed testdata/*.yaml
var manifests embed.FS

// world is a namespace with the objects of testdata/app.yaml.
type world struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	// program is weir-kubernetes, state is the cluster's folder.
	program, kubeconfig, state string
}

// newWorld creates a namespace, which is deleted at the end.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := empty(t)
	w.apply("app.yaml")
	t.Cleanup(func() { w.run("", "delete", "namespace/"+w.namespace) })
	w.run("", "wait", "--namespace", w.namespace, "--timeout", "60s", "--for", "condition=Available", "deployment", "app", "echo")
	return w
}

// empty returns a world without objects.
func empty(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, program: os.Getenv("WEIR_KUBERNETES"), kubeconfig: os.Getenv("WEIR_KUBECONFIG"),
		state: os.Getenv("WEIR_KUBERNETES_STATE"), namespace: strings.ToLower(t.Name()),
	}
	if w.program == "" || w.kubeconfig == "" || w.state == "" {
		t.Skip("no cluster: run scripts/kubernetes-check")
	}
	var err error
	if w.client, err = cluster.Client(w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return w
}

// try runs a command of weir-kubernetes.
func (w *world) try(input, command string, arguments ...string) (string, error) {
	w.Helper()
	process := exec.Command(w.program, append([]string{command, "--kubeconfig", w.kubeconfig}, arguments...)...)
	process.Stdin = strings.NewReader(input)
	output, err := process.CombinedOutput()
	return string(output), err
}

// run is try for a command that has to succeed.
func (w *world) run(input, command string, arguments ...string) string {
	w.Helper()
	output, err := w.try(input, command, arguments...)
	if err != nil {
		w.Fatalf("%s %v: %v\n%s", command, arguments, err, output)
	}
	return output
}

// apply applies a file of testdata.
func (w *world) apply(file string) {
	w.Helper()
	text, err := manifests.ReadFile("testdata/" + file)
	if err != nil {
		w.Fatal(err)
	}
	w.run(strings.ReplaceAll(string(text), "TESTSPACE", w.namespace), "apply", "-f", "-")
}

// inline applies an object that is written as a flow mapping of YAML.
func (w *world) inline(object string, values ...any) {
	w.Helper()
	w.run(flow(object, values...), "apply", "-f", "-")
}

// flow makes a document of a flow mapping: without its first line, it would be taken for JSON.
func flow(object string, values ...any) string {
	return "---\n" + strings.ReplaceAll(fmt.Sprintf(object, values...), "\t", " ")
}

// wait waits until the condition is met. It returns how long that took.
func (w *world) wait(what string, met func() bool) time.Duration {
	w.Helper()
	start := time.Now()
	for !met() {
		if time.Since(start) > eventually {
			w.Fatalf("not within %s: %s", eventually, what)
		}
		time.Sleep(pollInterval)
	}
	w.Logf("%s: after %s", what, time.Since(start).Round(time.Millisecond))
	return time.Since(start)
}

// pods returns the Pods with a label that are not being deleted.
func (w *world) pods(app string) []corev1.Pod {
	w.Helper()
	list, err := w.client.CoreV1().Pods(w.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		w.Fatal(err)
	}
	var found []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	return found
}

// pod returns the only Pod with a label.
func (w *world) pod(app string) *corev1.Pod {
	w.Helper()
	found := w.pods(app)
	if len(found) != 1 {
		w.Fatalf("%d Pods with app=%s", len(found), app)
	}
	return &found[0]
}

// containerStatus returns the status of a container of the only Pod with app=app.
func (w *world) containerStatus(name string) corev1.ContainerStatus {
	w.Helper()
	for _, status := range w.pod("app").Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// ready returns the addresses of the ready endpoints of a Service.
func (w *world) ready(service string) []string {
	w.Helper()
	list, err := w.client.DiscoveryV1().EndpointSlices(w.namespace).
		List(context.Background(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		w.Fatal(err)
	}
	var found []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				found = append(found, endpoint.Addresses...)
			}
		}
	}
	return found
}

// addresses returns the load balancer's address and the cluster IP of a Service.
func (w *world) addresses(name string) (string, string) {
	w.Helper()
	var service *corev1.Service
	w.wait("Service "+name+" has an address", func() bool {
		var err error
		if service, err = w.client.CoreV1().Services(w.namespace).Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			w.Fatal(err)
		}
		return len(service.Status.LoadBalancer.Ingress) > 0
	})
	return service.Status.LoadBalancer.Ingress[0].IP, service.Spec.ClusterIP
}

// client makes no connection twice: each request is balanced.
var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get returns the status and the body of a response; the status is 0 without a response.
func get(address string) (int, string) {
	response, err := client.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// ask asks the test's program in a container: a path of testdata/app.py, and its query as names and values.
func (w *world) ask(answer any, port int, path string, query ...string) {
	w.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	address := fmt.Sprintf("http://%s:%d/%s?%s", w.pod("app").Status.PodIP, port, path, values.Encode())
	status, body := get(address)
	if status != http.StatusOK {
		w.Fatalf("%s: %d %s", address, status, body)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal([]byte(body), answer); err != nil {
		w.Fatalf("%s: %v: %s", address, err, body)
	}
}

// log returns what a container of a Pod has written.
func (w *world) log(pod, container string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.state, "logs", w.namespace+"_"+pod+"_"+container+".log"))
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// processes returns how many processes of the machine have a word in their environment.
func (w *world) processes(word string) int {
	w.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.Fatal(err)
	}
	count := 0
	for _, file := range files {
		// The process may have ended.
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(word)) {
			count++
		}
	}
	return count
}
