package gc_test

import (
	"testing"
	"time"

	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// What was due when the older epochs were closed may have been used in what was lost: it is kept for its
// retention from then on, and goes after it.
func TestAFloorKeepsWhatWasDueForItsRetentionAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := b.grant(t, "july")
	staged := b.stage(t, g, "staged", "x")
	b.free(t, g)
	old := b.next(t, "july", "first")
	visible := b.next(t, "july", "second")
	b.db.Advance(t, superseded+leaseTTL) // all of it is due
	_, err := b.leases.AdvanceEpoch(t.Context(), lease.Advance{Expected: 1, Floor: true, Reason: "restored", By: "operator", Staged: retention})
	must(t, "advance the epoch", err)

	c := b.collector(instant)
	for range 2 { // a pass that has looked at it must not put it off further
		collect(t, c)
		b.wantState(t, staged, staging.Sealed)
		b.wantState(t, old, staging.Sealed)
		b.db.Advance(t, retention/2-time.Minute)
	}
	b.db.Advance(t, 2*time.Minute)
	collect(t, c)
	b.wantState(t, staged, staging.Deleted)
	b.db.Advance(t, superseded-retention-time.Minute)
	collect(t, c)
	b.wantState(t, old, staging.Sealed)
	b.db.Advance(t, time.Minute)
	collect(t, c)
	b.wantState(t, old, staging.Deleted)
	b.wantState(t, visible, staging.Sealed)
	b.wantIntact(t)
}

func TestAnEpochWithoutAFloorPutsNothingOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.next(t, "july", "first")
	b.next(t, "july", "second")
	b.db.Advance(t, superseded+leaseTTL)
	_, err := b.leases.AdvanceEpoch(t.Context(), lease.Advance{Expected: 1, Reason: "exhausted", By: "operator", Staged: retention})
	must(t, "advance the epoch", err)
	collect(t, b.collector(instant))
	b.wantState(t, old, staging.Deleted)
}
