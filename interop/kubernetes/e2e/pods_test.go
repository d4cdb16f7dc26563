package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ports of the containers in testdata/app.yaml.
const (
	app   = 8080
	other = 80
)

// about is the answer to the path /me of testdata/app.py.
type about struct {
	UID, GID, PID                              int
	Capabilities, Hostname, Address, Directory string
	Argv                                       []string
	Env                                        map[string]string
}

func TestContainersSeeWhatTheirPodSays(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("app")
	var me about
	w.ask(&me, app, "me")
	for name, want := range map[string]string{
		"POD_NAME": pod.Name, "POD_NAMESPACE": w.namespace, "POD_IP": pod.Status.PodIP, "NODE_NAME": "weir-node",
		"PASSWORD": "1234", "SETTINGS_LEVEL": "high", "KUBERNETES_SERVICE_HOST": "10.96.0.1",
		"KUBERNETES_SERVICE_PORT": "443", "HOSTNAME": pod.Name,
	} {
		if me.Env[name] != want {
			t.Errorf("%s is %q instead of %q", name, me.Env[name], want)
		}
	}
	if me.Hostname != pod.Name || me.Address != pod.Status.PodIP {
		t.Errorf("hostname %s, address %s", me.Hostname, me.Address)
	}
	if last := me.Argv[len(me.Argv)-1]; last != "--name="+pod.Name {
		t.Errorf("the last argument is %s", last)
	}
	if me.Directory != "/etc/settings" && !strings.HasPrefix(me.Directory, "/etc/settings/") {
		t.Errorf("working directory %s", me.Directory)
	}
	for path, want := range map[string]string{
		"/etc/settings/color": "red", "/etc/one/color": "red", "/etc/hidden/password": "1234", "/etc/about/zone": "north",
		"/var/run/secrets/kubernetes.io/serviceaccount/namespace": w.namespace, "/etc/hostname": pod.Name + "\n",
	} {
		var text string
		if w.ask(&text, app, "file", "path", path); text != want {
			t.Errorf("%s is %q instead of %q", path, text, want)
		}
	}
	var hosts string
	if w.ask(&hosts, app, "file", "path", "/etc/hosts"); !strings.Contains(hosts, "10.1.2.3\telsewhere.test\n") {
		t.Errorf("/etc/hosts is %q", hosts)
	}
}

func TestPrivileges(t *testing.T) {
	w := newWorld(t)
	var root, user about
	w.ask(&root, app, "me")
	w.ask(&user, other, "me")
	var capabilities uint64
	if _, err := fmt.Sscanf(root.Capabilities, "%x", &capabilities); err != nil {
		t.Fatal(err)
	}
	// CAP_NET_BIND_SERVICE, and then CAP_SYS_ADMIN, CAP_SYS_BOOT and CAP_MKNOD.
	if capabilities&(1<<10) == 0 || capabilities&(1<<21|1<<22|1<<27) != 0 {
		t.Errorf("capabilities %x", capabilities)
	}
	// This one listens on port 80 nevertheless.
	if user.UID != 65532 || user.GID != 65532 || user.Capabilities != "0000000000000000" {
		t.Errorf("user %d:%d with capabilities %s", user.UID, user.GID, user.Capabilities)
	}
	// A file in an emptyDir reaches the other container, whoever owns it.
	w.ask(nil, other, "write", "path", "/shared/note", "text", "hello")
	var text string
	if w.ask(&text, app, "file", "path", "/shared/note"); text != "hello" {
		t.Errorf("the shared file is %q", text)
	}
}

func TestTheAPIServerAuthorizesWithRBAC(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]int{
		"/api/v1/namespaces/" + w.namespace + "/configmaps":          http.StatusOK,
		"/api/v1/namespaces/" + w.namespace + "/configmaps/settings": http.StatusOK,
		"/api/v1/namespaces/" + w.namespace + "/secrets/hidden":      http.StatusForbidden,
		"/api/v1/namespaces/" + w.namespace + "/pods":                http.StatusForbidden,
		"/api/v1/namespaces/kube-system/configmaps":                  http.StatusForbidden,
		"/api/v1/nodes": http.StatusForbidden,
	} {
		var status int
		if w.ask(&status, app, "api", "path", path); status != want {
			t.Errorf("%s: %d instead of %d", path, status, want)
		}
	}
}

func TestAConfigMapReachesTheContainerWhenItChanges(t *testing.T) {
	w := newWorld(t)
	w.inline("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %s}, data: {color: blue}}", w.namespace)
	w.wait("the file changes", func() bool {
		var text string
		w.ask(&text, app, "file", "path", "/etc/settings/color")
		return text == "blue"
	})
	var text string
	if w.ask(&text, app, "file", "path", "/etc/one/color"); text != "red" {
		t.Errorf("the file with a subPath has changed to %q", text)
	}
}

