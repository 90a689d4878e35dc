package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Advance says how the next epoch is to begin.
type Advance struct {
	Expected int32 // the epoch from which it follows
	Floor    bool  // close the older epochs: their fences are refused, their leases are not live
	Reason   string
	By       string

	// Staged is how long objects that were never published are kept from a floor on.
	Staged time.Duration
}

// AdvanceEpoch begins the next epoch, after the one that is expected, and returns it. Every change that was let
// through before has ended then. Errors: ErrEpochMismatch (*EpochMismatchError), which a repetition is told
// too; database.ErrUnavailable.
func (a *Authority) AdvanceEpoch(ctx context.Context, r Advance) (Epoch, error) {
	const query = `SELECT status, epoch FROM advance_epoch(@expected, @floor, @reason, @by, @staged_ms)`
	type answer struct {
		Status string
		Epoch  *int32
	}
	got, err := database.Change[answer](ctx, a.pool, query, pgx.NamedArgs{
		"expected": r.Expected, "floor": r.Floor, "reason": r.Reason, "by": r.By, "staged_ms": r.Staged.Milliseconds(),
	})
	switch {
	case err != nil:
	case got.Status == "standby":
		err = fmt.Errorf("%w: it is a standby", database.ErrUnavailable)
	case got.Status == "epoch_mismatch" && got.Epoch == nil:
		err = database.ErrEpochInDoubt
	case got.Status == "epoch_mismatch":
		err = &EpochMismatchError{Expected: r.Expected, Actual: *got.Epoch}
	}
	if err != nil {
		return Epoch{}, fmt.Errorf("advance the epoch from %d: %w", r.Expected, err)
	}
	epoch, err := a.Epoch(ctx)
	if errors.Is(err, database.ErrUnavailable) { // it has advanced
		err = &database.UnavailableError{Outcome: database.Unknown, Cause: err}
	}
	return epoch, err
}
