package catalog_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestASecondPublishOfAGrantMustSayWhichVersionItFollows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	d.applied(t, object(f, "a", "k1"), 1)
	d.refused(t, object(f, "b", "k2"), catalog.ErrExpectedVersionRequired)
	d.refused(t, catalog.Request{Report: "july", Fence: f, IdempotencyKey: "k3", Withdraw: true}, catalog.ErrExpectedVersionRequired)
	d.refused(t, catalog.Request{Report: "july", Fence: f, IdempotencyKey: "k4", FromVersion: 1}, catalog.ErrExpectedVersionRequired)
	d.refused(t, object(f, "b", "k5", expecting(0)), catalog.ErrVersionConflict)
	d.refused(t, object(f, "b", "k6", expecting(2)), catalog.ErrVersionConflict)
	d.shows(t, "a", f, 1)
	d.applied(t, object(f, "b", "k7", expecting(1)), 2)
	d.shows(t, "b", f, 2)
}

func TestAVersionConflictNamesBothVersions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	d.applied(t, object(f, "a", "k1"), 1)
	_, err := d.Publish(t.Context(), object(f, "b", "k2", expecting(7)))
	conflict, ok := errors.AsType[*catalog.VersionConflictError](err)
	if want := (catalog.VersionConflictError{Expected: 7, Actual: 1}); !ok || *conflict != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// Two publishes of one grant, of objects a and then b, arrive in the other order.
func TestReorderedPublishesOfOneGrantNeverMoveThePointerBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second []func(*catalog.Request)
		refusal       error // of the first, which arrives second
	}{
		{"neither says what it expects", nil, nil, catalog.ErrExpectedVersionRequired},
		{"only the second says it", nil, []func(*catalog.Request){expecting(0)}, catalog.ErrExpectedVersionRequired},
		{"both expect nothing", []func(*catalog.Request){expecting(0)}, []func(*catalog.Request){expecting(0)}, catalog.ErrVersionConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			f := d.ready(t, "july", "a7")
			first, second := object(f, "a", "k1", c.first...), object(f, "b", "k2", c.second...)
			d.applied(t, second, 1)
			for range 3 { // and is repeated, in between with the other
				d.refused(t, first, c.refusal)
				d.duplicate(t, second, 1, true)
			}
			d.shows(t, "b", f, 1)
		})
	}
}

func TestAChainOfPublishesArrivesInItsOrderHoweverItIsShuffled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	chain := []catalog.Request{
		object(f, "a", "k1", expecting(0)),
		object(f, "b", "k2", expecting(1)),
		object(f, "a", "k3", expecting(2)),
	}
	d.refused(t, chain[2], catalog.ErrVersionConflict)
	d.refused(t, chain[1], catalog.ErrVersionConflict)
	d.applied(t, chain[0], 1)
	d.refused(t, chain[2], catalog.ErrVersionConflict)
	d.applied(t, chain[1], 2)
	d.duplicate(t, chain[0], 1, false)
	d.applied(t, chain[2], 3)
	d.duplicate(t, chain[1], 2, false)
	d.duplicate(t, chain[0], 1, false)
	d.duplicate(t, chain[2], 3, true)
	d.shows(t, "a", f, 3)
}

func TestConcurrentRepetitionsOfAChainAreAppliedOnceEachInOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.ready(t, "july", "a7")
	const links, senders = 10, 8
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for n := range int64(links) {
				r := object(f, "a", fmt.Sprintf("k%d", n), expecting(n))
				for {
					receipt, err := d.Publish(t.Context(), r)
					if err == nil && receipt.Version == n+1 {
						break
					}
					if !errors.Is(err, catalog.ErrVersionConflict) {
						t.Errorf("link %d: %+v, %v", n, receipt, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	d.shows(t, "a", f, links)
	var want []string
	for n := range links {
		want = append(want, fmt.Sprintf("k%d", n))
	}
	got := testdb.Value[[]string](t, d.db, "SELECT array_agg(idempotency_key ORDER BY version) FROM publication")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestTheNextGrantNeedsNoExpectedVersionAndTheOneBeforeIsOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := d.ready(t, "july", "a7")
	d.applied(t, object(a, "a", "k1"), 1)
	d.db.Advance(t, 2*ttl)
	b := d.ready(t, "july", "b9")
	d.applied(t, object(b, "b", "k2"), 2)
	d.stale(t, object(a, "b", "k3", expecting(2)), b, "superseded")
	d.applied(t, catalog.Request{
		Report: "july", Fence: b, FromVersion: 1, IdempotencyKey: "k4", ExpectedVersion: new(int64(2)),
	}, 3)
	d.shows(t, "a", a, 3)
}
