// The child process that runs the suite under Go's test runner.

package conformance

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/yaml"
)

// root is the name of the Go test that holds the suite's tests.
const root = "Conformance"

// RunTests is the command `conformance-tests`. It ends the process.
func RunTests(arguments []string) {
	testing.Init()
	o, err := parse(arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// This mode marks the lines of the test runner, and writes a line whenever the output changes to another test.
	for name, value := range map[string]string{"test.v": "test2json", "test.timeout": "0"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	all := func(_, _ string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: root, F: o.test}}, nil, nil)
}

func (o *options) test(t *testing.T) {
	selected, err := o.selected(tests.ConformanceTests)
	require.NoError(t, err)
	settings := conformance.DefaultOptions(t)
	skipped, err := matching(o.skip, selected)
	require.NoError(t, err)
	settings.SkipTests = append(settings.SkipTests, skipped...)

	s, err := suite.NewConformanceTestSuite(settings)
	require.NoError(t, err, "the suite could not be prepared")
	if o.report != "" {
		// Runs after the suite's own clean-up functions, when a report can be made.
		t.Cleanup(func() { require.NoError(t, writeReport(s, o.report)) })
	}
	s.Setup(t, tests.ConformanceTests)
	require.NoError(t, s.Run(t, selected))
}

// selected returns the tests that --run selects.
func (o *options) selected(all []suite.ConformanceTest) ([]suite.ConformanceTest, error) {
	if o.run == "" {
		return all, nil
	}
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	var found []suite.ConformanceTest
	for _, test := range all {
		if pattern.MatchString(test.ShortName) {
			found = append(found, test)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("--run %s matches none of the suite's %d tests", o.run, len(all))
	}
	return found, nil
}

// matching returns the names of the tests that --skip selects.
func matching(skip string, all []suite.ConformanceTest) ([]string, error) {
	if skip == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(skip)
	if err != nil {
		return nil, fmt.Errorf("--skip: %w", err)
	}
	var names []string
	for _, test := range all {
		if pattern.MatchString(test.ShortName) {
			names = append(names, test.ShortName)
		}
	}
	return names, nil
}

func writeReport(s *suite.ConformanceTestSuite, file string) error {
	report, err := s.Report()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(report)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
