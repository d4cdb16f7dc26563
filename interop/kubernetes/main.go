// weir-kubernetes is the test cluster for Weir's Gateway API controller in one binary: Kubernetes is linked once.
// scripts/kubernetes-cluster starts the parts; README.md describes them.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"weir.test/interop/kubernetes/conformance"
	"weir.test/interop/kubernetes/controllers"
	"weir.test/interop/kubernetes/loadbalancers"
	"weir.test/interop/kubernetes/nodes"
	"weir.test/interop/kubernetes/objects"
	"weir.test/interop/kubernetes/scale"
)

const usage = `usage: weir-kubernetes COMMAND [OPTION]...

  apiserver      kube-apiserver
  controllers    those of kube-controller-manager that the tests need
  nodes          runs Pods as processes, in place of a scheduler and kubelets
  loadbalancers  gives addresses to Services, in place of kube-proxy and a cloud's controller
  conformance    runs the conformance suite of the Gateway API
  scale          measures how fast changes of routes take effect
  apply          applies the objects of YAML files
  delete         deletes objects
  get            prints objects as YAML
  wait           waits until objects have a condition

Each command describes its options with --help. scripts/kubernetes-cluster starts a cluster.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	command, arguments := os.Args[1], os.Args[2:]
	// kube-apiserver reads os.Args.
	os.Args = append([]string{"weir-kubernetes " + command}, arguments...)
	switch command {
	case "apiserver":
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	case "controllers":
		exit(command, controllers.Run(arguments))
	case "scale":
		exit(command, scale.Run(arguments))
	case "apply":
		exit(command, objects.Apply(arguments))
	case "delete":
		exit(command, objects.Delete(arguments))
	case "get":
		exit(command, objects.Get(arguments))
	case "wait":
		exit(command, objects.Wait(arguments))
	case "nodes":
		exit(command, nodes.Run(arguments))
	case "loadbalancers":
		exit(command, loadbalancers.Run(arguments))
	case conformance.TestsCommand:
		conformance.RunTests(arguments)
	case "conformance":
		exit(command, conformance.Run(arguments))
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
}

func exit(command string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "weir-kubernetes %s: %v\n", command, err)
		os.Exit(1)
	}
}
