// The results, as a table and as JSON.

package scale

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

// results is what a measurement found. It is the JSON format.
type results struct {
	Routes        int     `json:"routes"`
	Changes       int     `json:"changes"`
	ChangesRate   int     `json:"changes_per_second"`
	WeirPods      int     `json:"weir_pods"`
	AttachSeconds float64 `json:"attach_seconds"`
	// AcceptSeconds counts from the first write, ServeSeconds from the answer to the last one.
	AcceptSeconds float64 `json:"accept_seconds"`
	ServeSeconds  float64 `json:"serve_after_last_write_seconds"`
	// Effect counts from the API server's answer to the first right response of the last Pod, for each kind of change.
	Effect         map[string]summary `json:"effect"`
	EffectFirstPod summary            `json:"effect_first_pod"`
	// Gap is the time from the last wrong probe to the first right response.
	Gap           summary      `json:"effect_gap"`
	Status        summary      `json:"status"`
	StatusAttach  summary      `json:"status_while_attaching"`
	StatusMissing int          `json:"status_missing"`
	Write         summary      `json:"api_write"`
	WriteDelay    summary      `json:"write_delay"`
	Load          *loadResults `json:"load"`
	LoadQuiet     *loadResults `json:"load_before_changes"`
	LoadRolling   *loadResults `json:"load_while_pods_change,omitempty"`
	PodChanges    int          `json:"backend_pod_changes"`
	Lost          counted      `json:"changes_without_effect"`
	Unexpected    counted      `json:"unexpected_probe_responses"`
	Reverted      counted      `json:"wrong_after_right_responses"`
	Probes        int64        `json:"probes"`
	Pods          []podResults `json:"pods"`
	Restarts      int          `json:"restarts"`
	// OwnCPU is the share of one core that this program took during the changes.
	OwnCPU float64 `json:"own_cpu_percent"`
}

type loadResults struct {
	Requests int     `json:"requests"`
	Failures counted `json:"failures"`
	// Closed counts connections that Weir closed. The request was repeated on a new one.
	Closed  int     `json:"connections_closed"`
	Latency summary `json:"latency"`
}

// podResults is what one of Weir's Pods used. The CPU is in percent of one core.
type podResults struct {
	Name             string  `json:"name"`
	AttachCPUSeconds float64 `json:"attach_cpu_seconds"`
	LoadCPU          float64 `json:"load_cpu_percent"`
	ChangesCPU       float64 `json:"changes_cpu_percent"`
	MemoryBefore     float64 `json:"memory_before_mb"`
	MemoryAttached   float64 `json:"memory_attached_mb"`
	MemoryAfter      float64 `json:"memory_after_mb"`
	MemoryPeak       float64 `json:"memory_peak_mb"`
}

const allKinds = "all"

func (m *measurement) results() *results {
	r := &results{
		Routes: m.options.routes, Changes: m.options.changes, ChangesRate: m.options.rate, WeirPods: len(m.bed.pods),
		AttachSeconds: seconds(m.attachTook), AcceptSeconds: seconds(m.acceptTook), ServeSeconds: seconds(m.serveTook),
		Load: m.changing.results(), LoadQuiet: m.quiet.results(), LoadRolling: m.rolling.results(), PodChanges: m.rolled,
		Lost: m.lost.counted(), Unexpected: m.unexpected.counted(), Reverted: m.reverted.counted(),
		Restarts: m.restarted, OwnCPU: percent(m.own, m.changesTook),
	}
	m.addTimes(r)
	for _, p := range m.probers {
		r.Probes += p.probes.Load()
	}
	for i, name := range m.bed.pods {
		before, filled, loaded, after := m.before[i], m.filled[i], m.loaded[i], m.after[i]
		r.Pods = append(r.Pods, podResults{
			Name: name, AttachCPUSeconds: seconds(filled.cpu - before.cpu),
			LoadCPU:    percent(loaded.cpu-filled.cpu, m.baselineTook),
			ChangesCPU: percent(after.cpu-loaded.cpu, m.changesTook), MemoryBefore: megabytes(before.resident),
			MemoryAttached: megabytes(filled.resident), MemoryAfter: megabytes(after.resident), MemoryPeak: megabytes(after.peak),
		})
	}
	return r
}

// addTimes summarizes the times of the changes.
func (m *measurement) addTimes(r *results) {
	effects := map[string][]time.Duration{}
	var first, gap, status, write, delay []time.Duration
	for _, c := range m.made {
		write = append(write, c.wrote)
		delay = append(delay, c.returned.Sub(c.scheduled)-c.wrote)
		if accepted := m.statuses.acceptedOf(c); accepted >= 0 {
			status = append(status, accepted)
		} else if accepted == unknown && c.kind != remove {
			r.StatusMissing++
		}
		if everywhere, ok := c.everywhere(); ok {
			effects[kindNames[c.kind]] = append(effects[kindNames[c.kind]], everywhere)
			effects[allKinds] = append(effects[allKinds], everywhere)
			first = append(first, c.somewhere())
			gap = append(gap, c.gap...)
		}
	}
	r.Effect = map[string]summary{}
	for name, times := range effects {
		r.Effect[name] = summarize(times)
	}
	var attach []time.Duration
	for _, c := range m.attached {
		attach = append(attach, m.statuses.acceptedOf(c))
	}
	r.EffectFirstPod, r.Status, r.StatusAttach = summarize(first), summarize(status), summarize(attach)
	r.Gap = summarize(gap)
	r.Write, r.WriteDelay = summarize(write), summarize(delay)
}

