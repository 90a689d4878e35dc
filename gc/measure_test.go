package gc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testmetrics"
	"github.com/fenceline/fenceline/staging"
)

func TestWhatAPassDidIsCountedAsItsRecordTells(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, report := range []fencing.ReportID{"april", "may", "june", "july"} {
		b.next(t, report, "first")
		b.next(t, report, "second") // which takes the place of the first
	}
	b.db.Advance(t, superseded+leaseTTL)
	m := testmetrics.New(t)
	d := &deletes{Bucket: b.bucket, answer: func(ref staging.ObjectRef) error {
		if strings.Contains(ref.Key, "may") {
			return errors.New("access denied")
		}
		return nil
	}}
	run := collect(t, b.collectorOn(d, instant, func(cfg *gc.Config) { cfg.Metrics = m }))
	if run.Condemned != 4 || run.Deleted != 3 || run.DeleteFailed != 1 || run.DeletedBytes == 0 {
		t.Fatalf("the pass has the record %+v", run)
	}
	want := map[string]float64{
		`fenceline_collector_objects_total{action="condemned"}`:     4,
		`fenceline_collector_objects_total{action="deleted"}`:       3,
		`fenceline_collector_objects_total{action="delete_failed"}`: 1,
		`fenceline_collector_deleted_bytes_total`:                   float64(run.DeletedBytes),
		`fenceline_collector_passes_total{outcome="completed"}`:     1,
	}
	if diff := cmp.Diff(want, testmetrics.Counted(t, m, "fenceline_collector_")); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestWhatTheBrakeHoldsBackIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.reserveMany(t, "july", 3, 5)
	b.db.Advance(t, retention+leaseTTL)
	m := testmetrics.New(t)
	collect(t, b.collector(func(cfg *gc.Config) { cfg.Metrics, cfg.BrakeMin, cfg.BrakeShare = m, 1, 0.01 }))
	want := map[string]float64{
		`fenceline_collector_objects_total{action="condemned"}`: 1,
		`fenceline_collector_objects_total{action="braked"}`:    2,
		`fenceline_collector_passes_total{outcome="completed"}`: 1,
	}
	if diff := cmp.Diff(want, testmetrics.Counted(t, m, "fenceline_collector_")); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}
