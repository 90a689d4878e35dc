package catalog_test

import (
	"testing"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestAHeldVersionOutlivesItsRetentionAndWaitsForItWhenTheHoldIsLifted(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.next(t, f, "second", 2)
	for range 2 { // repeated it does nothing
		wantErr(t, k.Hold(t.Context(), "july", 1, "auditor"), nil)
	}
	k.db.Advance(t, 100*step)
	k.collect(t)
	k.stands(t, f, "first", "kept held")
	if p, err := k.Version(t.Context(), "july", 1); err != nil || p.HeldAt == nil {
		t.Errorf("version 1 says %+v, %v, want it held", p, err)
	}
	for range 2 {
		wantErr(t, k.Unhold(t.Context(), "july", 1, "auditor"), nil)
	}
	k.collect(t)
	k.stands(t, f, "first", "kept within_retention")
	k.db.Advance(t, 4*step)
	k.collect(t)
	k.stands(t, f, "first", "condemned superseded")
	wantErr(t, k.Hold(t.Context(), "july", 1, "auditor"), fencing.ErrObjectGone)
}

func TestAnObjectIsHeldForAsLongAsOneOfItsVersionsIs(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.next(t, f, "first", 1)
	k.applied(t, object(f, "", "again", expecting(1), func(r *catalog.Request) { r.FromVersion = 1 }), 2)
	k.next(t, f, "second", 3)
	wantErr(t, k.Hold(t.Context(), "july", 1, "a"), nil)
	wantErr(t, k.Hold(t.Context(), "july", 2, "b"), nil)
	wantErr(t, k.Unhold(t.Context(), "july", 1, "a"), nil)
	k.stands(t, f, "first", "kept held")
	wantErr(t, k.Erase(t.Context(), "july", 1, "asked to", "test"), catalog.ErrVersionInUse) // the other one is held
	wantErr(t, k.Unhold(t.Context(), "july", 2, "b"), nil)
	k.stands(t, f, "first", "kept within_retention")
}

func TestAnErasedVersionSaysSoInEveryVersionThatShowedItsObject(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	f := k.grant(t, "july", "a7")
	k.change(t, keeping(10))
	k.next(t, f, "first", 1)
	k.applied(t, object(f, "", "again", expecting(1), func(r *catalog.Request) { r.FromVersion = 1 }), 2)
	wantErr(t, k.Erase(t.Context(), "july", 1, "asked to", "test"), catalog.ErrVersionInUse) // version 2 is visible
	k.next(t, f, "second", 3)
	k.applied(t, object(f, "", "none", expecting(3), func(r *catalog.Request) { r.Withdraw = true }), 4)
	for range 2 { // repeated it does nothing
		wantErr(t, k.Erase(t.Context(), "july", 1, "asked to", "test"), nil)
	}
	for version, erased := range map[int64]bool{1: true, 2: true, 3: false} {
		p, err := k.Version(t.Context(), "july", version)
		if err != nil || (p.ErasedAt != nil) != erased || p.Object == nil || p.Object.SHA256 == "" {
			t.Errorf("version %d says %+v, %v, want a receipt, and erased: %v", version, p, err, erased)
		}
	}
	k.stands(t, f, "first", "condemned erased")
	again := object(f, "", "back", expecting(4), func(r *catalog.Request) { r.FromVersion = 2 })
	k.refused(t, again, fencing.ErrObjectGone)
	k.refused(t, object(f, "first", "anew", expecting(4)), fencing.ErrObjectGone)
	wantErr(t, k.Hold(t.Context(), "july", 2, "test"), fencing.ErrObjectGone)
	wantErr(t, k.Erase(t.Context(), "july", 4, "asked to", "test"), fencing.ErrObjectNotFound)
	wantErr(t, k.Hold(t.Context(), "july", 4, "test"), fencing.ErrObjectNotFound)
	wantErr(t, k.Erase(t.Context(), "july", 5, "asked to", "test"), catalog.ErrVersionNotFound)
	wantErr(t, k.Hold(t.Context(), "july", 5, "test"), catalog.ErrVersionNotFound)
	wantErr(t, k.Erase(t.Context(), "june", 1, "asked to", "test"), fencing.ErrReportNotFound)
	wantErr(t, k.Hold(t.Context(), "june", 1, "test"), fencing.ErrReportNotFound)

	name := fencing.ObjectName{Report: "july", Fence: f, Object: "first"}
	k.collect(t)
	if !k.holds(t, name) {
		t.Error("the bytes went before the grace was over")
	}
	k.db.Advance(t, 2*step)
	k.collect(t)
	if k.holds(t, name) {
		t.Error("the bytes are there after the grace")
	}
	k.stands(t, f, "second", "kept kept_version")
}

// Two operations wait for the report of a superseded version whose retention is over: the first to come is decided
// first, and the other one sees it.
func TestWhatWouldKeepAVersionAndWhatWouldEndItAreDecidedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	type operation func(keeper, *testing.T, fencing.Fence) error
	rollBack := func(k keeper, t *testing.T, f fencing.Fence) error {
		_, err := k.Publish(t.Context(), object(f, "", "back", expecting(2), func(r *catalog.Request) { r.FromVersion = 1 }))
		return err
	}
	hold := func(k keeper, t *testing.T, _ fencing.Fence) error { return k.Hold(t.Context(), "july", 1, "test") }
	erase := func(k keeper, t *testing.T, _ fencing.Fence) error {
		return k.Erase(t.Context(), "july", 1, "asked to", "test")
	}
	collect := func(k keeper, t *testing.T, _ fencing.Fence) error { return k.pass(t.Context()) }
	for _, c := range []struct {
		name          string
		first, second operation
		refusal       error // of the second
		stands        string
	}{
		{"roll back, erase", rollBack, erase, catalog.ErrVersionInUse, "kept visible"},
		{"erase, roll back", erase, rollBack, fencing.ErrObjectGone, "condemned erased"},
		{"roll back, collect", rollBack, collect, nil, "kept visible"},
		{"collect, roll back", collect, rollBack, fencing.ErrObjectGone, "condemned superseded"},
		{"hold, erase", hold, erase, catalog.ErrVersionInUse, "kept held"},
		{"erase, hold", erase, hold, fencing.ErrObjectGone, "condemned erased"},
		{"hold, collect", hold, collect, nil, "kept held"},
		{"collect, hold", collect, hold, fencing.ErrObjectGone, "condemned superseded"},
		{"erase, collect", erase, collect, nil, "condemned erased"},
		{"collect, erase", collect, erase, fencing.ErrObjectGone, "condemned superseded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			f := k.grant(t, "july", "a7")
			k.next(t, f, "first", 1)
			k.next(t, f, "second", 2)
			k.db.Advance(t, 4*step)
			letGo := k.db.HoldReport(t, "july")
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- c.first(k, t, f) }()
			k.db.AwaitWaiting(t, 1)
			go func() { second <- c.second(k, t, f) }()
			k.db.AwaitWaiting(t, 2)
			letGo()
			wantErr(t, <-first, nil)
			wantErr(t, <-second, c.refusal)
			k.stands(t, f, "first", c.stands)
			if n := testdb.Value[int](t, k.db, `
				SELECT count(*)::int FROM report r JOIN object o ON (o.report_id, o.fence_epoch, o.fence_counter, o.object_id)
				    = (r.report_id, r.visible_epoch, r.visible_counter, r.visible_object_id)
				WHERE o.state = 'sealed' AND o.eligible_at IS NULL`); n != 1 {
				t.Error("what is visible is not kept")
			}
		})
	}
}