func (l *load) results() *loadResults {
	if l == nil {
		return nil
	}
	return &loadResults{l.requests, l.failures.counted(), l.closed, summarize(l.latency)}
}

// percent returns which share of one core was used. It is 0 if the process was restarted: its time begins at 0 again.
func percent(cpu, wall time.Duration) float64 {
	return float64(int(1000*max(0, cpu.Seconds())/wall.Seconds())) / 10
}

func megabytes(bytes int64) float64 { return float64(bytes/100_000) / 10 }

// print writes the table for people.
func (r *results) print(out io.Writer) {
	fmt.Fprintf(out, "%d routes: attached in %.1f s, all accepted after %.1f s, served at most %.1f s after the last write\n",
		r.Routes, r.AttachSeconds, r.AcceptSeconds, r.ServeSeconds)
	fmt.Fprintf(out, "%d changes, %d per second; %d Pods of Weir; %d probes; the measurement itself took %.0f%% of a core\n\n",
		r.Changes, r.ChangesRate, r.WeirPods, r.Probes, r.OwnCPU)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "milliseconds\tcount\tp50\tp90\tp99\tmax\t\n")
	for _, name := range append(kindNames[:], allKinds) {
		row(table, "until served by every Pod: "+name, r.Effect[name])
	}
	row(table, "until served by one Pod: all", r.EffectFirstPod)
	row(table, "from the last wrong probe to the first right one", r.Gap)
	row(table, "until the status has it", r.Status)
	row(table, "until the status has it, while attaching", r.StatusAttach)
	row(table, "write to the API server", r.Write)
	row(table, "start of a write after its schedule", r.WriteDelay)
	row(table, "load before the changes: latency", r.LoadQuiet.Latency)
	row(table, "load during the changes: latency", r.Load.Latency)
	if r.LoadRolling != nil {
		row(table, "load while Pods change: latency", r.LoadRolling.Latency)
	}
	table.Flush()
	r.printPods(out)
	r.printProblems(out)
}

func row(out io.Writer, name string, s summary) {
	fmt.Fprintf(out, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", name, s.Count, s.P50, s.P90, s.P99, s.Max)
}

func (r *results) printPods(out io.Writer) {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "Pod of Weir\tattaching: CPU s\tload: CPU %\tchanges: CPU %\tMB before\tattached\tafter\tpeak\t\n")
	for _, p := range r.Pods {
		fmt.Fprintf(table, "%s\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", p.Name, p.AttachCPUSeconds, p.LoadCPU,
			p.ChangesCPU, p.MemoryBefore, p.MemoryAttached, p.MemoryAfter, p.MemoryPeak)
	}
	table.Flush()
	fmt.Fprintln(out)
}

// problem is one line of what must not happen.
type problem struct {
	name string
	counted
}

func (r *results) problems() []problem {
	found := []problem{
		{"failed requests before the changes", r.LoadQuiet.Failures},
		{"failed requests during the changes", r.Load.Failures},
		{"changes without effect", r.Lost},
		{"probe responses that are right neither before nor after a change", r.Unexpected},
		{"wrong responses after a right one", r.Reverted},
		{"changes without a status", counted{Count: r.StatusMissing}},
		{"restarts of Weir", counted{Count: r.Restarts}},
	}
	if r.LoadRolling != nil {
		found = append(found, problem{fmt.Sprintf("failed requests while Pods of the backend changed %d times", r.PodChanges), r.LoadRolling.Failures})
	}
	return found
}

func (r *results) printProblems(out io.Writer) {
	for _, p := range r.problems() {
		fmt.Fprintf(out, "%s: %d\n", p.name, p.Count)
		for _, text := range p.First {
			fmt.Fprintf(out, "  %s\n", text)
		}
	}
	closed := r.LoadQuiet.Closed + r.Load.Closed
	if r.LoadRolling != nil {
		closed += r.LoadRolling.Closed
	}
	fmt.Fprintf(out, "connections of the load that Weir closed (not a failure): %d\n", closed)
}

// verdict returns an error if something happened that must not.
func (r *results) verdict() error {
	for _, p := range r.problems() {
		if p.Count > 0 {
			return fmt.Errorf("%s: %d; the results above say more", p.name, p.Count)
		}
	}
	return nil
}

func (r *results) write(file string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(content, '\n'), 0o644)
}
