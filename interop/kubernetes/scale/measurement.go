// The phases of a measurement.

package scale

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writers send the writes of changes, so that one slow answer does not delay the next write.
	writers = 32
	// probersPerPod share the changes: a change does not wait for the probes of all others.
	probersPerPod = 4
	// loadRoutes are the routes with the constant load: they never change.
	loadRoutes = 10
)

type measurement struct {
	options  *options
	bed      testbed
	api      *api
	statuses *statuses
	routes   []*route
	// free are the routes that may change, those that waited longest first.
	free chan *route
	// probers has probersPerPod of each Pod, one Pod after the other.
	probers []*prober
	settled atomic.Int64

	// attached are the creations of the first phase, made the changes of the second one.
	attached, made                    []*change
	started                           time.Time
	attachTook, acceptTook, serveTook time.Duration
	baselineTook, changesTook         time.Duration
	quiet, changing, rolling          *load
	rolled                            int
	// before, filled, loaded and after are what Weir's Pods had used at the ends of phases.
	before, filled, loaded, after []usage
	restarted                     int
	own                           time.Duration
	// The problems of all probers.
	unexpected, reverted, lost problems
}

// run measures, until all phases have ended or one of them failed.
func (m *measurement) run(ctx context.Context) error {
	log("waiting for Weir's Pods and the Gateway")
	if err := m.bed.prepare(ctx, m.api, m.options.pods); err != nil {
		return err
	}
	for _, backend := range []byte{backendA, backendB} {
		if err := m.api.addServices(ctx, backend, m.options.services); err != nil {
			return err
		}
	}
	watching, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := m.statuses.watch(watching, m.api); err != nil {
			cancel(err)
		}
	}()
	phases := []func(context.Context) error{m.attach, m.serve, m.accept, m.rest, m.change, m.roll, m.finish}
	for _, phase := range phases {
		if err := phase(watching); err != nil {
			return err
		}
	}
	return nil
}

// paced calls f for 0 to count-1 at a constant rate, in several goroutines, until one of them fails.
func paced(ctx context.Context, count, rate int, f func(ctx context.Context, index int, scheduled time.Time) error) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for {
				index := int(next.Add(1)) - 1
				scheduled := started.Add(time.Duration(index) * time.Second / time.Duration(rate))
				if index >= count || !pause(running, time.Until(scheduled)) {
					return
				}
				if err := f(running, index, scheduled); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(running)
}

// attach creates the routes.
func (m *measurement) attach(ctx context.Context) error {
	var err error
	if m.before, err = m.bed.usage(); err != nil {
		return err
	}
	m.attached = make([]*change, m.options.routes)
	for i := range m.attached {
		r := newRoute(fmt.Sprintf("r%d", i), i%m.options.services)
		m.routes = append(m.routes, r)
		m.attached[i] = newChange(create, r, 0)
	}
	var created atomic.Int64
	log("attaching %d routes", len(m.routes))
	stop := progress(ctx, func() string {
		return fmt.Sprintf("%d of %d routes attached, %d of them not accepted", created.Load(), len(m.routes), m.statuses.missing())
	})
	defer stop()
	m.started = time.Now()
	err = paced(ctx, len(m.routes), m.options.attachRate, func(ctx context.Context, i int, _ time.Time) error {
		generation, err := m.api.write(ctx, m.attached[i])
		if err != nil {
			return err
		}
		m.statuses.expect(m.attached[i], generation)
		created.Add(1)
		return nil
	})
	m.attachTook = time.Since(m.started)
	return err
}

// serve waits until each Pod of Weir serves all routes. The last ones are asked first: they are served last.
func (m *measurement) serve(ctx context.Context) error {
	connections := make([]*connection, len(m.bed.addresses))
	for i, address := range m.bed.addresses {
		connections[i] = newConnection(address)
		defer connections[i].close()
	}
	last := slices.MaxFunc(m.attached, func(a, b *change) int { return a.returned.Compare(b.returned) })
	for n, c := range slices.Backward(m.attached) {
		for i, connection := range connections {
			waits := n == len(m.attached)-1
			what := fmt.Sprintf("route %s served by %s", c.route.name, m.bed.pods[i])
			err := poll(ctx, m.options.limit, what, func() (bool, error) {
				answer, err := connection.ask(c.request)
				served := err == nil && c.after.met(answer)
				waits = waits || !served
				return served, nil
			})
			if err != nil {
				return err
			}
			if waits {
				m.serveTook = max(m.serveTook, time.Since(last.returned))
			}
		}
	}
	return nil
}

// acceptPerRoute is how much longer the routes may take to be accepted for each of them.
const acceptPerRoute = 50 * time.Millisecond

// accept waits until the statuses of all routes say that they are accepted.
func (m *measurement) accept(ctx context.Context) error {
	log("all routes are served")
	stop := progress(ctx, func() string { return fmt.Sprintf("%d routes are not accepted yet", m.statuses.missing()) })
	defer stop()
	limit := m.options.limit + time.Duration(len(m.routes))*acceptPerRoute
	err := poll(ctx, limit, "the acceptance of all routes", func() (bool, error) { return m.statuses.missing() == 0, nil })
	if err != nil {
		return err
	}
	log("all routes are accepted")
	for _, c := range m.attached {
		m.acceptTook = max(m.acceptTook, c.returned.Add(m.statuses.acceptedOf(c)).Sub(m.started))
	}
	for _, r := range m.routes[loadRoutes:] {
		m.free <- r
	}
	m.filled, err = m.bed.usage()
	return err
}

