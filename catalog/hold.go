package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// ErrErased reports that the bytes of a version were erased at an operator's wish.
var ErrErased = errors.New("the version was erased")

// ErrVersionInUse reports that an object is visible or held, so that it cannot be erased.
var ErrVersionInUse = errors.New("the version's object is visible or held")

// Hold keeps a version's object from the collector until Unhold; repeated it does nothing. Errors:
// fencing.ErrReportNotFound, ErrVersionNotFound, fencing.ErrObjectNotFound for a withdrawal, fencing.ErrObjectGone,
// fencing.ErrFrozen, database.ErrUnavailable.
func (c *Catalog) Hold(ctx context.Context, report fencing.ReportID, version int64, by string) error {
	return c.hold(ctx, report, version, true, by)
}

// Unhold lifts a hold; repeated it does nothing. If nothing else keeps the object, its retention begins now.
// Errors: as Hold, without fencing.ErrObjectGone.
func (c *Catalog) Unhold(ctx context.Context, report fencing.ReportID, version int64, by string) error {
	return c.hold(ctx, report, version, false, by)
}

func (c *Catalog) hold(ctx context.Context, report fencing.ReportID, version int64, hold bool, by string) error {
	const query = `SELECT status FROM hold_version(@report, @version, @hold, @by)`
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{
		"report": report, "version": version, "hold": hold, "by": by,
	})
	if err == nil && got.Status != "held" && got.Status != "not_held" {
		err = refusal(got.Status)
	}
	if err != nil {
		return fmt.Errorf("hold version %d of %q: %w", version, report, err)
	}
	return nil
}

// Erase condemns the object of a version: every version that shows it says so from then on, and the collector
// deletes its bytes once the grace is over. Rows and receipts stay; repeated it does nothing. Errors:
// fencing.ErrReportNotFound, ErrVersionNotFound, fencing.ErrObjectNotFound for a withdrawal, ErrVersionInUse,
// fencing.ErrObjectGone where the collector came first, fencing.ErrFrozen, database.ErrUnavailable.
func (c *Catalog) Erase(ctx context.Context, report fencing.ReportID, version int64, reason, by string) error {
	const query = `SELECT status FROM erase_version(@report, @version, @reason, @by, @grace_ms)`
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{
		"report": report, "version": version, "reason": reason, "by": by, "grace_ms": c.cfg.PurgeGrace.Milliseconds(),
	})
	if err == nil && got.Status != "erased" {
		err = refusal(got.Status)
	}
	if err != nil {
		return fmt.Errorf("erase version %d of %q: %w", version, report, err)
	}
	return nil
}

// Refusal is a fence that was refused, and how often.
type Refusal struct {
	Code      string // stale_fence or fence_not_granted
	Presented fencing.Fence
	Highest   fencing.Fence // what it was compared with the last time; zero if there was none
	Reason    string        // of a stale fence
	To        string        // the id of the key that presented it
	Times     int64
	FirstAt   time.Time
	LastAt    time.Time
}

// AfterRefusal is where a page of refusals goes on: after the one with this time and name. The zero AfterRefusal is
// the beginning.
type AfterRefusal struct {
	LastAt    time.Time
	Code      string
	Presented fencing.Fence
	To        string
}

// Refusals lists what was refused for its fence, the latest first: at most limit of them. Errors:
// fencing.ErrReportNotFound, database.ErrUnavailable.
func (c *Catalog) Refusals(ctx context.Context, report fencing.ReportID, after AfterRefusal, limit int) ([]Refusal, error) {
	const query = `
		SELECT code, presented_epoch, presented_counter, highest_epoch, highest_counter,
		       coalesce(reason, '') AS reason, refused_to, times, first_at, last_at
		FROM refusal
		WHERE report_id = @report
		  AND (@first OR (last_at, code, presented_epoch, presented_counter, refused_to) < (@last_at, @code, @epoch, @counter, @to))
		ORDER BY last_at DESC, code DESC, presented_epoch DESC, presented_counter DESC, refused_to DESC
		LIMIT @limit`
	type row struct {
		Code             string
		PresentedEpoch   int32
		PresentedCounter int64
		HighestEpoch     int32
		HighestCounter   int64
		Reason           string
		RefusedTo        string
		Times            int64
		FirstAt          time.Time
		LastAt           time.Time
	}
	rows, err := database.Rows[row](ctx, c.pool, query, pgx.NamedArgs{
		"report": report, "first": after == AfterRefusal{}, "last_at": after.LastAt, "code": after.Code,
		"epoch": after.Presented.Epoch, "counter": after.Presented.Counter, "to": after.To, "limit": limit,
	})
	if err == nil && len(rows) == 0 {
		err = database.ReportExists(ctx, c.pool, report)
	}
	if err != nil {
		return nil, fmt.Errorf("list the refusals of %q: %w", report, err)
	}
	refusals := make([]Refusal, len(rows))
	for i, r := range rows {
		refusals[i] = Refusal{
			Code: r.Code, Presented: fencing.Fence{Epoch: r.PresentedEpoch, Counter: r.PresentedCounter},
			Highest: fencing.Fence{Epoch: r.HighestEpoch, Counter: r.HighestCounter},
			Reason:  r.Reason, To: r.RefusedTo, Times: r.Times, FirstAt: r.FirstAt, LastAt: r.LastAt,
		}
	}
	return refusals, nil
}