func TestReadinessDecidesAboutTraffic(t *testing.T) {
	w := newWorld(t)
	balancer, _ := w.addresses("app")
	w.wait("the endpoint is ready", func() bool { return len(w.ready("app")) == 1 })
	w.ask(nil, app, "set", "ready", "no")
	w.wait("the endpoint is not ready", func() bool { return len(w.ready("app")) == 0 })
	w.wait("the Service refuses", func() bool { status, _ := get("http://" + balancer + "/me"); return status == 0 })
	w.ask(nil, app, "set", "ready", "yes")
	w.wait("the Service answers", func() bool { status, _ := get("http://" + balancer + "/me"); return status == http.StatusOK })
	if restarts := w.containerStatus("app").RestartCount; restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}

func TestAContainerIsRestartedWhenItEndsOrIsNotAlive(t *testing.T) {
	w := newWorld(t)
	w.ask(nil, app, "exit", "code", "3")
	w.wait("the container is restarted", func() bool { status := w.containerStatus("app"); return status.RestartCount == 1 && status.Ready })
	if last := w.containerStatus("app").LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
		t.Errorf("the last state is %v", last)
	}
	w.ask(nil, app, "set", "live", "no")
	w.wait("the container is restarted again", func() bool { status := w.containerStatus("app"); return status.RestartCount == 2 && status.Ready })
	// The program had the time to drain.
	if log := w.log(w.pod("app").Name, "app"); strings.Count(log, "drained") != 1 {
		t.Errorf("its log is %q", log)
	}
	if restarts := w.containerStatus("other").RestartCount; restarts != 0 {
		t.Errorf("%d restarts of the other container", restarts)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	w := newWorld(t)
	var left struct {
		Zombies   []string
		Processes int
	}
	w.ask(&left, app, "zombies")
	// weir-pod and the program; the other container has its own processes.
	if len(left.Zombies) > 0 || left.Processes != 2 {
		t.Errorf("%v", left)
	}
}

func TestAPodHasItsGracePeriod(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, drain string
		least, most time.Duration
		drained     bool
	}{
		{"drains", "1", time.Second, 3 * time.Second, true},
		// The grace period is 2 seconds.
		{"ignores", "-1", 2 * time.Second, 4 * time.Second, false},
	} {
		w.inline(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {
			terminationGracePeriodSeconds: 2,
			containers: [{name: app, image: app, env: [{name: DRAIN, value: "%s"}, {name: TOKEN, value: %s}]}]}}`,
			c.name, w.namespace, c.drain, w.namespace+c.name)
		w.run("", "wait", "--namespace", w.namespace, "--for", "condition=Ready", "pod/"+c.name)
		if w.processes("TOKEN="+w.namespace+c.name) == 0 {
			t.Error("its processes are not found")
		}
		start := time.Now()
		w.run("", "delete", "--namespace", w.namespace, "pod/"+c.name)
		w.run("", "wait", "--namespace", w.namespace, "--for", "delete", "pod/"+c.name)
		took := time.Since(start)
		if took < c.least || took > c.most {
			t.Errorf("%s: ended after %s", c.name, took)
		}
		log := w.log(c.name, "app")
		if strings.Count(log, "got SIGTERM") != 1 || strings.Contains(log, "drained") != c.drained {
			t.Errorf("%s: its log is %q", c.name, log)
		}
		if left := w.processes("TOKEN=" + w.namespace + c.name); left != 0 {
			t.Errorf("%s: %d processes are left", c.name, left)
		}
	}
}

func TestACommandReplacesTheImages(t *testing.T) {
	w := newWorld(t)
	w.inline(`{apiVersion: v1, kind: Pod, metadata: {name: command, namespace: %s}, spec: {hostname: other, containers: [
		{name: shell, image: app, command: [sh, -c, "hostname; echo $(GREETING) $0; exec sleep 1000"], args: [you],
		env: [{name: GREETING, value: hello}]}]}}`, w.namespace)
	w.run("", "wait", "--namespace", w.namespace, "--for", "condition=Ready", "pod/command")
	if log := w.log("command", "shell"); !strings.HasSuffix(log, "other\nhello you\n") {
		t.Errorf("its log is %q", log)
	}
}

func TestADeletedNamespaceLeavesNothing(t *testing.T) {
	w := newWorld(t)
	balancer, clusterIP := w.addresses("echo")
	mark := "POD_NAMESPACE=" + w.namespace
	if w.processes(mark) == 0 {
		t.Error("the Pod's processes are not found")
	}
	var folders []string
	for _, name := range []string{"app", "echo"} {
		for _, pod := range w.pods(name) {
			folders = append(folders, w.state+"/pods/"+string(pod.UID))
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
	}
	w.run("", "delete", "namespace/"+w.namespace)
	w.run("", "wait", "--timeout", "60s", "--for", "delete", "namespace/"+w.namespace)
	if left := w.processes(mark); left != 0 {
		t.Errorf("%d processes are left", left)
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", folder, err)
		}
	}
	for _, address := range []string{balancer, clusterIP} {
		w.wait(address+" refuses", func() bool { status, _ := get("http://" + address + ":8080/"); return status == 0 })
	}
	list, err := w.client.CoreV1().Pods(w.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("%d Pods, %v", len(list.Items), err)
	}
}
