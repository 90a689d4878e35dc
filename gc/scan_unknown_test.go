package gc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// refusedAsUnknown fails the test unless every way to make what a scan found visible, or to discard it, is refused.
func (b *bundle) refusedAsUnknown(t *testing.T, g lease.Grant, name fencing.ObjectName) {
	t.Helper()
	_, sealErr := b.objects.Seal(t.Context(), name)
	_, discardErr := b.objects.Discard(t.Context(), name)
	for what, err := range map[string]error{"seal": sealErr, "publish": b.publish(t.Context(), name), "discard": discardErr} {
		if !errors.Is(err, fencing.ErrObjectNotFound) {
			t.Errorf("%s: %v, want that there is no such object", what, err)
		}
	}
	if _, _, err := b.reserve(t.Context(), g, name.Object, "mine"); !errors.Is(err, staging.ErrExists) {
		t.Errorf("reserve: %v, want that it exists", err)
	}
	_, err := b.objects.Reserve(t.Context(), name, staging.Declaration{Size: new(staging.MinPartSize + 5), PartSize: staging.MinPartSize})
	if !errors.Is(err, staging.ErrExists) {
		t.Errorf("reserve in parts: %v, want that it exists", err)
	}
	b.wantState(t, name, staging.Reserved)
}

func TestWhatAScanFoundIsRefusedToWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	name := fencing.ObjectName{Report: g.Report, Fence: g.Fence, Object: "data"}
	b.storage.Put(t, keyOf(name), "somebody's")
	days := func(cfg *gc.Config) { cfg.Unknown = 2 * retention } // within which a live lease would keep what was reserved
	scan(t, b.collector(days))
	b.refusedAsUnknown(t, g, name)
	for function, call := range map[string]string{ // as a program calls them that does not know of scans
		"seal":          `SELECT status FROM seal('july', 1, 1, 'data', 10, sha256('x'), 'e', NULL, 1000)`,
		"record_upload": `SELECT status FROM record_upload('july', 1, 1, 'data', 'u')`,
		"publish":       `SELECT status FROM publish('[{"report":"july","epoch":1,"counter":1,"object_id":"data","metadata":{},"idempotency_key":"k","by":"t"}]')`,
	} {
		if status := testdb.Value[string](t, b.db, call); status != "object_not_found" {
			t.Errorf("%s answers %s, want object_not_found", function, status)
		}
	}
	for what, statement := range map[string]string{
		"a seal past the functions":    "UPDATE object SET state = 'sealed', size = 1, sha256 = sha256('x'), etag = 'e', sealed_at = now(), checked_epoch = 1",
		"a claim that it was reserved": "UPDATE object SET found_at = NULL, found_retention_ms = NULL",
	} {
		if _, err := b.db.Owner.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s was let pass", what)
		}
	}
	b.renewFor(t, g, 4*retention)
	b.db.Advance(t, 2*retention+time.Hour)
	if run := scan(t, b.collector(days)); run.Condemned != 1 || run.PutOff != 0 {
		t.Errorf("%d condemned and %d put off, want 1 and none: no lease works on it", run.Condemned, run.PutOff)
	}
}

func TestBytesThatReturnUnderAVersionsNameAreNeverShownByIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.next(t, "july", "first")
	second := b.next(t, "july", "second")
	b.db.Advance(t, superseded+time.Hour)
	c := b.collector(scans, atOnce)
	collect(t, c)
	collect(t, c)
	b.wantState(t, first, "") // collected and forgotten

	b.storage.Put(t, keyOf(first), "first") // the very bytes
	if run := scan(t, c); run.ScanUnknown != 1 {
		t.Fatalf("%d were found, want 1", run.ScanUnknown)
	}
	version, err := b.catalog.Version(t.Context(), "july", 1)
	must(t, "read the version", err)
	if err := b.read(t.Context(), version); !errors.Is(err, fencing.ErrObjectGone) {
		t.Errorf("reading the version ended in %v, want that its object is gone", err)
	}
	g := b.grant(t, "july")
	if _, err := b.rollBack(t.Context(), g, 1); !errors.Is(err, fencing.ErrObjectGone) {
		t.Errorf("rolling back ended in %v, want that its object is gone", err)
	}
	if err := b.catalog.Hold(t.Context(), "july", 1, "test"); !errors.Is(err, fencing.ErrObjectGone) {
		t.Errorf("holding it ended in %v, want that its object is gone", err)
	}
	if err := b.catalog.Erase(t.Context(), "july", 1, "test", "test"); !errors.Is(err, fencing.ErrObjectGone) {
		t.Errorf("erasing it ended in %v, want that its object is gone", err)
	}
	b.db.Advance(t, unknown)
	scan(t, c)
	if keys := b.keys(t); keys != keyOf(second) {
		t.Errorf("left are %q, want the visible object", keys)
	}
	b.wantIntact(t)
}

