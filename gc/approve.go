package gc

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// ErrNothingHeldBack reports that a run holds nothing back, so that there is nothing to approve.
var ErrNothingHeldBack = errors.New("the run holds nothing back")

// errReported reports that a scheduled pass would say what another has said within the window, which nobody has approved.
var errReported = errors.New("the collector only reports, and has done so within the window")

// Approval is what was let go.
type Approval struct {
	Repeated bool // it had been approved before; the rest is as it was told then
	Objects  int64
	Bytes    int64
}

// Approve lets go exactly what the run's brake holds back: the next pass takes it without the brake, and judges each object
// again. Of a run that only reported, it lets the collector begin, and tells what the run would have condemned. Errors:
// ErrRunNotFound, ErrAlreadyRunning (*AlreadyRunningError: the run itself is under way), ErrNothingHeldBack,
// database.ErrUnavailable.
func (c *Collector) Approve(ctx context.Context, id int64, by string) (Approval, error) {
	const query = `SELECT status, objects, bytes FROM approve_run(@run, @by)`
	type answer struct {
		Status         string
		Objects, Bytes *int64
	}
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{"run": id, "by": by})
	if err == nil {
		switch got.Status {
		case "approved", "already_approved":
			return Approval{Repeated: got.Status == "already_approved", Objects: *got.Objects, Bytes: *got.Bytes}, nil
		case "not_found":
			err = ErrRunNotFound
		case "under_way":
			err = &AlreadyRunningError{RunID: id}
		case "nothing_held_back":
			err = ErrNothingHeldBack
		default:
			err = stepError(got.Status)
		}
	}
	return Approval{}, fmt.Errorf("approve collector run %d: %w", id, err)
}
