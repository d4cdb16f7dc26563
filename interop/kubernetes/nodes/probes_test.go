package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOnlySeveralFailuresInARowCount(t *testing.T) {
	results := newTally(true, &corev1.Probe{FailureThreshold: 2, SuccessThreshold: 1})
	for i, step := range []struct{ success, good bool }{
		{false, true}, {true, true}, {false, true}, {false, false}, {false, false}, {true, true},
	} {
		if good := results.add(step.success); good != step.good {
			t.Errorf("step %d: %v", i, good)
		}
	}
}

func TestReadinessCanNeedSeveralSuccesses(t *testing.T) {
	results := newTally(false, &corev1.Probe{SuccessThreshold: 3})
	for i, good := range []bool{false, false, true} {
		if got := results.add(true); got != good {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
