// Starts processes in the network namespaces of Pods.

package nodes

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// starter owns one thread that starts every process. The kernel kills a process with the thread that started it
// (PDEATHSIG), so this thread lives as long as the program.
type starter struct {
	requests chan startRequest
}

type startRequest struct {
	command   *exec.Cmd
	namespace netns.NsHandle
	result    chan error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest)}
	go s.serve()
	return s
}

// start starts the command in the network namespace, and in new mount, PID and UTS namespaces. A death signal is not
// inherited by further processes; the kernel kills them with the first process of the PID namespace.
func (s *starter) start(command *exec.Cmd, namespace netns.NsHandle) error {
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS,
		Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
		Setpgid:      true,
	}
	result := make(chan error, 1)
	s.requests <- startRequest{command, namespace, result}
	return <-result
}

func (s *starter) serve() {
	runtime.LockOSThread()
	home, err := netns.Get()
	for request := range s.requests {
		if err != nil {
			request.result <- fmt.Errorf("the current network namespace could not be opened: %w", err)
			continue
		}
		request.result <- startIn(request, home)
	}
}

func startIn(request startRequest, home netns.NsHandle) error {
	if err := unix.Setns(int(request.namespace), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("the Pod's network namespace could not be entered: %w", err)
	}
	started := request.command.Start()
	if err := unix.Setns(int(home), unix.CLONE_NEWNET); err != nil {
		// Every later process would start in the wrong network.
		panic(fmt.Sprintf("the cluster's network namespace could not be entered again: %v", err))
	}
	return started
}
