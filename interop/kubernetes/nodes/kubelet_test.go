package nodes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLogsAreServed(t *testing.T) {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	object.Spec.Containers = []corev1.Container{{Name: "runs"}, {Name: "waits"}}
	a := &agent{pods: map[types.UID]*pod{}}
	a.pods["1"] = newPod(a, object)
	output, _ := newTestOutput(t)
	write(t, output, "one\ntwo\n")
	a.pods["1"].outputs["runs"].current = output

	mux := http.NewServeMux()
	mux.HandleFunc(logsPath, a.containerLogs)
	for _, c := range []struct {
		path string
		code int
		body string
	}{
		{"/containerLogs/n/p/runs", http.StatusOK, "one\ntwo\n"},
		{"/containerLogs/n/p/runs?tailLines=1&sinceTime=2020-01-01T00:00:00Z&limitBytes=2", http.StatusOK, "tw"},
		{"/containerLogs/n/p/runs?previous=true", http.StatusBadRequest,
			"previous terminated container \"runs\" in pod \"p\" not found\n"},
		{"/containerLogs/n/p/waits", http.StatusBadRequest, "container \"waits\" in pod \"p\" is waiting to start\n"},
		{"/containerLogs/n/p/other", http.StatusNotFound, "no container \"other\" of Pod n/p is on this Node\n"},
		{"/containerLogs/n/other/runs", http.StatusNotFound, "no container \"runs\" of Pod n/other is on this Node\n"},
	} {
		response := httptest.NewRecorder()
		mux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, c.path, nil))
		if response.Code != c.code || response.Body.String() != c.body {
			t.Errorf("%s: %d %q", c.path, response.Code, response.Body)
		}
	}
}