func TestAfterAFloorWhatWasFoundIsKeptForItsWholeRetention(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := nameOf("july", "1.9", "lost-by-a-restore")
	b.storage.Put(t, keyOf(name), "x")
	c := b.collector(scans, instant)
	scan(t, c)
	b.db.Advance(t, unknown-time.Hour)
	_, err := b.leases.AdvanceEpoch(t.Context(), lease.Advance{Expected: 1, Floor: true, Reason: "a restore", By: "test", Staged: retention})
	must(t, "advance the epoch", err)
	b.db.Advance(t, unknown-time.Minute)
	if run := scan(t, c); run.Condemned != 0 {
		t.Errorf("%d were condemned before a retention has passed since the floor", run.Condemned)
	}
	b.db.Advance(t, 2*time.Minute)
	if run := scan(t, c); run.Condemned != 1 {
		t.Errorf("%d were condemned after it, want 1", run.Condemned)
	}
}

// TestAReserveAndAScanOfOneKeyNeverBothHaveIt lets a worker reserve the key that a scan sees, at each step of the scan.
func TestAReserveAndAScanOfOneKeyNeverBothHaveIt(t *testing.T) {
	t.Parallel()
	type race func(t *testing.T, b *bundle, d *deletes, reserve, scan func() error) (reserveErr, scanErr error)
	// atListing has the reserve happen while the listing stands at its beginning, or at its end.
	atListing := func(atEnd bool) race {
		return func(_ *testing.T, _ *bundle, d *deletes, reserve, scan func() error) (reserveErr, scanErr error) {
			d.listed = func(_ int, end bool) error {
				if end == atEnd {
					reserveErr = reserve()
				}
				return nil
			}
			scanErr = scan()
			return reserveErr, scanErr
		}
	}
	for name, tc := range map[string]struct {
		reserved bool // the worker is first
		race     race
	}{
		"reserved once the listing has come, and no row was read":     {true, atListing(false)},
		"reserved once no row was found, and before that is recorded": {true, atListing(true)},
		"the scan waits for the report, behind the reserve": {true, func(t *testing.T, b *bundle, _ *deletes, reserve, scan func() error) (error, error) {
			letGo := b.db.HoldReport(t, "july")
			reserving := async(reserve)
			b.db.AwaitWaiting(t, 1)
			scanning := async(scan)
			b.db.AwaitWaiting(t, 2)
			letGo()
			return await(t, "the reserve", reserving), await(t, "the scan", scanning)
		}},
		"the reserve waits for the report, behind the scan": {false, func(t *testing.T, b *bundle, _ *deletes, reserve, scan func() error) (error, error) {
			// The scan holds the report, and is about to write the object's row.
			b.db.Exec(t, `
				CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN IF NEW.found_at IS NOT NULL THEN PERFORM pg_advisory_xact_lock(7); END IF; RETURN NEW; END $$;
				CREATE TRIGGER wait_here BEFORE INSERT ON object FOR EACH ROW EXECUTE FUNCTION wait_here()`)
			letGo := b.db.Hold(t, "SELECT pg_advisory_xact_lock(7)")
			scanning := async(scan)
			b.db.AwaitWaiting(t, 1)
			reserving := async(reserve)
			b.db.AwaitWaiting(t, 2)
			letGo()
			return await(t, "the reserve", reserving), await(t, "the scan", scanning)
		}},
		"reserved after the scan": {false, func(_ *testing.T, _ *bundle, _ *deletes, reserve, scan func() error) (error, error) {
			scanErr := scan()
			return reserve(), scanErr
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			name := fencing.ObjectName{Report: g.Report, Fence: g.Fence, Object: "data"}
			b.storage.Put(t, keyOf(name), "x")
			d := &deletes{Bucket: b.bucket}
			c := b.collectorOn(d, scans)
			reserveErr, scanErr := tc.race(t, b, d, func() error {
				_, _, err := b.reserve(t.Context(), g, "data", "x")
				return err
			}, func() error {
				p, err := c.Begin(t.Context(), gc.Options{By: "test", Scan: true})
				if err != nil {
					return err
				}
				return p.Run(t.Context())
			})
			must(t, "scan", scanErr)
			found := testdb.Value[bool](t, b.db, "SELECT found_at IS NOT NULL FROM object")
			if tc.reserved != (reserveErr == nil) || tc.reserved == found {
				t.Errorf("the reserve ended in %v, and the row is the scan's: %t; want that the reserve was first: %t", reserveErr, found, tc.reserved)
			}
			if reserveErr != nil && !errors.Is(reserveErr, staging.ErrExists) {
				t.Errorf("the reserve was refused with %v", reserveErr)
			}
		})
	}
}
