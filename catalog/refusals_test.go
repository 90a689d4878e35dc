package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// by says who asks.
func by(key string) func(*catalog.Request) { return func(r *catalog.Request) { r.By = key } }

// refusals are july's, from the first page on, in pages of the size given.
func (d desk) refusals(t *testing.T, size int) []catalog.Refusal {
	t.Helper()
	var all []catalog.Refusal
	var after catalog.AfterRefusal
	for {
		page, err := d.Refusals(t.Context(), "july", after, size)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		last := page[len(page)-1]
		after = catalog.AfterRefusal{LastAt: last.LastAt, Code: last.Code, Presented: last.Presented, To: last.To}
	}
}

func told(r catalog.Refusal) string {
	return fmt.Sprintf("%s %s of %s below %s %s ×%d", r.Code, r.Presented, r.To, r.Highest, r.Reason, r.Times)
}

func TestRefusalsOfOneFenceToOneKeyAreCountedTogether(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if _, err := d.Refusals(t.Context(), "july", catalog.AfterRefusal{}, 10); !errors.Is(err, fencing.ErrReportNotFound) {
		t.Errorf("the refusals of an unknown report: %v", err)
	}
	a := d.ready(t, "july", "a7")
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	if got := d.refusals(t, 10); len(got) != 0 {
		t.Errorf("before any: %v", got)
	}
	for n := range 3 {
		d.stale(t, object(a, "a", fmt.Sprint("stale ", n), by("one")), b, "superseded")
		d.db.Advance(t, time.Second)
	}
	d.db.Advance(t, 2*ttl)
	c := d.ready(t, "july", "c3")
	d.stale(t, object(a, "a", "stale again", by("one")), c, "superseded") // the bar has risen
	d.db.Advance(t, time.Second)
	d.stale(t, object(a, "a", "stale too", by("two")), c, "superseded")
	d.db.Advance(t, time.Second)
	made := fencing.Fence{Epoch: 1, Counter: 77}
	d.refused(t, object(made, "a", "made up", by("one")), fencing.ErrNotGranted)
	d.db.Advance(t, time.Second)
	// To reserve under it is refused as well.
	_, err := d.db.Pool.Exec(t.Context(), "SELECT reserve('july', 1, 1, 'x', '', NULL, NULL, NULL, NULL, 60000, 3600000, 'three')")
	wantErr(t, err, nil)

	want := []string{
		"stale_fence 1.1 of three below 1.3 superseded ×1",
		"fence_not_granted 1.77 of one below 1.3  ×1",
		"stale_fence 1.1 of two below 1.3 superseded ×1",
		"stale_fence 1.1 of one below 1.3 superseded ×4",
	}
	refusals := d.refusals(t, 10)
	got := make([]string, len(refusals))
	for i, r := range refusals {
		got[i] = told(r)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the refusals (-want +got):\n%s", diff)
	}
	if last := refusals[len(refusals)-1]; last.LastAt.Sub(last.FirstAt) < 2*ttl {
		t.Errorf("the repeated one lasted from %v to %v", last.FirstAt, last.LastAt)
	}
}

func TestRefusalsOfOneMomentAreListedEachOnceInPagesOfAnySize(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ready(t, "july", "a7")
	for counter := range int64(5) {
		for _, key := range []string{"one", "two"} {
			f := fencing.Fence{Epoch: 1, Counter: 10 + counter}
			d.refused(t, object(f, "a", "k", by(key)), fencing.ErrNotGranted)
		}
	}
	d.db.Exec(t, "UPDATE refusal SET last_at = '2026-07-01T12:00:00Z' WHERE presented_counter < 13")
	d.db.Exec(t, "UPDATE refusal SET last_at = '2026-07-02T12:00:00Z' WHERE presented_counter >= 13")
	whole := d.refusals(t, 100)
	if len(whole) != 10 {
		t.Fatalf("%d refusals, want 10", len(whole))
	}
	if !slices.IsSortedFunc(whole, func(a, b catalog.Refusal) int { return b.LastAt.Compare(a.LastAt) }) {
		t.Errorf("the latest is not first: %v", whole)
	}
	for size := 1; size < 11; size++ {
		if diff := cmp.Diff(whole, d.refusals(t, size)); diff != "" {
			t.Errorf("in pages of %d (-whole +pages):\n%s", size, diff)
		}
	}
}

func TestARefusalIsForgottenOnceItHasNotHappenedForLong(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	k := newKeeper(t)
	k.ready(t, "july", "a7")
	refuse := func(counter int64) {
		k.refused(t, object(fencing.Fence{Epoch: 1, Counter: counter}, "a", "k"), fencing.ErrNotGranted)
	}
	refuse(10)
	refuse(11)
	k.db.Advance(t, 20*day)
	refuse(11)
	k.collect(t)
	if got := k.refusals(t, 10); len(got) != 2 {
		t.Errorf("within 30 days there are %v", got)
	}
	k.db.Advance(t, 11*day)
	k.collect(t)
	if got := k.refusals(t, 10); len(got) != 1 || got[0].Presented.Counter != 11 || got[0].Times != 2 {
		t.Errorf("after 31 days there are %v, want the one that was repeated", got)
	}
	k.db.Advance(t, 20*day)
	k.collect(t)
	if got := k.refusals(t, 10); len(got) != 0 {
		t.Errorf("in the end there are %v", got)
	}
}

func TestWhoeverMakesFencesUpDoesNotFillTheTable(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	made := func(n int64, key string) catalog.Request {
		return object(fencing.Fence{Epoch: a.Epoch, Counter: a.Counter + n}, "a", fmt.Sprint("made up ", n), by(key))
	}
	for n := range int64(130) {
		d.refused(t, made(n+1, "one"), fencing.ErrNotGranted)
		d.db.Advance(t, time.Second)
	}
	d.refused(t, made(7, "other"), fencing.ErrNotGranted)
	all := d.refusals(t, 1000)
	if len(all) != 101 {
		t.Fatalf("%d refusals are kept, want a hundred of one key and one of another", len(all))
	}
	var times int64
	for _, r := range all {
		times += r.Times
	}
	if times != 131 {
		t.Errorf("they count %d, want every one of 131", times)
	}
	if all[1].Presented.Counter != a.Counter+130 || all[1].Times != 31 {
		t.Errorf("the latest of the first key is %s", told(all[1]))
	}
}
