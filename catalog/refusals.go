package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

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
