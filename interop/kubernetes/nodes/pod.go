// The life of one Pod:
//
//	bound -> network -> files -> running <-> ready -> stopping -> confirmed
//
// A Pod whose Secret or ConfigMap does not exist yet waits for it, as with a kubelet.

package nodes

import (
	"context"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.test/interop/kubernetes/cluster"
)

const (
	// pollStarting is the interval between two checks of a Pod that is not ready, pollReady of one that is.
	pollStarting = 50 * time.Millisecond
	pollReady    = 500 * time.Millisecond
	// retry is the wait after a failed step.
	retry = 500 * time.Millisecond
)

type pod struct {
	agent *agent
	// object is the Pod as it was first seen: its specification does not change.
	object     *corev1.Pod
	network    *podNetwork
	containers []*container
	// outputs are those of the containers, by their names.
	outputs map[string]*outputs
	started metav1.Time
	// reported is the last status that was written, reportError the last error of a write that was logged.
	reported    corev1.PodStatus
	reportError string

	tokensMutex sync.Mutex
	tokens      map[string]token

	stopOnce sync.Once
	// stopping is closed when the Pod has to end, after grace was set.
	stopping chan struct{}
	grace    time.Duration
}

func newPod(a *agent, object *corev1.Pod) *pod {
	p := &pod{
		agent: a, object: object, outputs: map[string]*outputs{}, started: metav1.Now(), tokens: map[string]token{},
		stopping: make(chan struct{}),
	}
	for _, c := range object.Spec.Containers {
		p.outputs[c.Name] = &outputs{}
	}
	return p
}

// stop makes the Pod end. Later calls do nothing.
func (p *pod) stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		p.grace = grace
		close(p.stopping)
	})
}

// run returns after the Pod was stopped, or when the context ends.
func (p *pod) run(ctx context.Context) {
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.stopping:
			cancel()
		case <-alive.Done():
		}
	}()
	p.live(alive)

	// Without a deletion, the cluster ends: no grace period.
	var grace time.Duration
	select {
	case <-p.stopping:
		grace = p.grace
	default:
	}
	for _, c := range p.containers {
		c.stop(grace)
	}
	for _, c := range p.containers {
		c.wait()
	}
	if p.network != nil {
		p.agent.network.remove(p.network)
	}
	// The mounts below this folder are visible to the containers only, and have ended with them.
	if err := os.RemoveAll(p.folder()); err != nil {
		log.Printf("Pod %s: its files could not be removed: %v", p.name(), err)
	}
	if ctx.Err() == nil {
		p.confirmDeletion(ctx)
	}
}

// live brings the Pod up and reports its status until the context ends.
func (p *pod) live(ctx context.Context) {
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"bind", p.bind}, {"network", p.connect}, {"containers", p.prepare},
	}
	lastMessage := ""
	for _, step := range steps {
		for {
			err := step.run(ctx)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				break
			}
			message := err.Error()
			if message != lastMessage {
				log.Printf("Pod %s waits: %s: %s", p.name(), step.name, message)
				lastMessage = message
			}
			p.report(ctx, p.pending(message))
			if !pause(ctx, retry) {
				return
			}
		}
	}
	for _, c := range p.containers {
		c.run(ctx)
	}
	for {
		status, ready := p.status()
		interval := pollStarting
		if ready {
			interval = pollReady
		}
		if !p.report(ctx, status) {
			interval = retry
		}
		if !pause(ctx, interval) {
			return
		}
	}
}

// bind assigns the Pod to the Node, as a scheduler does.
func (p *pod) bind(ctx context.Context) error {
	if p.object.Spec.NodeName != "" {
		return nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.object.Namespace, Name: p.object.Name, UID: p.object.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: cluster.NodeName},
	}
	err := p.agent.client.CoreV1().Pods(p.object.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	if errors.IsNotFound(err) || errors.IsConflict(err) {
		// The Pod was deleted or bound meanwhile; the informer reports it.
		return nil
	}
	return err
}

