package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// insecure does not verify certificates.
var insecure = &http.Client{
	Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

func TestADryRunWritesNothing(t *testing.T) {
	w := newWorld(t)
	object := flow("{apiVersion: v1, kind: ConfigMap, metadata: {name: dry, namespace: %s}, data: {a: b}}", w.namespace)
	output := w.run(object, "apply", "--server-side", "--dry-run=server", "-f", "-")
	if output != "applied ConfigMap dry (server dry run)\n" {
		t.Errorf("%q", output)
	}
	if output, err := w.try("", "get", "--namespace", w.namespace, "configmap/dry"); err == nil {
		t.Errorf("it exists: %s", output)
	}
}

func TestWrongObjectsAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ object, reason string }{
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong, namespace: %s}, dataa: {a: b}}", "dataa"},
		{"{apiVersion: v1, kind: Confixmap, metadata: {name: wrong, namespace: %s}}", "Confixmap"},
		{"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: wrong, namespace: %s}, " +
			"spec: {gatewayClassName: weir, listeners: [{name: a, port: 0, protocol: HTTP}]}}", "port"},
	} {
		output, err := w.try(flow(c.object, w.namespace), "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(output, c.reason) {
			t.Errorf("%v, %q", err, output)
		}
	}
}

func TestAFolderIsAppliedAndDeleted(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"1.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.weir.test}
spec:
  group: weir.test
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`,
		"2.json": fmt.Sprintf(`{"apiVersion": "v1", "kind": "List", "items": [
			{"apiVersion": "weir.test/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "%s"}, "spec": {"size": 1}},
			{"apiVersion": "weir.test/v1", "kind": "Thing", "metadata": {"name": "b", "namespace": "%s"}, "spec": {"size": 2}}]}`,
			w.namespace, w.namespace),
		"notes.txt": "not an object",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w.run("", "apply", "-f", folder)
	w.run("", "wait", "--namespace", w.namespace, "--for", "jsonpath={.spec.size}=2", "thing/b")
	if output := w.run("", "get", "--namespace", w.namespace, "things"); strings.Count(output, "kind: Thing\n") != 2 {
		t.Errorf("%s", output)
	}
	w.run("", "delete", "-f", folder)
	w.run("", "wait", "--for", "delete", "crd/things.weir.test")
}

func TestWaitFails(t *testing.T) {
	w := newWorld(t)
	output, err := w.try("", "wait", "--namespace", w.namespace, "--timeout", "1s", "--for", "condition=Ready=False", "pod", "--all")
	if err == nil || !strings.Contains(output, "does not meet --for condition=Ready=False in time") {
		t.Errorf("%v, %s", err, output)
	}
}