// under runs f while the load is sent.
func (m *measurement) under(ctx context.Context, f func() error) (*load, error) {
	l := &loader{address: m.bed.gateway, rate: m.options.load, want: want{200, backendA}}
	for _, r := range m.routes[:loadRoutes] {
		l.requests = append(l.requests, r.request())
	}
	loading, stop := context.WithCancel(ctx)
	done := make(chan *load, 1)
	go func() { done <- l.run(loading) }()
	err := f()
	stop()
	return <-done, err
}

// rest measures the load without changes.
func (m *measurement) rest(ctx context.Context) error {
	started := time.Now()
	var err error
	m.quiet, err = m.under(ctx, func() error {
		if !pause(ctx, m.options.baseline) {
			return context.Cause(ctx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.baselineTook = time.Since(started)
	m.loaded, err = m.bed.usage()
	return err
}

// change makes the changes under load.
func (m *measurement) change(ctx context.Context) error {
	probing, stop := context.WithCancel(ctx)
	defer stop()
	for i, address := range m.bed.addresses {
		for range probersPerPod {
			p := newProber(i, m.bed.pods[i], address, m.options.limit)
			p.unexpected, p.reverted, p.lost, p.settled = &m.unexpected, &m.reverted, &m.lost, m.release
			m.probers = append(m.probers, p)
			go p.run(probing)
		}
	}
	m.made = make([]*change, m.options.changes)
	started, before := time.Now(), ownCPU()
	var err error
	m.changing, err = m.under(ctx, func() error { return m.makeChanges(ctx) })
	m.changesTook, m.own = time.Since(started), ownCPU()-before
	if err != nil {
		return err
	}
	m.after, err = m.bed.usage()
	return err
}

// release makes a route available for further changes, after a change of it.
func (m *measurement) release(c *change) {
	if c.kind != remove {
		m.free <- c.route
	}
	m.settled.Add(1)
}

// makeChanges returns when all changes have had their effects and statuses, or were given up.
func (m *measurement) makeChanges(ctx context.Context) error {
	log("making %d changes", m.options.changes)
	var written atomic.Int64
	stop := progress(ctx, func() string {
		return fmt.Sprintf("%d of %d changes written, %d of them without effect", written.Load(), m.options.changes, written.Load()-m.settled.Load())
	})
	defer stop()
	err := paced(ctx, m.options.changes, m.options.rate, func(ctx context.Context, i int, scheduled time.Time) error {
		if err := m.makeChange(ctx, i, scheduled); err != nil {
			return err
		}
		written.Add(1)
		return nil
	})
	if err != nil {
		return err
	}
	err = poll(ctx, m.options.limit+setupLimit, "the end of all probes", func() (bool, error) {
		return int(m.settled.Load()) == m.options.changes, nil
	})
	// Changes whose status is still missing are counted in the results.
	for end := time.Now().Add(m.options.limit); err == nil && m.statuses.missing() > 0 && time.Now().Before(end); {
		if !pause(ctx, pollInterval) {
			return context.Cause(ctx)
		}
	}
	return err
}

// makeChange writes a change, and hands it to the probers.
func (m *measurement) makeChange(ctx context.Context, i int, scheduled time.Time) error {
	kind := kind(i % int(kinds))
	r := newRoute(fmt.Sprintf("n%d", i), i%m.options.services)
	if kind != create {
		select {
		case r = <-m.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(m.options.limit):
			return fmt.Errorf("no route could be changed within %s: all wait for their effects; use more --routes", m.options.limit)
		}
	}
	c := newChange(kind, r, len(m.bed.pods))
	c.scheduled = scheduled
	generation, err := m.api.write(ctx, c)
	if err != nil {
		return err
	}
	m.made[i] = c
	if kind == remove {
		m.statuses.forget(r.name)
	} else {
		m.statuses.expect(c, generation)
	}
	for pod := range m.bed.pods {
		m.probers[pod*probersPerPod+i%probersPerPod].incoming <- c
	}
	return nil
}

// roll adds and removes Pods of the loaded backend, under load.
func (m *measurement) roll(ctx context.Context) error {
	if m.options.podChanges == 0 {
		return nil
	}
	log("adding and removing Pods of the backend %d times", m.options.podChanges)
	var err error
	m.rolling, err = m.under(ctx, func() error {
		for i := range m.options.podChanges {
			// From 1 to 4 Pods and back.
			if _, err := m.bed.resize(ctx, namespace, string(rune(backendA)), 4-3*(i%2)); err != nil {
				return err
			}
			m.rolled++
			if !pause(ctx, m.options.podsInterval) {
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return err
}

// finish collects what is known at the end only.
func (m *measurement) finish(ctx context.Context) error {
	var err error
	m.restarted, err = m.bed.restarts(ctx)
	return err
}
