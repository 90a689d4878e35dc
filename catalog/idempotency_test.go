package catalog_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestOfManyConcurrentSendsOfOnePublishOneIsAppliedAndAllGetItsReceipt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	const sends = 32
	receipts := make([]catalog.Receipt, sends)
	var all sync.WaitGroup
	for i := range sends {
		all.Go(func() {
			var err error
			if receipts[i], err = d.Publish(t.Context(), object(f, "a", "k1")); err != nil {
				t.Errorf("send %d: %v", i, err)
			}
		})
	}
	all.Wait()
	appliedOnes := 0
	for _, r := range receipts {
		if !r.Duplicate {
			appliedOnes++
		}
		if diff := cmp.Diff(receipts[0].Publication, r.Publication); diff != "" {
			t.Errorf("receipts differ (-first +other):\n%s", diff)
		}
	}
	if appliedOnes != 1 {
		t.Errorf("%d were applied", appliedOnes)
	}
	d.shows(t, "a", f, 1)
}

func TestAKeyBelongsToTheRequestThatItWasAppliedWith(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.applied(t, object(a, "a", "k0"), 1)
	d.db.Advance(t, 2*ttl)
	f := d.ready(t, "july", "b9")
	first := object(f, "a", "k1", expecting(1), func(r *catalog.Request) { r.Metadata = map[string]string{"rows": "7"} })
	receipt := d.applied(t, first, 2)

	for name, edit := range map[string]func(*catalog.Request){
		"another object":            func(r *catalog.Request) { r.Object = "b" },
		"an older version":          func(r *catalog.Request) { r.Object, r.FromVersion = "", 1 },
		"a withdrawal":              func(r *catalog.Request) { r.Object, r.Withdraw = "", true },
		"another fence":             func(r *catalog.Request) { r.Fence = a },
		"a fence above all":         func(r *catalog.Request) { r.Fence.Counter += 100 },
		"other metadata":            func(r *catalog.Request) { r.Metadata = map[string]string{"rows": "8"} },
		"more metadata":             func(r *catalog.Request) { r.Metadata = map[string]string{"rows": "7", "of": "8"} },
		"no metadata":               func(r *catalog.Request) { r.Metadata = nil },
		"another expected version":  expecting(2),
		"no expected version":       func(r *catalog.Request) { r.ExpectedVersion = nil },
		"an object that is unknown": func(r *catalog.Request) { r.Object = "unknown" },
	} {
		other := first
		edit(&other)
		t.Run(name, func(t *testing.T) { d.refused(t, other, catalog.ErrKeyReused) })
	}
	again := first
	again.By = "another process of the worker"
	if diff := cmp.Diff(receipt.Publication, d.duplicate(t, again, 2, true).Publication); diff != "" {
		t.Errorf("the repetition's receipt differs (-first +repeated):\n%s", diff)
	}
	d.shows(t, "a", f, 2)
}

func TestAKeyOfARollBackOrAWithdrawalBelongsToItAsWell(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	d.applied(t, object(f, "a", "k1"), 1)
	d.applied(t, object(f, "b", "k2", expecting(1)), 2)
	kinds := map[string]func(*catalog.Request){
		"an object":             func(r *catalog.Request) { r.Object = "a" },
		"the version before":    func(r *catalog.Request) { r.FromVersion = 1 },
		"the version after":     func(r *catalog.Request) { r.FromVersion = 2 },
		"a withdrawal":          func(r *catalog.Request) { r.Withdraw = true },
		"a withdrawal that has": func(r *catalog.Request) { r.Withdraw, r.Metadata = true, map[string]string{"why": "wrong"} },
	}
	version := int64(2)
	for name, kind := range kinds {
		key := "once " + name
		first := object(f, "", key, expecting(version), kind)
		version++
		d.applied(t, first, version)
		for other, edit := range kinds {
			if other != name {
				d.refused(t, object(f, "", key, expecting(version-1), edit), catalog.ErrKeyReused)
			}
		}
		d.duplicate(t, first, version, true)
	}
	if n := testdb.Value[int64](t, d.db, "SELECT count(*) FROM publication"); n != version {
		t.Errorf("there are %d versions, want %d", n, version)
	}
}

func TestTheSameKeyForAnotherReportIsAnotherKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	july, august := d.ready(t, "july", "a7"), d.ready(t, "august", "a7")
	d.applied(t, object(july, "a", "k1"), 1)
	other := object(august, "b", "k1")
	other.Report = "august"
	d.applied(t, other, 1)
	d.duplicate(t, object(july, "a", "k1"), 1, true)
	d.shows(t, "a", july, 1)
}

func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	d.refused(t, object(f, "unknown", "k1"), fencing.ErrObjectNotFound)
	d.refused(t, object(f, "a", "k1", expecting(3)), catalog.ErrVersionConflict)
	d.refused(t, object(fencing.Fence{Epoch: 1, Counter: 99}, "a", "k1"), fencing.ErrNotGranted)
	d.applied(t, object(f, "a", "k1"), 1)
}

func TestADuplicateIsAnsweredThoughTheFenceIsStaleByNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	first := d.applied(t, object(a, "a", "k1"), 1)
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	d.duplicate(t, object(a, "a", "k1"), 1, true) // still visible: b has published nothing
	d.applied(t, object(b, "b", "k2"), 2)
	d.revoke(t, b)

	again := d.duplicate(t, object(a, "a", "k1"), 1, false)
	if diff := cmp.Diff(first.Publication, again.Publication, cmpopts.IgnoreFields(catalog.Publication{}, "Visible")); diff != "" {
		t.Errorf("the receipt changed (-first +repeated):\n%s", diff)
	}
	d.duplicate(t, object(b, "b", "k2"), 2, true)
	d.refused(t, object(a, "b", "k1"), catalog.ErrKeyReused) // 422 comes before 409
	d.stale(t, object(a, "a", "k3"), b, "superseded")
	d.shows(t, "b", b, 2)
}

func TestADuplicateIsAnsweredWithoutAskingForTheBytes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	d.applied(t, object(f, "a", "k1"), 1)
	d.applied(t, object(f, "b", "k2", expecting(1)), 2)
	// The first object is collected meanwhile.
	d.db.Exec(t, `
		UPDATE object SET state = 'condemned', condemned_at = fenceline_now(), condemned_reason = 'superseded', purge_after = fenceline_now()
		WHERE object_id = 'a'`)
	d.duplicate(t, object(f, "a", "k1"), 1, false)
	d.refused(t, object(f, "a", "k3", expecting(2)), fencing.ErrObjectGone)
	d.shows(t, "b", f, 2)
}

func TestOneKeySentForTwoObjectsAtOnceIsAppliedForOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	letGo := d.db.HoldReport(t, "july")
	first := d.publishing(t, object(f, "a", "k1"), 1)
	second := d.publishing(t, object(f, "b", "k1"), 2)
	letGo()
	_, err1 := first()
	_, err2 := second()
	lost := err2
	if err1 != nil {
		lost = err1
	}
	if (err1 == nil) == (err2 == nil) || !errors.Is(lost, catalog.ErrKeyReused) {
		t.Fatalf("the answers are %v and %v, want one success and one %v", err1, err2, catalog.ErrKeyReused)
	}
	if n := testdb.Value[int](t, d.db, "SELECT count(*)::int FROM publication"); n != 1 {
		t.Errorf("there are %d versions", n)
	}
}
