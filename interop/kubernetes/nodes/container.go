// A container: a program that is restarted when it ends.
//
// The process that this package starts is weir-pod, as the init process of a PID namespace; the program is its child.
// When weir-pod ends, the kernel kills every process of the namespace before it reports the end.

package nodes

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

const (
	// The wait before a restart doubles up to a maximum.
	restartWait    = time.Second
	restartWaitMax = 30 * time.Second
	// terminateInterval is the wait before SIGTERM is repeated. The kernel discards signals to the init process of a
	// PID namespace until it handles them; weir-pod forwards only the first.
	terminateInterval = time.Second
	// startFailed is the exit code of a container whose process could not be started.
	startFailed = 128
)

type container struct {
	pod  *pod
	spec *corev1.Container
	// arguments are those of weir-pod.
	arguments []string
	env       []string
	root      string
	// mounts are the folders that the container shares, mounted the volumes that are kept up to date.
	mounts  []string
	mounted []*mounted
	done    sync.WaitGroup

	// checked is the process whose sockets were checked last, and sockets are those of that check.
	checked int
	sockets sockets
	// wasReady reports that the checked process has been ready.
	wasReady bool

	mutex sync.Mutex
	// process is nil while the container does not run.
	process   *os.Process
	startedAt metav1.Time
	// started and probedReady are the results of the probes; without probes, both are true while it runs.
	started, probedReady bool
	restarts             int32
	lastError            string
	last                 *corev1.ContainerStateTerminated
	stopped              bool
}

// newContainer writes the container's files and resolves its environment and its command.
func newContainer(ctx context.Context, p *pod, spec *corev1.Container) (*container, error) {
	c := &container{pod: p, spec: spec, root: filepath.Join(p.folder(), spec.Name)}
	image, err := p.agent.images.command(spec.Image)
	if err != nil {
		return nil, err
	}
	env, err := environment(ctx, p, spec)
	if err != nil {
		return nil, err
	}
	for name, value := range env {
		c.env = append(c.env, name+"="+value)
	}
	// An earlier attempt may have left files. Nothing is mounted before the first start.
	if err := os.RemoveAll(c.root); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return nil, err
	}
	if err := c.mountVolumes(ctx); err != nil {
		return nil, err
	}
	if err := writeFiles(filepath.Join(c.root, "etc"), p.hostFiles()); err != nil {
		return nil, err
	}
	directory := spec.WorkingDir
	if directory == "" {
		directory = "/"
	}
	c.arguments = []string{
		"init", "--root", c.root, "--directory", directory, "--hostname", p.hostname(), "--program", image[0],
		"--user", user(&p.object.Spec, spec),
	}
	for _, mount := range c.mounts {
		c.arguments = append(c.arguments, "--mount", mount)
	}
	c.arguments = append(c.arguments, "--")
	expand := expansion.MappingFuncFor(env)
	for i, word := range command(image, spec.Command, spec.Args) {
		if i >= len(image) || len(spec.Command) > 0 {
			word = expansion.Expand(word, expand)
		}
		c.arguments = append(c.arguments, word)
	}
	return c, nil
}

// command returns the words of the container's command; an empty first word stands for the image's program. A
// `command` replaces the program and the arguments of the image, unless its first word has the program's name: then
// only the arguments are replaced.
func command(image, command, arguments []string) []string {
	words := append([]string{""}, image[1:]...)
	if len(command) > 0 {
		words = slices.Clone(command)
		if filepath.Base(command[0]) == filepath.Base(image[0]) {
			words[0] = ""
		}
	}
	return append(words, arguments...)
}

// user returns the user and the group that run the container's command.
func user(pod *corev1.PodSpec, spec *corev1.Container) string {
	var uid, gid int64
	if context := pod.SecurityContext; context != nil {
		uid, gid = first(context.RunAsUser, uid), first(context.RunAsGroup, gid)
	}
	if context := spec.SecurityContext; context != nil {
		uid, gid = first(context.RunAsUser, uid), first(context.RunAsGroup, gid)
	}
	return fmt.Sprintf("%d:%d", uid, gid)
}

func first(id *int64, otherwise int64) int64 {
	if id == nil {
		return otherwise
	}
	return *id
}

