// Package scale measures how fast changes of HTTPRoutes take effect in a cluster with many of them. The idea is that of
// https://github.com/howardjohn/gateway-api-bench.
//
// The phases: routes are attached; then a constant load starts, and routes are created, changed and deleted at a
// constant rate. After each write, every Pod of Weir gets probes until it answers as the change demands.
package scale

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"

	"weir.test/interop/kubernetes/cluster"
)

type options struct {
	kubeconfig, json              string
	routes, changes, services     int
	attachRate, rate, load        int
	namespace, deployment         string
	pods, podChanges              int
	limit, baseline, podsInterval time.Duration
	checkOnly                     bool
}

func parse(arguments []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("scale", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"),
		"`FILE` with the API server's address and credentials; $KUBECONFIG by default")
	flags.IntVar(&o.routes, "routes", 1000, "attach `N` HTTPRoutes, each with its own hostname")
	flags.IntVar(&o.attachRate, "attach-rate", 200, "attach at most `N` routes each second")
	flags.IntVar(&o.changes, "changes", 400, "then make `N` changes: in turn, a route is created, gets another backend, "+
		"another path, and is deleted")
	flags.IntVar(&o.rate, "rate", 20, "make `N` changes each second")
	flags.IntVar(&o.load, "load", 200, "send `N` requests each second to routes that do not change")
	flags.IntVar(&o.services, "services", 10, "put `N` Services in front of each of the two backends")
	flags.IntVar(&o.pods, "pods", 0, "give Weir `N` Pods; 0 keeps those of its manifests")
	flags.IntVar(&o.podChanges, "pod-changes", 0, "at the end, add and remove Pods of the loaded backend `N` times")
	flags.DurationVar(&o.podsInterval, "pod-interval", 5*time.Second, "the `DURATION` between two of --pod-changes")
	flags.DurationVar(&o.limit, "limit", 30*time.Second, "give a change up after this `DURATION`")
	flags.DurationVar(&o.baseline, "baseline", 5*time.Second, "the `DURATION` of the load before the first change")
	flags.StringVar(&o.namespace, "weir-namespace", "weir-system", "the `NAMESPACE` of Weir's Deployment")
	flags.StringVar(&o.deployment, "weir-deployment", "weir", "the `NAME` of Weir's Deployment")
	flags.StringVar(&o.json, "json", "", "write the results to `FILE`, too")
	flags.BoolVar(&o.checkOnly, "check", false, "check the options, and measure nothing")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; options start with --", flags.Arg(0))
	}
	return o, o.check()
}

// routesMin leaves routes for the load, and enough others for the changes.
const routesMin = 20

func (o *options) check() error {
	bounds := []struct {
		name            string
		value, min, max int
	}{
		{"routes", o.routes, routesMin, 50_000}, {"attach-rate", o.attachRate, 1, 10_000},
		{"changes", o.changes, 0, 100_000}, {"rate", o.rate, 1, 1000}, {"load", o.load, 1, 10_000},
		{"services", o.services, 1, 1000}, {"pods", o.pods, 0, 20}, {"pod-changes", o.podChanges, 0, 1000},
	}
	for _, b := range bounds {
		if b.value < b.min || b.value > b.max {
			return fmt.Errorf("--%s is %d; it must be %d to %d", b.name, b.value, b.min, b.max)
		}
	}
	if o.limit <= 0 || o.baseline <= 0 || o.podsInterval <= 0 {
		return fmt.Errorf("--limit, --baseline and --pod-interval must be greater than 0")
	}
	return nil
}

// Run is the command `scale`. The error says that requests failed, or changes had no effect.
func Run(arguments []string) error {
	o, err := parse(arguments)
	if err != nil || o.checkOnly {
		return err
	}
	if err := cluster.RequireNamespace(); err != nil {
		return err
	}
	config, err := cluster.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	access, err := newAPI(config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	interrupted, stop := cluster.Interrupted()
	defer stop()
	m := &measurement{
		options: o, api: access, statuses: newStatuses(), free: make(chan *route, o.routes+o.changes),
		bed: testbed{client: client, namespace: o.namespace, deployment: o.deployment},
	}
	if err := m.run(interrupted); err != nil {
		return err
	}
	results := m.results()
	results.print(os.Stdout)
	if o.json != "" {
		if err := results.write(o.json); err != nil {
			return err
		}
	}
	return results.verdict()
}

// log prints progress.
func log(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, arguments...)...)
}

// progressInterval is the time between two lines of progress.
const progressInterval = 5 * time.Second

// progress prints a text regularly, until the returned function is called.
func progress(ctx context.Context, text func() string) context.CancelFunc {
	running, stop := context.WithCancel(ctx)
	go func() {
		for pause(running, progressInterval) {
			log("%s", text())
		}
	}()
	return stop
}
