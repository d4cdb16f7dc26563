// Turns the output of Go's test runner into one line for each test of the suite.

package conformance

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	// lineMax is the longest line of the tests' output, in bytes.
	lineMax = 16 << 20
	// reasonMax is the longest reason that is printed, in bytes.
	reasonMax = 400
	// setup holds the output that belongs to no test of the suite.
	setup = "setup"
)

var (
	// The test runner marks its lines with ^V.
	switched = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE)\s*(\S*)$`)
	ended    = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) \((.+)\)$`)
	// A line of a test's log begins with a file and a line number; tlog adds a time.
	logged = regexp.MustCompile(`^\w+\.go:\d+: (?:\S+T\S+: )?(.*)$`)
)

// summary collects the reasons of failures, and counts results.
type summary struct {
	out     io.Writer
	current string
	reasons map[string]*reason
	counts  map[string]int
	// open are the tests that have begun and not ended, done those that have ended.
	open, done map[string]bool
	// failed reports that the root test failed.
	failed bool
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out: out, current: setup, reasons: map[string]*reason{}, counts: map[string]int{},
		open: map[string]bool{}, done: map[string]bool{},
	}
}

// read reads the output to its end, and copies it to whole.
func (s *summary) read(output io.Reader, whole io.Writer) error {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		line := strings.TrimLeft(lines.Text(), "\x16")
		if _, err := fmt.Fprintln(whole, line); err != nil {
			return err
		}
		s.line(strings.TrimSpace(line))
	}
	return lines.Err()
}

func (s *summary) line(line string) {
	if match := switched.FindStringSubmatch(line); match != nil {
		s.current = suiteTest(match[1])
		if s.current != setup && !s.done[s.current] {
			s.open[s.current] = true
		}
		return
	}
	if line == "PASS" || line == "FAIL" {
		// The test runner's last line.
		return
	}
	match := ended.FindStringSubmatch(line)
	if match == nil {
		s.reason(s.current).add(line)
		return
	}
	result, name, took := match[1], match[2], match[3]
	switch test := suiteTest(name); {
	case name == root:
		s.failed = result == "FAIL"
	case name == root+"/"+test:
		s.end(result, test, took)
	}
}

// end prints the line of a test.
func (s *summary) end(result, test, took string) {
	s.counts[result]++
	delete(s.open, test)
	s.done[test] = true
	if result == "PASS" {
		fmt.Fprintf(s.out, "PASS %s (%s)\n", test, took)
		return
	}
	fmt.Fprintf(s.out, "%s %s (%s): %s\n", result, test, took, s.reason(test))
}

// finish prints the totals. The error says what failed.
func (s *summary) finish(exited error) error {
	for _, test := range slices.Sorted(maps.Keys(s.open)) {
		s.end("FAIL", test, "did not end")
	}
	if s.counts["FAIL"] == 0 && (s.failed || exited != nil) {
		s.end("FAIL", setup, "before or after the tests")
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.counts["PASS"], s.counts["FAIL"], s.counts["SKIP"])
	if s.counts["FAIL"] > 0 {
		return fmt.Errorf("failed tests: %d; run again with --log FILE for their whole output", s.counts["FAIL"])
	}
	return nil
}

func (s *summary) reason(test string) *reason {
	if s.reasons[test] == nil {
		s.reasons[test] = &reason{}
	}
	return s.reasons[test]
}

// suiteTest returns the suite's test to which a Go test belongs.
func suiteTest(name string) string {
	parts := strings.Split(name, "/")
	if len(parts) < 2 {
		return setup
	}
	return parts[1]
}

// reason is why a test failed or was skipped: its first failed assertion, or else its last line.
type reason struct {
	// section is the part of an assertion's text that is being read.
	section string
	found   map[string]string
	last    string
}

// sections are the parts of an assertion's text.
var sections = []string{"Error Trace:", "Error:", "Test:", "Messages:"}

func (r *reason) add(line string) {
	if match := logged.FindStringSubmatch(line); match != nil {
		r.section = ""
		if match[1] != "" {
			r.last = match[1]
		}
		return
	}
	for _, section := range sections {
		if text, ok := strings.CutPrefix(line, section); ok {
			r.section = section
			// Only the first assertion counts.
			if r.found[section] != "" {
				r.section = ""
			}
			line = text
			break
		}
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	if r.section == "" {
		r.last = line
		return
	}
	if r.found == nil {
		r.found = map[string]string{}
	}
	r.found[r.section] = strings.TrimSpace(r.found[r.section] + " " + line)
}

func (r *reason) String() string {
	text := r.last
	if failure := r.found["Error:"]; failure != "" {
		text = strings.TrimPrefix(failure, "Received unexpected error: ")
		if message := r.found["Messages:"]; message != "" {
			text = message + ": " + text
		}
	}
	if text == "" {
		text = "no reason was given"
	}
	if len(text) > reasonMax {
		text = strings.ToValidUTF8(text[:reasonMax], "") + "..."
	}
	return text
}
