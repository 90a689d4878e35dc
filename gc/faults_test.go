package gc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// TestAPassWithAQueryThatFailsDeletesNothing breaks each statement that comes before the first delete; some of
// them only for the last of three objects.
func TestAPassWithAQueryThatFailsDeletesNothing(t *testing.T) {
	t.Parallel()
	revoke := func(function string) [2]string {
		return [2]string{
			"REVOKE EXECUTE ON FUNCTION " + function + " FROM fenceline_service",
			"GRANT EXECUTE ON FUNCTION " + function + " TO fenceline_service",
		}
	}
	const half = `
		CREATE FUNCTION break_half_way() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.object_id = '2' THEN RAISE 'half-way'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER break_half_way BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION break_half_way()`
	for name, tc := range map[string][2]string{
		"the beginning":                      revoke("begin_run"),
		"the sign of life":                   revoke("continue_run"),
		"the mark":                           revoke("condemn"),
		"the check before the delete":        revoke("epoch_verified"),
		"what is asked of publications":      {"ALTER TABLE publication RENAME TO away", "ALTER TABLE away RENAME TO publication"},
		"the judgement":                      {"ALTER FUNCTION judge_object RENAME TO away", "ALTER FUNCTION away RENAME TO judge_object"},
		"the list of what is to be purged":   {"REVOKE SELECT ON object FROM fenceline_service", "GRANT SELECT ON object TO fenceline_service"},
		"the counts by reason":               {"ALTER TABLE gc_tally RENAME TO away", "ALTER TABLE away RENAME TO gc_tally"},
		"which runs are approved":            {"REVOKE SELECT ON gc_run FROM fenceline_service", "GRANT SELECT ON gc_run TO fenceline_service"},
		"the writing down, half-way":         {"ALTER FUNCTION note_batch RENAME TO away", "ALTER FUNCTION away RENAME TO note_batch"},
		"the ledger, half-way":               {fmt.Sprintf(half, "INSERT", "gc_ledger"), "DROP TRIGGER break_half_way ON gc_ledger"},
		"the condemnation itself, half-way":  {fmt.Sprintf(half, "UPDATE", "object"), "DROP TRIGGER break_half_way ON object"},
		"the database's identity, in doubt":  {"VACUUM FULL report", "SELECT verify_epoch()"},
		"the epochs, which cannot be looked": {"ALTER TABLE epoch RENAME TO away", "ALTER TABLE away RENAME TO epoch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			for i := range 3 {
				b.stage(t, g, fencing.ObjectID(fmt.Sprint(i)), "x")
			}
			visible := b.next(t, "august", "stays")
			b.db.Advance(t, retention+leaseTTL)
			d := &deletes{Bucket: b.bucket, sent: func(refs []staging.ObjectRef) { t.Errorf("a delete was sent: %v", refs) }}

			b.db.Exec(t, tc[0])
			if err := pass(t.Context(), b.collectorOn(d, instant)); err == nil {
				t.Fatal("the pass did not fail")
			}
			if n := len(b.storage.Keys(t)); n != 4 {
				t.Errorf("%d keys are left, want all 4", n)
			}
			b.db.Exec(t, tc[1])
			b.db.Advance(t, time.Hour) // a pass that could not write down its end is silent by now
			collect(t, b.collector(instant))
			b.wantFinished(t, 3, visible)
		})
	}
}

func TestADeleteThatCannotBeRecordedIsRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	b.db.Exec(t, "REVOKE EXECUTE ON FUNCTION record_purge FROM fenceline_service")
	if err := pass(t.Context(), b.collector(atOnce)); err == nil {
		t.Fatal("the pass did not fail")
	}
	b.wantState(t, x.name, staging.Condemned)
	b.db.Exec(t, "GRANT EXECUTE ON FUNCTION record_purge TO fenceline_service")
	if run := collect(t, b.collector(atOnce)); run.Deleted != 1 {
		t.Errorf("the next pass deleted %d, want 1", run.Deleted)
	}
	b.wantState(t, x.name, "")
}

func TestNothingIsDeletedOnceTheIdentityIsInDoubt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	d := &deletes{Bucket: b.bucket, sent: func(refs []staging.ObjectRef) { t.Errorf("a delete was sent: %v", refs) }}
	d.before = func() error {
		b.db.Exec(t, "VACUUM FULL report") // as after a restore, the table is another file
		return nil
	}
	p, err := b.collectorOn(d, atOnce).Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	err = p.Run(t.Context())
	if !errors.Is(err, database.ErrEpochInDoubt) {
		t.Errorf("the pass ended in %v, want that the epoch is in doubt", err)
	}
	if _, err := b.collector(atOnce).Begin(t.Context(), gc.Options{}); !errors.Is(err, database.ErrEpochInDoubt) {
		t.Errorf("another began: %v", err)
	}
	b.wantState(t, x.name, staging.Condemned)
	if keys := b.keys(t); keys != keyOf(x.name) {
		t.Errorf("the keys left are %q", keys)
	}
}

func TestAStorageThatIsAwayStopsThePassAndChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	d := &deletes{Bucket: b.bucket, before: func() error { return staging.ErrStorageUnavailable }}
	c := b.collectorOn(d, atOnce)
	p, err := c.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	if err := p.Run(t.Context()); !errors.Is(err, staging.ErrStorageUnavailable) {
		t.Errorf("the pass ended in %v, want that the storage is away", err)
	}
	run := record(t, c, p.ID)
	if run.Outcome == nil || *run.Outcome != "failed" || run.Error == nil || run.DeleteFailed != 0 {
		t.Errorf("its record says %+v, want that it failed, and why", run)
	}
	b.wantState(t, x.name, staging.Condemned)
}

func TestAPassThatIsInterruptedSaysWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	targets["a publish"](t, b)
	ctx, cancel := context.WithCancel(t.Context())
	d := &deletes{Bucket: b.bucket, before: func() error { cancel(); return nil }}
	c := b.collectorOn(d, atOnce)
	p, err := c.Begin(t.Context(), gc.Options{})
	must(t, "begin", err)
	if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the pass ended in %v, want that it was cancelled", err)
	}
	if run := record(t, c, p.ID); run.Outcome == nil || *run.Outcome != "stopped" || run.Error == nil {
		t.Errorf("its record says %+v, want that it was stopped, and why", run)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_run WHERE finished_at IS NULL"); n != 0 {
		t.Error("it counts as under way")
	}
}
