package gc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// The periods after which a pass of these tests forgets.
const (
	tombstones = 1000 * time.Hour
	ended      = 500 * time.Hour
)

func forgetting(cfg *gc.Config) {
	cfg.PurgeGrace, cfg.Tombstones, cfg.Leases, cfg.Batch = instantly, tombstones, ended, 2
}

func TestWhatNothingCanReferToAnyMoreIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	var never []fencing.ObjectName
	for _, id := range []fencing.ObjectID{"a", "b", "c"} {
		never = append(never, b.stage(t, g, id, "x"))
	}
	b.free(t, g)
	old, visible := b.next(t, "july", "first"), b.next(t, "july", "second")
	c := b.collector(forgetting)
	b.db.Advance(t, superseded)
	first := collect(t, c)

	b.db.Advance(t, tombstones-time.Minute)
	if run := collect(t, c); run.Forgotten != 3 {
		t.Errorf("%d rows were forgotten before the tombstones' time, want the 3 leases", run.Forgotten)
	}
	b.wantState(t, never[0], staging.Deleted)
	b.db.Advance(t, 2*time.Minute)
	if run := collect(t, c); run.Forgotten != 4 {
		t.Errorf("%d rows were forgotten, want the 4 tombstones", run.Forgotten)
	}
	for _, name := range append(never, old) {
		b.wantState(t, name, "")
	}
	b.wantState(t, visible, staging.Sealed)
	if _, err := c.Record(t.Context(), first.RunID); !errors.Is(err, gc.ErrRunNotFound) {
		t.Errorf("the record of the first pass: %v, want that it is forgotten", err)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_ledger WHERE run_id = $1", first.RunID); n != 0 {
		t.Errorf("%d entries of the first pass are left", n)
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM publication"); n != 2 {
		t.Errorf("%d publications are left, want both", n)
	}
	_, err := b.rollBack(t.Context(), b.grant(t, "july"), 1)
	if !errors.Is(err, fencing.ErrObjectGone) {
		t.Errorf("the roll-back to a forgotten object ended in %v, want that it is gone", err)
	}
	b.wantIntact(t)
}

func TestWhatCouldNotBeDeletedIsNotForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := targets["a publish"](t, b)
	refused := errors.New("access denied")
	c := b.collectorOn(&deletes{Bucket: b.bucket, answer: func(staging.ObjectRef) error { return refused }}, forgetting)
	for range 3 {
		collect(t, c)
		b.db.Advance(t, tombstones)
	}
	b.wantState(t, x.name, staging.Condemned)
	refused = nil
	collect(t, c)
	b.wantState(t, x.name, staging.Deleted)
}

func TestALiveLeaseIsNeverForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.free(t, b.grant(t, "july"))
	live := b.grant(t, "july")
	lapsed := b.grant(t, "august")
	for range 10 {
		b.renewFor(t, live, ended)
		b.db.Advance(t, ended-time.Hour)
		collect(t, b.collector(forgetting))
	}
	rest := testdb.Value[[]string](t, b.db, "SELECT array_agg(lease_id) FROM lease WHERE report_id = 'july'")
	if len(rest) != 1 || rest[0] != string(live.Lease) {
		t.Errorf("the leases left are %v, want the live one alone", rest)
	}
	b.renewFor(t, live, time.Hour)

	// One that expired and that nobody took has not ended yet: its worker may still publish.
	must(t, "publish under a lapsed lease", b.publish(t.Context(), b.stage(t, lapsed, "data", "x")))
	if next := b.grant(t, "august"); next.Fence.Compare(lapsed.Fence) <= 0 {
		t.Errorf("the fence %v is not above %v", next.Fence, lapsed.Fence)
	}
}

func TestFencesGoOnRisingAfterTheirLeasesWereForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var highest fencing.Fence
	for range 5 {
		g := b.grant(t, "july")
		if g.Fence.Compare(highest) <= 0 {
			t.Errorf("the fence %v was granted after %v", g.Fence, highest)
		}
		highest = g.Fence
		b.free(t, g)
	}
	b.db.Advance(t, ended+time.Hour)
	collect(t, b.collector(forgetting))
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM lease"); n != 0 {
		t.Fatalf("%d leases are left", n)
	}
	if g := b.grant(t, "july"); g.Fence.Compare(highest) <= 0 {
		t.Errorf("the fence %v was granted after %v", g.Fence, highest)
	}
}

func TestNobodyButForgetDeletesAndOnlyWhatIsFinal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	b.stage(t, g, "data", "x")
	b.free(t, b.grant(t, "august"))
	for name, statement := range map[string]string{
		"a live lease":                               "DELETE FROM lease WHERE report_id = 'july'",
		"an ended lease":                             "DELETE FROM lease WHERE report_id = 'august'",
		"an object":                                  "DELETE FROM object",
		"a live lease, announced as forget does":     "SELECT set_config('fenceline.forgetting', 'on', true); DELETE FROM lease WHERE report_id = 'july'",
		"a sealed object, announced as forget does":  "SELECT set_config('fenceline.forgetting', 'on', true); DELETE FROM object",
		"a report, announced as forget does":         "SELECT set_config('fenceline.forgetting', 'on', true); DELETE FROM report",
		"an epoch, announced as forget does":         "SELECT set_config('fenceline.forgetting', 'on', true); DELETE FROM epoch",
		"everything, truncated, announced as forget": "SELECT set_config('fenceline.forgetting', 'on', true); TRUNCATE object",
	} {
		conn, err := b.db.Owner.Acquire(t.Context())
		must(t, "connect", err)
		_, err = conn.Conn().PgConn().Exec(t.Context(), statement).ReadAll()
		conn.Release()
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "23001" {
			t.Errorf("%s: the delete ended in %v, want that the guard refuses it", name, err)
		}
	}
}
