// Startup, readiness and liveness probes.

package nodes

import (
	"context"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

// unreadyInterval is the interval of startup probes, and of readiness probes until the container is ready. A kubelet
// waits for periodSeconds; tests would wait with it.
const unreadyInterval = 100 * time.Millisecond

// tally changes its state after several contrary results in a row.
type tally struct {
	good                                bool
	row, successThreshold, failureLimit int32
}

func newTally(good bool, p *corev1.Probe) *tally {
	return &tally{good: good, successThreshold: max(p.SuccessThreshold, 1), failureLimit: max(p.FailureThreshold, 1)}
}

// add returns the state after one more result.
func (t *tally) add(success bool) bool {
	if success == t.good {
		t.row = 0
		return t.good
	}
	t.row++
	limit := t.failureLimit
	if success {
		limit = t.successThreshold
	}
	if t.row >= limit {
		t.good, t.row = success, 0
	}
	return t.good
}

// watch runs the probes of one run of the container, until the context ends with its process.
func (c *container) watch(ctx context.Context) {
	if p := c.spec.StartupProbe; p != nil && !c.waitStarted(ctx, p) {
		return
	}
	c.setProbed(true, c.spec.ReadinessProbe == nil)
	if p := c.spec.LivenessProbe; p != nil {
		go c.watchLiveness(ctx, p)
	}
	if p := c.spec.ReadinessProbe; p != nil {
		c.watchReadiness(ctx, p)
	}
}

// waitStarted reports whether the startup probe succeeded. The process ends if it fails for as long as is allowed.
func (c *container) waitStarted(ctx context.Context, p *corev1.Probe) bool {
	allowed := seconds(p.InitialDelaySeconds) + time.Duration(max(p.FailureThreshold, 1))*seconds(max(p.PeriodSeconds, 1))
	end := time.Now().Add(allowed)
	for pause(ctx, unreadyInterval) {
		if c.check(p) {
			return true
		}
		if time.Now().After(end) {
			c.restart("startup", p)
			return false
		}
	}
	return false
}

func (c *container) watchReadiness(ctx context.Context, p *corev1.Probe) {
	results := newTally(false, p)
	for wait := seconds(p.InitialDelaySeconds); pause(ctx, wait); {
		wait = unreadyInterval
		if results.add(c.check(p)) {
			wait = seconds(max(p.PeriodSeconds, 1))
		}
		if ctx.Err() == nil {
			c.setProbed(true, results.good)
		}
	}
}

func (c *container) watchLiveness(ctx context.Context, p *corev1.Probe) {
	results := newTally(true, p)
	for wait := seconds(p.InitialDelaySeconds); pause(ctx, wait); wait = seconds(max(p.PeriodSeconds, 1)) {
		if !results.add(c.check(p)) {
			if ctx.Err() == nil {
				c.restart("liveness", p)
			}
			return
		}
	}
}

// restart ends the process, because a probe failed; run starts the next one.
func (c *container) restart(probe string, p *corev1.Probe) {
	grace := c.pod.object.Spec.TerminationGracePeriodSeconds
	if p.TerminationGracePeriodSeconds != nil {
		grace = p.TerminationGracePeriodSeconds
	}
	log.Printf("Pod %s: container %s fails its %s probe and is restarted", c.pod.name(), c.spec.Name, probe)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.process != nil {
		terminate(c.process, time.Duration(*grace)*time.Second)
	}
}

// check runs a probe once.
func (c *container) check(p *corev1.Probe) bool {
	host := c.pod.network.address.String()
	timeout := seconds(max(p.TimeoutSeconds, 1))
	switch {
	case p.HTTPGet != nil:
		request, err := httpprobe.NewRequestForHTTPGetAction(p.HTTPGet, c.spec, host, "probe")
		if err != nil {
			return false
		}
		result, _, _ := httpprobe.New(false).Probe(request, timeout)
		return result == probe.Success || result == probe.Warning
	case p.TCPSocket != nil:
		port, err := probe.ResolveContainerPort(p.TCPSocket.Port, c.spec)
		if err != nil {
			return false
		}
		result, _, _ := tcpprobe.New().Probe(host, port, timeout)
		return result == probe.Success
	}
	// Pods with other probes are refused.
	return true
}

func seconds(count int32) time.Duration { return time.Duration(count) * time.Second }
