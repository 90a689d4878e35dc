package catalog_test

import (
	"testing"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestInTheModeAcceptedAnOlderGrantMayPublishUntilANewerOneHas(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.setting(t, "fencing", "accepted")
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	d.applied(t, object(a, "a", "k1"), 1)
	d.applied(t, object(b, "a", "k2"), 2)
	d.stale(t, object(a, "b", "k3", expecting(2)), b, "superseded")
	d.refused(t, object(fencing.Fence{Epoch: 1, Counter: b.Counter + 1}, "a", "k4"), fencing.ErrNotGranted)
	d.shows(t, "a", b, 2)
}

func TestInTheModeLiveTheLeaseMustLiveWhenThePublishIsDecided(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.setting(t, "fencing", "live")
	d.applied(t, object(a, "a", "k1"), 1)

	// It waits while the lease expires.
	letGo := d.db.HoldReport(t, "july")
	publish := d.publishing(t, object(a, "a", "k2", expecting(1)), 1)
	d.db.Advance(t, 2*ttl)
	letGo()
	if receipt, err := publish(); err == nil {
		t.Errorf("applied after the expiry: %+v", receipt)
	} else {
		wantErr(t, err, fencing.ErrLeaseNotLive)
	}
	d.refused(t, object(a, "a", "k3", expecting(1)), fencing.ErrLeaseNotLive)
	d.duplicate(t, object(a, "a", "k1"), 1, true) // that is no new publish

	b := d.ready(t, "july", "b9")
	d.stale(t, object(a, "a", "k3", expecting(1)), b, "superseded")
	d.applied(t, object(b, "a", "k4"), 2)
	if status := testdb.Value[string](t, d.db, "SELECT status FROM release('july', 'b9')"); status != "released" {
		t.Fatal(status)
	}
	d.refused(t, object(b, "b", "k5", expecting(2)), fencing.ErrLeaseNotLive)
	d.shows(t, "a", b, 2)
}

func TestARevokedFenceAndAllBelowItAreBarredInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "granted", "accepted", "live"} {
		t.Run("mode "+mode, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			a := d.ready(t, "july", "a7")
			d.db.Advance(t, 2*ttl)
			b := d.ready(t, "july", "b9")
			d.setting(t, "fencing", mode)
			d.revoke(t, b)
			d.stale(t, object(b, "a", "k1"), b, "revoked")
			below := "superseded"
			if mode == "accepted" {
				below = "revoked" // there it would have passed otherwise
			}
			d.stale(t, object(a, "a", "k2"), b, below)

			c := d.ready(t, "july", "c3") // the lock is free at once
			d.applied(t, object(c, "a", "k3"), 1)
			d.revoke(t, b) // repeated, it leaves the greater grant alone
			d.applied(t, object(c, "b", "k4", expecting(1)), 2)
			d.shows(t, "b", c, 2)
		})
	}
}

func TestARevocationThatWaitsForAPublishComesAfterIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	withdraw := catalog.Request{Report: "july", Fence: a, Withdraw: true}
	letGo := d.db.HoldReport(t, "july")
	withdraw.IdempotencyKey = "before"
	before := d.publishing(t, withdraw, 1)
	revoked := make(chan string, 1)
	go func() {
		revoked <- testdb.Value[string](t, d.db, "SELECT status FROM revoke_lease('july', NULL, NULL, 'test', 'test')")
	}()
	d.db.AwaitWaiting(t, 2)
	letGo()
	if receipt, err := before(); err != nil || receipt.Version != 1 {
		t.Errorf("the publish before it got %+v, %v", receipt, err)
	}
	if status := <-revoked; status != "revoked" {
		t.Errorf("revoke: %s", status)
	}
	withdraw.IdempotencyKey, withdraw.ExpectedVersion = "after", new(int64(1))
	d.stale(t, withdraw, a, "revoked")
}

func TestSwitchingTheModeBackAndForthOpensNoGap(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	d.db.Advance(t, 2*ttl)
	c := d.ready(t, "july", "c3")

	d.stale(t, object(b, "a", "k1"), c, "superseded")
	d.setting(t, "fencing", "accepted")
	d.applied(t, object(b, "a", "k1"), 1)
	d.stale(t, object(a, "a", "k2"), b, "superseded")
	for _, mode := range []string{"granted", "live", ""} {
		d.setting(t, "fencing", mode)
		d.stale(t, object(b, "b", "k3", expecting(1)), c, "superseded")
		d.stale(t, object(a, "a", "k2"), c, "superseded")
	}
	d.setting(t, "fencing", "live")
	d.applied(t, object(c, "a", "k4"), 2)
	d.db.Advance(t, 2*ttl)
	d.refused(t, object(c, "b", "k5", expecting(2)), fencing.ErrLeaseNotLive)
	d.setting(t, "fencing", "accepted")
	d.stale(t, object(b, "b", "k3", expecting(2)), c, "superseded")
	d.applied(t, object(c, "b", "k5", expecting(2)), 3)
	d.shows(t, "b", c, 3)
}

func TestWhereAGrantPublishesOnceEveryKindOfPublishUsesItUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n, kind := range []func(*catalog.Request){
		func(*catalog.Request) {},
		func(r *catalog.Request) { r.Object, r.FromVersion = "", 1 },
		func(r *catalog.Request) { r.Object, r.Withdraw = "", true },
	} {
		f := d.ready(t, "july", "lease-"+string(rune('a'+n)))
		d.setting(t, "publishes_per_grant", "one")
		d.refused(t, object(f, "unknown", "k1-"+f.String()), fencing.ErrObjectNotFound) // does not count
		version := int64(n + 1)
		first := object(f, "a", "k2-"+f.String(), kind)
		d.applied(t, first, version)
		d.refused(t, object(f, "b", "k3-"+f.String()), catalog.ErrGrantAlreadyUsed)
		d.refused(t, object(f, "b", "k4-"+f.String(), expecting(version)), catalog.ErrGrantAlreadyUsed)
		d.refused(t, object(f, "b", "k5-"+f.String(), expecting(version-1)), catalog.ErrGrantAlreadyUsed)
		d.duplicate(t, first, version, true)
		d.db.Advance(t, 2*ttl)
	}
	last := testdb.Value[int64](t, d.db, "SELECT granted_counter FROM report")
	d.setting(t, "publishes_per_grant", "many")
	d.applied(t, object(fencing.Fence{Epoch: 1, Counter: last}, "b", "k6", expecting(3)), 4)
}