func (p *pod) connect(context.Context) error {
	var err error
	p.network, err = p.agent.network.add()
	return err
}

// prepare writes the files of all containers.
func (p *pod) prepare(ctx context.Context) error {
	if err := unsupported(&p.object.Spec); err != nil {
		return err
	}
	p.containers = nil
	for i := range p.object.Spec.Containers {
		c, err := newContainer(ctx, p, &p.object.Spec.Containers[i])
		if err != nil {
			return err
		}
		p.containers = append(p.containers, c)
	}
	return nil
}

// confirmDeletion removes the Pod's object, unless another Pod has its name.
func (p *pod) confirmDeletion(ctx context.Context) {
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.object.UID))}
	lastMessage := ""
	for {
		err := p.agent.client.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, options)
		if err == nil || errors.IsNotFound(err) || errors.IsConflict(err) {
			return
		}
		if message := err.Error(); message != lastMessage {
			log.Printf("Pod %s: its deletion could not be confirmed and is tried again: %s", p.name(), message)
			lastMessage = message
		}
		if !pause(ctx, retry) {
			return
		}
	}
}

// report writes the status if it differs from the last one, and reports whether the API server has it. Each error is
// logged once, until a write succeeds.
func (p *pod) report(ctx context.Context, status corev1.PodStatus) bool {
	keepTransitionTimes(&status, p.reported)
	if reflect.DeepEqual(status, p.reported) {
		return true
	}
	if err := patchStatus(ctx, p.agent.client, p.object, status); err != nil {
		message := err.Error()
		if ctx.Err() == nil && !errors.IsNotFound(err) && message != p.reportError {
			log.Printf("Pod %s: its status could not be written and is tried again: %s", p.name(), message)
			p.reportError = message
		}
		return false
	}
	p.reported, p.reportError = status, ""
	return true
}

func (p *pod) name() string { return p.object.Namespace + "/" + p.object.Name }

func (p *pod) folder() string { return p.agent.state + "/pods/" + string(p.object.UID) }

// unsupported returns an error if the Pod uses a feature that this package does not implement.
func unsupported(spec *corev1.PodSpec) error {
	switch {
	case len(spec.InitContainers) > 0:
		return fmt.Errorf("init containers are not supported")
	case spec.HostNetwork:
		return fmt.Errorf("hostNetwork is not supported")
	case spec.RestartPolicy != corev1.RestartPolicyAlways:
		return fmt.Errorf("restartPolicy %s is not supported; use Always", spec.RestartPolicy)
	}
	for _, c := range spec.Containers {
		for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
			if p != nil && p.HTTPGet == nil && p.TCPSocket == nil {
				return fmt.Errorf("container %s: only the probes httpGet and tcpSocket are supported", c.Name)
			}
		}
		hooks := c.Lifecycle
		if hooks != nil && (hooks.PostStart != nil || hooks.PreStop != nil && hooks.PreStop.Sleep == nil) {
			return fmt.Errorf("container %s: of the lifecycle, only preStop.sleep is supported", c.Name)
		}
	}
	return nil
}

// hostname is the name that the Pod's containers see.
func (p *pod) hostname() string {
	if p.object.Spec.Hostname != "" {
		return p.object.Spec.Hostname
	}
	return p.object.Name
}

// hostFiles are files of /etc.
func (p *pod) hostFiles() files {
	hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost\n" + p.network.address.String() + "\t" + p.hostname() + "\n"
	for _, alias := range p.object.Spec.HostAliases {
		hosts += alias.IP + "\t" + strings.Join(alias.Hostnames, "\t") + "\n"
	}
	return files{
		"hosts":    {[]byte(hosts), modeDefault},
		"hostname": {[]byte(p.hostname() + "\n"), modeDefault},
	}
}

// pause waits and reports whether the context is still alive.
func pause(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
