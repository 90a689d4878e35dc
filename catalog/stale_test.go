package catalog_test

import (
	"testing"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestAPublishIsStaleFromTheMomentANewerLeaseIsGranted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	d.stale(t, object(a, "a", "from a"), b, "superseded") // although b has published nothing
	d.applied(t, object(b, "a", "from b"), 1)
	d.stale(t, object(a, "a", "from a"), b, "superseded")
	d.shows(t, "a", b, 1)
}

func TestAPublishThatWaitsWhileANewerLeaseIsGrantedIsStale(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	// Sealed, so that the publish needs one call only: the one that waits.
	if err := sealIn(d.db.Pool)(t.Context(), fencing.ObjectName{Report: "july", Fence: a, Object: "a"}); err != nil {
		t.Fatal(err)
	}
	d.db.Advance(t, 2*ttl)

	letGo := d.db.HoldReport(t, "july")
	granted := make(chan string, 1)
	go func() {
		granted <- testdb.Value[string](t, d.db, "SELECT status FROM acquire('july', 'b9', 'B', 60000)")
	}()
	d.db.AwaitWaiting(t, 1)
	publish := d.publishing(t, object(a, "a", "from a"), 2)
	letGo()
	if status := <-granted; status != "acquired" {
		t.Fatalf("acquire: %s", status)
	}
	_, err := publish()
	b := fencing.Fence{Epoch: a.Epoch, Counter: a.Counter + 1}
	wantStale(t, err, fencing.StaleError{Presented: a, Highest: b, Reason: "superseded"})
}

func TestAPublishThatIsFirstAtTheLockIsAppliedBeforeTheNewerGrant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.db.Advance(t, 2*ttl)
	letGo := d.db.HoldReport(t, "july")
	publish := d.publishing(t, catalog.Request{Report: "july", Fence: a, Withdraw: true, IdempotencyKey: "from a"}, 1)
	granted := make(chan int64, 1)
	go func() {
		granted <- testdb.Value[int64](t, d.db, "SELECT version FROM acquire('july', 'b9', 'B', 60000)")
	}()
	d.db.AwaitWaiting(t, 2)
	letGo()
	if receipt, err := publish(); err != nil || receipt.Version != 1 {
		t.Errorf("got %+v, %v", receipt, err)
	}
	if version := <-granted; version != 1 {
		t.Errorf("the newer grant was told version %d", version)
	}
}

func TestAnExpiredLeaseThatNobodyTookMayStillPublish(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, lease := range []string{"a7", "b9"} {
		f := d.ready(t, "july", lease)
		d.db.Advance(t, 10*ttl)
		if lease == "b9" { // or one that was released
			if status := testdb.Value[string](t, d.db, "SELECT status FROM release('july', 'b9')"); status != "lease_lost" {
				t.Fatal(status)
			}
		}
		d.applied(t, object(f, "a", "from "+lease), map[string]int64{"a7": 1, "b9": 2}[lease])
	}
}

func TestAFenceThatWasNeverGrantedLocksNobodyOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	for _, made := range []fencing.Fence{
		{Epoch: a.Epoch, Counter: a.Counter + 1},
		{Epoch: a.Epoch + 1, Counter: 1},
		{Epoch: 1<<31 - 1, Counter: 1<<63 - 1},
	} {
		d.refused(t, object(made, "a", "made up"), fencing.ErrNotGranted)
	}
	d.applied(t, object(a, "a", "k1"), 1)
}

func TestAReportThatNobodyEverLeasedIsNotFound(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refused(t, object(fencing.Fence{Epoch: 1, Counter: 1}, "a", "k1"), fencing.ErrReportNotFound)
}

func TestTheWorkOfOneGrantCannotBePublishedUnderAnother(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.stage(t, "july", a, "only-a")
	d.db.Advance(t, 2*ttl)
	b := d.grant(t, "july", "b9")
	d.refused(t, object(b, "only-a", "k1"), fencing.ErrObjectNotFound)
	d.refused(t, object(b, "a", "k1"), fencing.ErrObjectNotFound)
}

func TestAnOldEpochsLastGrantIsNotStaleUntilTheNextOneIsMade(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.db.Exec(t, "VACUUM FULL report")
	if status := testdb.Value[string](t, d.db, "SELECT status FROM verify_epoch()"); status != "advanced" {
		t.Fatal(status)
	}
	d.applied(t, object(a, "a", "k1"), 1) // there is no floor
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	if b.Epoch != a.Epoch+1 || b.Counter != a.Counter+1 {
		t.Errorf("granted %s after %s", b, a)
	}
	d.stale(t, object(a, "b", "k2", expecting(1)), b, "superseded")
	d.applied(t, object(b, "a", "k3"), 2)
}

func TestAnIdentityThatIsNotVerifiedPublishesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.applied(t, object(a, "a", "k1"), 1)
	d.db.Exec(t, "VACUUM FULL report")
	for _, r := range []catalog.Request{object(a, "a", "k1"), object(a, "b", "k2", expecting(1))} {
		_, err := d.Publish(t.Context(), r)
		wantOutcome(t, err, "not_applied")
	}
	d.shows(t, "a", a, 1)
}
