// A constant load on routes that do not change. Every response has to be the expected one.

package scale

import (
	"context"
	"sync"
	"time"
)

// loadConnections share the load: each has its own schedule.
const loadConnections = 8

// load is what one phase of requests measured. Latency counts from the scheduled start of a request, so that a stall
// counts for all requests that should have been sent meanwhile.
type load struct {
	requests int
	latency  []time.Duration
	failures problems
	closed   int
}

// loader sends requests to the Gateway's address.
type loader struct {
	address  string
	rate     int
	requests [][]byte
	want     want
}

// run sends requests until the context ends.
func (l *loader) run(ctx context.Context) *load {
	total := &load{}
	parts := make([]load, loadConnections)
	interval := time.Second * loadConnections / time.Duration(l.rate)
	started := time.Now()
	var running sync.WaitGroup
	for i := range parts {
		first := started.Add(interval * time.Duration(i) / loadConnections)
		running.Go(func() { l.connection(ctx, &parts[i], total, i, first, interval) })
	}
	running.Wait()
	for i := range parts {
		total.requests += parts[i].requests
		total.closed += parts[i].closed
		total.latency = append(total.latency, parts[i].latency...)
	}
	return total
}

// connection sends every interval; part is its own, and total has the failures of all.
func (l *loader) connection(ctx context.Context, part, total *load, index int, first time.Time, interval time.Duration) {
	connection := newConnection(l.address)
	defer connection.close()
	for scheduled := first; pause(ctx, time.Until(scheduled)); scheduled = scheduled.Add(interval) {
		request := l.requests[(part.requests*loadConnections+index)%len(l.requests)]
		answer, err := connection.ask(request)
		part.requests++
		part.latency = append(part.latency, time.Since(scheduled))
		switch {
		case err != nil:
			total.failures.add("request %d of connection %d: %v", part.requests, index, err)
		case !l.want.met(answer):
			total.failures.add("request %d of connection %d: %s", part.requests, index, answer)
		}
	}
	part.closed = connection.closed
}

// pause waits, and reports whether the context has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
