// weir-pod is the small helper that runs inside a Pod:
//
//   - init prepares a container's file system;
//   - reap, executed by init, is the container's init process;
//   - dns is the DNS server that runs in place of CoreDNS;
//   - metrics is an external metrics API whose values a test sets;
//   - backend is an HTTP server that tells its name.
//
// It is a separate binary because it starts faster than one with Kubernetes in it.
package main

import (
	"fmt"
	"os"
	"runtime"
)

// The death signal that nodes sets, and capabilities, belong to a thread. Both are kept only if the process's first
// thread executes the next program: main stays on it.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: weir-pod init --root FOLDER --program PATH COMMAND... | dns | metrics | backend"))
	}
	switch os.Args[1] {
	case "init":
		fail(enter(os.Args[2:]))
	case "reap":
		code, err := reap(os.Args[2:])
		if err != nil {
			fail(err)
		}
		os.Exit(code)
	case "dns":
		fail(serveDNS())
	case "metrics":
		fail(serveMetrics())
	case "backend":
		if err := serveBackend(); err != nil {
			fail(err)
		}
	default:
		fail(fmt.Errorf("unknown command %q; use init, dns, metrics or backend", os.Args[1]))
	}
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "weir-pod: %v\n", err)
	os.Exit(1)
}
