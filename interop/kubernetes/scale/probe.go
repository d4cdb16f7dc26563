// Probes: repeated requests to one Pod of Weir that find out when a change has its effect.

package scale

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// probeInterval is the time between two probes of a change. It grows with the change's age, which bounds the load
	// of probes, and adds at most one part in probeAgeShare to what is measured.
	probeInterval = time.Millisecond
	probeAgeShare = 64
	// confirmAfter is how long after the first right response another connection has to see one, too.
	confirmAfter = 100 * time.Millisecond
	// pendingMax bounds the changes that wait for their effect.
	pendingMax = 4096
)

// target is a change that a prober watches.
type target struct {
	*change
	// sent is when the last wrong probe was sent, at first when the write returned.
	sent, due time.Time
	// confirming is set after the first right response.
	confirming bool
}

// prober sends probes to one Pod of Weir, one at a time. Many changes at once make the time between two probes of a
// change longer: change.gap has it.
type prober struct {
	// pod is the index in change.effective.
	pod      int
	name     string
	limit    time.Duration
	incoming chan *change
	targets  []target
	// The second connection confirms what the first one saw.
	probing, confirming *connection
	// settled is called by the last prober of a change.
	settled func(*change)
	probes  atomic.Int64
	// unexpected are responses that are right neither before nor after the change, and errors. reverted are wrong
	// responses after a right one.
	unexpected, reverted, lost *problems
}

func newProber(pod int, name, address string, limit time.Duration) *prober {
	return &prober{
		pod: pod, name: name, limit: limit, incoming: make(chan *change, pendingMax),
		probing: newConnection(address), confirming: newConnection(address),
	}
}

// run probes until the context ends.
func (p *prober) run(ctx context.Context) {
	defer p.probing.close()
	defer p.confirming.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next := p.earliest()
		wait := time.Hour
		if next >= 0 {
			wait = time.Until(p.targets[next].due)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case c := <-p.incoming:
			p.targets = append(p.targets, target{change: c, sent: c.returned, due: c.returned})
		case <-timer.C:
			if next >= 0 && p.probe(&p.targets[next]) {
				last := len(p.targets) - 1
				p.targets[next] = p.targets[last]
				p.targets = p.targets[:last]
			}
		}
	}
}

// earliest returns the index of the target that is due first, -1 without targets.
func (p *prober) earliest() int {
	first := -1
	for i := range p.targets {
		if first < 0 || p.targets[i].due.Before(p.targets[first].due) {
			first = i
		}
	}
	return first
}

// probe sends one request and reports whether the target needs no more of them.
func (p *prober) probe(t *target) bool {
	p.probes.Add(1)
	if t.confirming {
		return p.confirm(t)
	}
	sent := time.Now()
	answer, err := p.probing.ask(t.request)
	now := time.Now()
	age := now.Sub(t.returned)
	switch {
	case err != nil:
		p.unexpected.add("%s of route %s at %s: %v", kindNames[t.kind], t.route.name, p.name, err)
	case t.after.met(answer):
		t.effective[p.pod], t.gap[p.pod] = age, now.Sub(t.sent)
		t.confirming, t.due = true, now.Add(confirmAfter)
		return false
	case !t.before.met(answer):
		p.unexpected.add("%s of route %s at %s: %s after %d ms", kindNames[t.kind], t.route.name, p.name, answer, age.Milliseconds())
	}
	if age > p.limit {
		p.lost.add("%s of route %s at %s: no effect within %s", kindNames[t.kind], t.route.name, p.name, p.limit)
		p.settle(t)
		return true
	}
	t.sent, t.due = sent, now.Add(max(probeInterval, age/probeAgeShare))
	return false
}

func (p *prober) confirm(t *target) bool {
	answer, err := p.confirming.ask(t.request)
	if err != nil {
		p.reverted.add("%s of route %s at %s: %v after a right response", kindNames[t.kind], t.route.name, p.name, err)
	} else if !t.after.met(answer) {
		p.reverted.add("%s of route %s at %s: %s after a right response", kindNames[t.kind], t.route.name, p.name, answer)
	}
	p.settle(t)
	return true
}

func (p *prober) settle(t *target) {
	if t.unsettled.Add(-1) == 0 {
		p.settled(t.change)
	}
}
