package gc

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
)

// beginning is before every moment that the database can hold.
var beginning = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)

// condemned is a row that the SQL function condemn answers.
type condemned struct {
	answered
	Reason *string
	DueAt  *time.Time
}

// condemn takes the objects that are due, and first those that an operator has let go although the brake held them back.
func (p *Pass) condemn(ctx context.Context) error {
	const query = `
		SELECT run_id
		FROM gc_run
		WHERE braked > 0 AND NOT dry_run AND approved_at IS NOT NULL
		  AND EXISTS (SELECT FROM object WHERE held_back_run = run_id AND state IN ('reserved', 'sealed'))
		ORDER BY run_id`
	type row struct{ RunID int64 }
	if err := p.followDefaults(ctx); err != nil {
		return err
	}
	approved, err := database.Rows[row](ctx, p.collector.pool, query, nil)
	if err != nil {
		return err
	}
	for _, run := range approved {
		if err := p.condemnDue(ctx, &run.RunID); err != nil {
			return err
		}
	}
	return p.condemnDue(ctx, nil)
}

// condemnDue takes what is due, batch by batch in the order in which it became so, and lets the database judge each
// under the lock of its report: what the approved run held back, or if that is nil, what no run holds back.
func (p *Pass) condemnDue(ctx context.Context, approved *int64) error {
	const query = `
		SELECT status, reason, report_id, fence_epoch, fence_counter, object_id, key, size, due_at
		FROM condemn(@run, @batch, @after_at, @after_key, @grace_ms, @approved)`
	afterAt, afterKey := beginning, ""
	for {
		if err := p.inTime(ctx); err != nil {
			return err
		}
		rows, err := database.Changes[condemned](ctx, p.collector.pool, query, pgx.NamedArgs{
			"run": p.ID, "batch": p.collector.cfg.Batch, "after_at": afterAt, "after_key": afterKey,
			"grace_ms": p.collector.cfg.PurgeGrace.Milliseconds(), "approved": approved,
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.ReportID == nil {
				return stepError(row.Status)
			}
			if row.Status != "skipped" {
				p.tell(row.entry(*row.Reason))
			}
			afterAt, afterKey = *row.DueAt, *row.Key
		}
		if len(rows) < p.collector.cfg.Batch {
			return nil
		}
	}
}

// followDefaults lets objects that were published before follow what has changed in the service's defaults since.
func (p *Pass) followDefaults(ctx context.Context) error {
	const query = `SELECT status FROM shorten_retention(@run, @batch)`
	type answer struct{ Status string }
	if p.options.DryRun {
		return nil
	}
	if err := catalog.SettleDefaults(ctx, p.collector.pool); err != nil {
		return err
	}
	for {
		if err := p.inTime(ctx); err != nil {
			return err
		}
		got, err := database.Change[answer](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID, "batch": p.collector.cfg.Batch})
		switch {
		case err != nil:
			return err
		case got.Status == "shortened":
			return nil
		case got.Status != "more":
			return stepError(got.Status)
		}
	}
}
