// Package conformance runs the conformance suite of the Gateway API and prints one line for each of its tests.
//
// The suite is made of Go tests, and their reasons of failure are only in the output of Go's test runner. The tests
// therefore run in a child process, the hidden command `conformance-tests`, whose output is read here.
package conformance

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"sigs.k8s.io/gateway-api/conformance/utils/flags"
)

// TestsCommand is the name of the hidden command.
const TestsCommand = "conformance-tests"

// options are this package's options. The suite's own are in flag.CommandLine.
type options struct {
	run, skip, report, log string
	limit                  time.Duration
}

// limitDefault is longer than the whole suite takes, even if many tests fail by a timeout.
const limitDefault = 2 * time.Hour

func parse(arguments []string) (*options, error) {
	o := &options{}
	set := flag.CommandLine
	set.Init("weir-kubernetes conformance", flag.ExitOnError)
	set.StringVar(&o.run, "run", "", "run only the tests whose name matches `REGEX`; others are left out of the report")
	set.StringVar(&o.skip, "skip", "", "skip the tests whose name matches `REGEX`; the report lists them")
	set.StringVar(&o.report, "report", "", "write the ConformanceReport to `FILE`")
	set.StringVar(&o.log, "log", "", "write the whole output of the tests to `FILE`")
	set.DurationVar(&o.limit, "time-limit", limitDefault, "end the tests after this `DURATION`; no report is written then")
	if err := set.Parse(arguments); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; options start with --", set.Arg(0))
	}
	if *flags.ConformanceOptionsFile == "" {
		// Options and the options file override these.
		for name, value := range defaults {
			if set.Lookup(name).Value.String() == "" {
				if err := set.Set(name, value); err != nil {
					return nil, err
				}
			}
		}
	}
	return o, nil
}

// defaults are values of the suite's options.
var defaults = map[string]string{
	// The addresses that the Gateway of the test GatewayStaticAddresses asks for: one that loadbalancers can give to a
	// Service, and one that it never gives.
	"usable-address": "10.245.255.250", "unusable-address": "192.0.2.1",
	// A report needs a description of Weir.
	"organization": "weir", "project": "weir", "url": "https://weir.invalid", "version": "development",
	"contact": "see CONTRIBUTING.md",
}

// Run is the command `conformance`. The error says how many tests failed.
func Run(arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	whole := io.Discard
	if o.log != "" {
		file, err := os.Create(o.log)
		if err != nil {
			return err
		}
		defer file.Close()
		whole = file
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	tests := exec.CommandContext(limited, self, append([]string{TestsCommand}, arguments...)...)
	// The kernel sends the death signal when the thread that started the child ends: keep it.
	runtime.LockOSThread()
	tests.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := tests.StdoutPipe()
	if err != nil {
		return err
	}
	tests.Stderr = tests.Stdout
	if err := tests.Start(); err != nil {
		return err
	}
	s := newSummary(os.Stdout)
	if err := s.read(output, whole); err != nil {
		return fmt.Errorf("the output of the tests could not be read: %w", err)
	}
	err = s.finish(tests.Wait())
	if limited.Err() != nil {
		return fmt.Errorf("the tests did not end within --time-limit %s and were stopped", o.limit)
	}
	return err
}
