// The init process of a container: it runs the program as its child, because the first process of a PID namespace
// does not get the default actions of signals, and has to collect the exit statuses of orphaned processes.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// rootUser is the user and the group that run a command by default.
const rootUser = "0:0"

// reap runs the command and returns its exit code. The arguments are the user and the command. The kernel kills the
// other processes of the PID namespace when this one exits.
func reap(arguments []string) (int, error) {
	if len(arguments) < 2 {
		return 0, fmt.Errorf("reap needs UID:GID and a command")
	}
	user, command := arguments[0], arguments[1:]
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, err
	}
	credential, err := credentialOf(user)
	if err != nil {
		return 0, err
	}
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	child, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Credential: credential},
	})
	if err != nil {
		return 0, fmt.Errorf("%s could not be executed: %w", command[0], err)
	}
	go func() {
		// Only once: nodes repeats the signal, and a program may take a second one as an order to skip its drain.
		<-terminate
		_ = syscall.Kill(child, syscall.SIGTERM)
	}()
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for %s: %w", command[0], err)
		case ended != child:
			// An orphaned process.
		case status.Signaled():
			fmt.Fprintf(os.Stderr, "weir-pod: a signal ended the program: %v\n", status.Signal())
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}

// credentialOf parses UID:GID. It returns nil for root, who keeps the capabilities.
func credentialOf(user string) (*syscall.Credential, error) {
	if user == rootUser {
		return nil, nil
	}
	first, second, _ := strings.Cut(user, ":")
	uid, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %q is not UID:GID", user)
	}
	gid, err := strconv.ParseUint(second, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %q is not UID:GID", user)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