// run starts the process, and starts it again when it ends, until the context ends.
func (c *container) run(ctx context.Context) {
	if len(c.mounted) > 0 {
		c.done.Go(func() { c.refresh(ctx) })
	}
	c.done.Go(func() {
		for wait := restartWait; ; wait = min(2*wait, restartWaitMax) {
			err := c.once(ctx)
			if ctx.Err() != nil {
				return
			}
			log.Printf("Pod %s: container %s ended and is restarted in %s: %v; its log is %s",
				c.pod.name(), c.spec.Name, wait, err, c.logFile())
			if !pause(ctx, wait) {
				return
			}
			c.mutex.Lock()
			c.restarts++
			c.mutex.Unlock()
		}
	})
}

// once runs the program until it ends, and returns why it ended. None of its processes is left then.
func (c *container) once(ctx context.Context) error {
	file, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	output := c.pod.outputs[c.spec.Name].begin(file)
	defer output.end()
	command := exec.Command(c.pod.agent.program, c.arguments...)
	command.Env, command.Stdout, command.Stderr = c.env, output, output

	c.mutex.Lock()
	if c.stopped || ctx.Err() != nil {
		c.mutex.Unlock()
		return context.Canceled
	}
	err = c.pod.agent.starter.start(command, c.pod.network.namespace)
	if err == nil {
		c.process, c.startedAt = command.Process, metav1.Now()
	}
	c.mutex.Unlock()

	code := int32(startFailed)
	if err == nil {
		running, ended := context.WithCancel(ctx)
		go c.watch(running)
		if err = command.Wait(); err == nil {
			err = fmt.Errorf("exit status 0")
		}
		ended()
		code = int32(command.ProcessState.ExitCode())
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.process, c.started, c.probedReady, c.lastError = nil, false, false, err.Error()
	c.last = &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", Message: err.Error(), StartedAt: c.startedAt, FinishedAt: metav1.Now(),
	}
	if code == 0 {
		c.last.Reason = "Completed"
	}
	return err
}

// setProbed stores results of probes.
func (c *container) setProbed(started, ready bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.process != nil {
		c.started, c.probedReady = started, ready
	}
}

// stop waits as preStop demands, sends SIGTERM to the program, and SIGKILL to all processes of the container after the
// grace period.
func (c *container) stop(grace time.Duration) {
	var sleep time.Duration
	if hooks := c.spec.Lifecycle; hooks != nil && hooks.PreStop != nil && hooks.PreStop.Sleep != nil {
		sleep = min(grace, time.Duration(hooks.PreStop.Sleep.Seconds)*time.Second)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.stopped = true
	if c.process == nil {
		return
	}
	process := c.process
	time.AfterFunc(sleep, func() { terminate(process, grace-sleep) })
}

// terminate sends SIGTERM to a process until it ends, and SIGKILL after the grace period.
func terminate(process *os.Process, grace time.Duration) {
	go func() {
		// A signal fails only if the process has already ended.
		for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(min(terminateInterval, time.Until(end))) {
			if process.Signal(syscall.SIGTERM) != nil {
				return
			}
		}
		_ = process.Kill()
	}()
}

// wait returns when the process has ended and is not restarted.
func (c *container) wait() { c.done.Wait() }

func (c *container) status() corev1.ContainerStatus {
	c.mutex.Lock()
	process, startedAt, restarts, lastError, last := c.process, c.startedAt, c.restarts, c.lastError, c.last
	started, ready := c.started, c.probedReady
	c.mutex.Unlock()
	status := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, RestartCount: restarts, Started: &started,
	}
	status.LastTerminationState.Terminated = last
	if process != nil {
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: startedAt}
		status.Ready = ready && (c.spec.ReadinessProbe != nil || c.listens(process.Pid, startedAt.Time))
	} else {
		reason := "CrashLoopBackOff"
		if lastError == "" {
			reason = "ContainerCreating"
		}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: lastError}
	}
	return status
}

func (c *container) logFile() string {
	object := c.pod.object
	return filepath.Join(c.pod.agent.state, "logs", object.Namespace+"_"+object.Name+"_"+c.spec.Name+".log")
}
