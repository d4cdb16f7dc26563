package nodes

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newTestOutput(t *testing.T) (*output, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return newOutput(file), path
}

func write(t *testing.T, o *output, text string) {
	t.Helper()
	if n, err := o.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
}

func copied(o *output, options corev1.PodLogOptions) string {
	var text strings.Builder
	_ = o.copy(context.Background(), &text, &options)
	return text.String()
}

func TestOutputsAreReadAsAsked(t *testing.T) {
	o, path := newTestOutput(t)
	write(t, o, "one\ntwo\nth")
	o.lines[0].at = time.Now().Add(-time.Hour)
	write(t, o, "ree\nunfinished")
	number := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		options corev1.PodLogOptions
		want    string
	}{
		{corev1.PodLogOptions{}, "one\ntwo\nthree\n"},
		{corev1.PodLogOptions{TailLines: number(1)}, "three\n"},
		{corev1.PodLogOptions{TailLines: number(0)}, ""},
		{corev1.PodLogOptions{TailLines: number(9)}, "one\ntwo\nthree\n"},
		{corev1.PodLogOptions{LimitBytes: number(6)}, "one\ntw"},
		{corev1.PodLogOptions{SinceSeconds: number(60)}, "two\nthree\n"},
		{corev1.PodLogOptions{SinceTime: &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}}, "one\ntwo\nthree\n"},
		{corev1.PodLogOptions{SinceTime: &metav1.Time{Time: time.Now().Add(time.Hour)}}, ""},
	} {
		if got := copied(o, c.options); got != c.want {
			t.Errorf("%v: %q instead of %q", c.options, got, c.want)
		}
	}
	stamped := copied(o, corev1.PodLogOptions{Timestamps: true, TailLines: number(1)})
	at, text, _ := strings.Cut(stamped, " ")
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil || text != "three\n" {
		t.Errorf("%q: %v", stamped, err)
	}
	o.end()
	if got := copied(o, corev1.PodLogOptions{Follow: true, TailLines: number(1)}); got != "unfinished" {
		t.Errorf("%q", got)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "one\ntwo\nthree\nunfinished" {
		t.Errorf("the file has %q: %v", text, err)
	}
}

func TestOutputsAreFollowedToTheirEnd(t *testing.T) {
	o, _ := newTestOutput(t)
	write(t, o, "one\n")
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(o.copy(context.Background(), writer, &corev1.PodLogOptions{Follow: true}))
	}()
	buffer := make([]byte, len("one\n"))
	if _, err := io.ReadFull(reader, buffer); err != nil || string(buffer) != "one\n" {
		t.Fatalf("%q: %v", buffer, err)
	}
	go func() {
		_, _ = o.Write([]byte("two\n"))
		o.end()
	}()
	if rest, err := io.ReadAll(reader); err != nil || string(rest) != "two\n" {
		t.Errorf("%q: %v", rest, err)
	}
}

func TestOutputsAreBounded(t *testing.T) {
	o, _ := newTestOutput(t)
	long := strings.Repeat("x", 3*lineBytesMax/2) + "\n"
	write(t, o, long)
	if len(o.lines) != 2 || copied(o, corev1.PodLogOptions{}) != long {
		t.Errorf("%d lines", len(o.lines))
	}
	for range outputBytesMax / lineBytesMax * 2 {
		write(t, o, long)
	}
	write(t, o, "last\n")
	if o.bytes > outputBytesMax || o.dropped == 0 {
		t.Errorf("%d bytes, %d lines dropped", o.bytes, o.dropped)
	}
	if text := copied(o, corev1.PodLogOptions{}); len(text) > outputBytesMax || !strings.HasSuffix(text, "\nlast\n") {
		t.Errorf("%d bytes", len(text))
	}
	// A reader that was slower goes on with what is kept.
	if lines, position, _, _ := o.after(1); len(lines) != len(o.lines) || position != o.dropped+len(o.lines) {
		t.Errorf("%d lines, position %d", len(lines), position)
	}
}
