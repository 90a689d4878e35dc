package gc_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

func TestADryRunTellsWhatTheRunWouldDoAndChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.collector(braked(3), func(cfg *gc.Config) { cfg.Batch = 2 })
	forgetful := b.collector(braked(3), func(cfg *gc.Config) { cfg.Batch, cfg.Tombstones, cfg.Leases = 2, grace, leaseTTL })

	// Tombstones, then what is to be purged, then what is due: superseded, put off, and one too many.
	g := b.grant(t, "june")
	for i := range 3 {
		b.stage(t, g, fencing.ObjectID(fmt.Sprint(i)), "x")
	}
	b.free(t, g)
	for i := range 2 {
		b.next(t, "july", fmt.Sprint(i))
	}
	b.db.Advance(t, retention+leaseTTL)
	collect(t, c)
	b.db.Advance(t, grace)
	collect(t, c)
	b.db.Advance(t, grace)
	discarded := b.grant(t, "may")
	_, err := b.objects.Discard(t.Context(), b.stage(t, discarded, "discarded", "x"))
	must(t, "discard", err)
	b.free(t, discarded)
	for _, report := range []fencing.ReportID{"a", "b", "c", "d"} {
		g := b.grant(t, report)
		b.stage(t, g, "never", "xx")
		b.free(t, g)
	}
	b.db.Advance(t, superseded)
	live := b.grant(t, "live")
	b.stage(t, live, "working", "x")
	b.renewFor(t, live, 2*retention)
	b.db.Advance(t, retention+leaseTTL)

	d := &deletes{Bucket: b.bucket, sent: func([]staging.ObjectRef) { t.Error("a dry run deletes") }}
	dry := b.collectorOn(d, braked(3), func(cfg *gc.Config) { cfg.Batch, cfg.Tombstones, cfg.Leases = 2, grace, leaseTTL })
	before := b.contents(t)
	keys := b.keys(t)
	p, err := dry.Begin(t.Context(), gc.Options{DryRun: true})
	must(t, "begin a dry run", err)
	must(t, "run dry", p.Run(t.Context()))
	if diff := cmp.Diff(before, b.contents(t)); diff != "" {
		t.Errorf("the dry run changed rows:\n%s", diff)
	}
	if diff := cmp.Diff(keys, b.keys(t)); diff != "" {
		t.Errorf("the dry run changed keys:\n%s", diff)
	}

	done := collect(t, forgetful)
	would, did := b.entries(t, p.ID), b.entries(t, done.RunID)
	if diff := cmp.Diff(did, would); diff != "" {
		t.Errorf("what the run did, and what the dry run said (-did +said):\n%s", diff)
	}
	said := record(t, dry, p.ID)
	if !said.DryRun || done.DryRun {
		t.Errorf("dry runs: %t and %t, want true and false", said.DryRun, done.DryRun)
	}
	said.RunID, said.DryRun, said.StartedAt, said.BeatAt, said.FinishedAt, said.StartedBy = done.RunID, false, done.StartedAt, done.BeatAt, done.FinishedAt, done.StartedBy
	said.PhaseBeganAt = done.PhaseBeganAt
	if diff := cmp.Diff(done, said); diff != "" {
		t.Errorf("the run's record, and the dry run's (-did +said):\n%s", diff)
	}
	for _, count := range []int64{done.Condemned, done.PutOff, done.Braked, done.Deleted, done.Forgotten} {
		if count == 0 {
			t.Errorf("the run %+v does not do everything that there is to do", done)
		}
	}
	b.wantIntact(t)
}

// contents is every row that a pass may change, but for the records of passes.
func (b *bundle) contents(t testing.TB) []string {
	t.Helper()
	return testdb.Value[[]string](t, b.db, `
		SELECT array_agg(line ORDER BY line) FROM (
			SELECT 'object ' || to_jsonb(o)::text AS line FROM object o
			UNION ALL SELECT 'report ' || to_jsonb(r)::text FROM report r
			UNION ALL SELECT 'lease ' || to_jsonb(l)::text FROM lease l
			UNION ALL SELECT 'publication ' || to_jsonb(p)::text FROM publication p
		) rows`)
}

// entries are one pass's, without an order where it has none: among the rows of one batch.
func (b *bundle) entries(t testing.TB, run int64) []string {
	t.Helper()
	return testdb.Value[[]string](t, b.db, `
		SELECT coalesce(array_agg(line ORDER BY line), '{}') FROM (
			SELECT format('%s %s %s %s', action, reason, key, size) AS line FROM gc_ledger WHERE run_id = $1
		) lines`, run)
}
