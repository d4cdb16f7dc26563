package e2e

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logs reads the log of a container through the API server.
func (w *world) logs(pod string, options corev1.PodLogOptions) (string, error) {
	text, err := w.client.CoreV1().Pods(w.namespace).GetLogs(pod, &options).DoRaw(context.Background())
	return string(text), err
}

func TestLogsAreReadThroughTheAPIServer(t *testing.T) {
	w := newWorld(t)
	// The second run of `writer` stays; `other` writes something else.
	w.inline(`{apiVersion: v1, kind: Pod, metadata: {name: logs, namespace: %s}, spec: {containers: [
		{name: writer, image: app, command: [sh, -c, "if [ -e /shared/again ]; then echo second; exec sleep 1000; fi;
			touch /shared/again; echo one; echo two >&2; echo three"], volumeMounts: [{name: shared, mountPath: /shared}]},
		{name: other, image: app, command: [sh, -c, "echo other; exec sleep 1000"]}],
		volumes: [{name: shared, emptyDir: {}}]}}`, w.namespace)
	w.wait("the second run has written", func() bool {
		text, err := w.logs("logs", corev1.PodLogOptions{Container: "writer"})
		return err == nil && text == "second\n"
	})
	two, bytes, hour := int64(2), int64(6), int64(3600)
	future := metav1.NewTime(time.Now().Add(time.Hour))
	for _, c := range []struct {
		options corev1.PodLogOptions
		want    string
	}{
		{corev1.PodLogOptions{Container: "other"}, "other\n"},
		{corev1.PodLogOptions{Container: "writer", Previous: true}, "one\ntwo\nthree\n"},
		{corev1.PodLogOptions{Container: "writer", Previous: true, TailLines: &two}, "two\nthree\n"},
		{corev1.PodLogOptions{Container: "writer", Previous: true, LimitBytes: &bytes}, "one\ntw"},
		{corev1.PodLogOptions{Container: "writer", Previous: true, SinceSeconds: &hour}, "one\ntwo\nthree\n"},
		{corev1.PodLogOptions{Container: "writer", Previous: true, SinceTime: &future}, ""},
	} {
		if text, err := w.logs("logs", c.options); err != nil || text != c.want {
			t.Errorf("%+v: %q, %v", c.options, text, err)
		}
	}
	stamped, err := w.logs("logs", corev1.PodLogOptions{Container: "other", Timestamps: true})
	at, text, _ := strings.Cut(stamped, " ")
	if _, wrong := time.Parse(time.RFC3339Nano, at); err != nil || wrong != nil || text != "other\n" {
		t.Errorf("%q, %v, %v", stamped, err, wrong)
	}
	if text, err := w.logs("logs", corev1.PodLogOptions{Container: "other", Previous: true}); err == nil {
		t.Errorf("a container that never ended has a previous log: %q", text)
	}
}

func TestLogsAreFollowed(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("app").Name
	stream, err := w.client.CoreV1().Pods(w.namespace).
		GetLogs(pod, &corev1.PodLogOptions{Container: "app", Follow: true}).Stream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	w.run("", "delete", "--namespace", w.namespace, "pod/"+pod)
	// The log ends with the container.
	text, err := io.ReadAll(stream)
	if err != nil || string(text) != "got SIGTERM\ndrained\n" {
		t.Errorf("%q, %v", text, err)
	}
}
