package conformance

import (
	"io"
	"strings"
	"testing"
)

// The output of Go's test runner in its mode test2json.
const recorded = "\x16=== RUN   Conformance\n" +
	"\x16=== RUN   Conformance/Passes\n" +
	"\x16=== NAME  Conformance/Passes\n" +
	"    apply.go:1: 2026-11-29T11:00:00.0Z: applied\n" +
	"\x16=== RUN   Conformance/Fails\n" +
	"\x16=== RUN   Conformance/Fails/part\n" +
	"    helpers.go:312: \n" +
	"        \tError Trace:\t/a.go:312\n" +
	"        \tError:      \tReceived unexpected error:\n" +
	"        \t            \tcontext deadline exceeded\n" +
	"        \tTest:       \tConformance/Fails/part\n" +
	"        \tMessages:   \terror waiting for the Gateway\n" +
	"\x16--- FAIL: Conformance/Fails (1.50s)\n" +
	"\x16    --- FAIL: Conformance/Fails/part (1.00s)\n" +
	"\x16--- PASS: Conformance/Passes (0.50s)\n" +
	"\x16=== RUN   Conformance/Unsupported\n" +
	"    conformance.go:3: Skipping Unsupported: suite does not support Mesh\n" +
	"\x16--- SKIP: Conformance/Unsupported (0.00s)\n" +
	"\x16=== RUN   Conformance/Hangs\n" +
	"panic: it hangs\n" +
	"\x16=== NAME  \n" +
	"FAIL\n"

func TestEachTestHasOneLine(t *testing.T) {
	var out strings.Builder
	s := newSummary(&out)
	if err := s.read(strings.NewReader(recorded), io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := s.finish(nil); err == nil {
		t.Error("no error, although tests failed")
	}
	want := `FAIL Fails (1.50s): error waiting for the Gateway: context deadline exceeded
PASS Passes (0.50s)
SKIP Unsupported (0.00s): Skipping Unsupported: suite does not support Mesh
FAIL Hangs (did not end): panic: it hangs
1 passed, 2 failed, 1 skipped
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
