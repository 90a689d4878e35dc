package collect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/collect"
)

func TestAPhaseThatSlowsDownShowsInItsTenthsAndAtItsEdge(t *testing.T) {
	t.Parallel()
	var batches []collect.Batch
	for n := range 20 {
		seconds := 1.0
		if n >= 14 {
			seconds = 2
		}
		batches = append(batches, collect.Batch{N: 500, Seconds: &seconds})
	}
	got := collect.PhaseOf("purge", batches, 10_000)
	want := collect.Phase{
		Name: "purge", PerSecond: 10_000.0 / 26, Tenths: []float64{500, 500, 500, 500, 500, 500, 500, 250, 250, 250},
		Edge: 1000, First: 500, Last: 250,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Ratio() != 0.5 {
		t.Errorf("ratio %v (-want +got):\n%s", got.Ratio(), diff)
	}
}

func TestABatchThatIsInTwoTenthsCountsInEachWithItsPart(t *testing.T) {
	t.Parallel()
	quick, slow := 1.0, 3.0
	got := collect.PhaseOf("condemn", []collect.Batch{{N: 25, Seconds: &quick}, {N: 15, Seconds: &slow}}, 40)
	if diff := cmp.Diff([]float64{25, 25, 25, 25, 25, 25, 4 / (1.0/25 + 3*3.0/15), 5, 5, 5}, got.Tenths); diff != "" {
		t.Errorf("tenths (-want +got):\n%s", diff)
	}
}
