// The output of a container: the lines of its standard output and error, with the times at which they were written.
//
// Only the newest lines are kept, of the current and of the previous run of the program.

package nodes

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// outputBytesMax is how much text of a run is kept: older lines are dropped.
	outputBytesMax = 16 << 20
	// lineBytesMax is the length of a line; a longer one is split.
	lineBytesMax = 16 << 10
	// lineOverhead is the memory of a line without its text, roughly.
	lineOverhead = 64
)

// line is a line of the output, with its end of line.
type line struct {
	at   time.Time
	text []byte
}

// output has the lines of one run of a container's program.
type output struct {
	// file gets the same text, for those who look for it after the cluster has ended.
	file *os.File

	mutex sync.Mutex
	lines []line
	// dropped is how many lines came before lines[0].
	dropped int
	bytes   int
	// unfinished is a line without its end.
	unfinished []byte
	ended      bool
	// changed is closed and replaced when there are more lines, or when the run has ended.
	changed chan struct{}
}

func newOutput(file *os.File) *output { return &output{file: file, changed: make(chan struct{})} }

// Write takes what the program has written.
func (o *output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for rest := text; len(rest) > 0; {
		part, isWhole := rest, false
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			part, isWhole = rest[:end+1], true
		}
		if room := lineBytesMax - len(o.unfinished); len(part) >= room {
			part, isWhole = part[:room], true
		}
		o.unfinished = append(o.unfinished, part...)
		rest = rest[len(part):]
		if isWhole {
			o.finishLine()
		}
	}
	o.wake()
	return o.file.Write(text)
}

// end ends the run's output.
func (o *output) end() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.unfinished) > 0 {
		o.finishLine()
	}
	o.ended = true
	o.wake()
}

// finishLine moves the unfinished line to the others. The caller holds the mutex.
func (o *output) finishLine() {
	o.lines = append(o.lines, line{time.Now(), bytes.Clone(o.unfinished)})
	o.bytes += len(o.unfinished) + lineOverhead
	o.unfinished = o.unfinished[:0]
	for o.bytes > outputBytesMax {
		o.bytes -= len(o.lines[0].text) + lineOverhead
		o.lines[0] = line{}
		o.lines = o.lines[1:]
		o.dropped++
	}
}

func (o *output) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// after returns the lines from a position on, the position after them, whether more can follow, and a channel that is
// closed when they do.
func (o *output) after(position int) ([]line, int, bool, <-chan struct{}) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	// Cloned: dropped lines are cleared in place.
	lines := slices.Clone(o.lines[max(0, position-o.dropped):])
	return lines, o.dropped + len(o.lines), !o.ended, o.changed
}

// copy writes what the options ask for. With `follow`, it returns when the run or the context has ended.
func (o *output) copy(ctx context.Context, to io.Writer, options *corev1.PodLogOptions) error {
	lines, position, isOpen, changed := o.after(0)
	if tail := options.TailLines; tail != nil {
		lines = lines[len(lines)-int(min(*tail, int64(len(lines)))):]
	}
	if options.LimitBytes != nil {
		to = &limited{to, *options.LimitBytes}
	}
	since := sinceOf(options)
	for {
		for _, one := range lines {
			if one.at.Before(since) {
				continue
			}
			text := one.text
			if options.Timestamps {
				text = append(one.at.UTC().AppendFormat(nil, timestamp), text...)
			}
			if _, err := to.Write(text); err != nil {
				return err
			}
		}
		if !options.Follow || !isOpen {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		lines, position, isOpen, changed = o.after(position)
	}
}

// timestamp is the format of the times before lines. All digits are written, so that lines can be sorted.
const timestamp = "2006-01-02T15:04:05.000000000Z07:00 "

// sinceOf returns the time of the oldest line that is asked for.
func sinceOf(options *corev1.PodLogOptions) time.Time {
	switch {
	case options.SinceTime != nil:
		return options.SinceTime.Time
	case options.SinceSeconds != nil:
		return time.Now().Add(-time.Duration(*options.SinceSeconds) * time.Second)
	default:
		return time.Time{}
	}
}

// limited fails with io.EOF after a number of bytes.
type limited struct {
	to   io.Writer
	left int64
}

func (l *limited) Write(text []byte) (int, error) {
	part := text[:min(int64(len(text)), l.left)]
	written, err := l.to.Write(part)
	l.left -= int64(written)
	if err == nil && l.left == 0 {
		err = io.EOF
	}
	return written, err
}

// outputs are those of a container's last two runs.
type outputs struct {
	mutex             sync.Mutex
	current, previous *output
}

// begin starts the output of a run.
func (o *outputs) begin(file *os.File) *output {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.previous, o.current = o.current, newOutput(file)
	return o.current
}

// of returns the output of the current or of the previous run; nil if there is none.
func (o *outputs) of(previous bool) *output {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if previous {
		return o.previous
	}
	return o.current
}
