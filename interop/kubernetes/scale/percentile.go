package scale

import (
	"math"
	"slices"
	"time"
)

// summary describes a set of times, in milliseconds.
type summary struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// summarize sorts the times and returns their percentiles; all are 0 without times.
func summarize(times []time.Duration) summary {
	slices.Sort(times)
	return summary{
		Count: len(times),
		P50:   milliseconds(percentile(times, 50)),
		P90:   milliseconds(percentile(times, 90)),
		P99:   milliseconds(percentile(times, 99)),
		Max:   milliseconds(percentile(times, 100)),
	}
}

// percentile returns the smallest of the sorted times that at least p percent of them do not exceed (nearest rank).
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// milliseconds has a resolution of 10 microseconds.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(10*time.Microsecond)) / 100
}

// seconds has a resolution of 10 milliseconds.
func seconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(10*time.Millisecond)) / 100
}
