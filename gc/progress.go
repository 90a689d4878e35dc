package gc

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// How much there is to do in a phase, as it begins. The clock is read once, so that an index finds what is due by it.
const (
	countDue = `
		SELECT (SELECT count(*) FROM object
		        WHERE state IN ('reserved', 'sealed') AND held_back_run IS NULL AND eligible_at <= (SELECT fenceline_now()))
		     + (SELECT count(*)
		        FROM gc_run g
		        JOIN object o ON o.held_back_run = g.run_id AND o.state IN ('reserved', 'sealed') AND o.eligible_at <= (SELECT fenceline_now())
		        WHERE g.braked > 0 AND NOT g.dry_run AND g.approved_at IS NOT NULL) AS total`
	countDoomed = `SELECT count(*) AS total FROM object WHERE state = 'condemned' AND ` + deleteDue + ` <= (SELECT fenceline_now())`
)

// enterPhase begins a phase, after counting how much there is to do in it, if there is a query for that.
func (p *Pass) enterPhase(ctx context.Context, phase, count string) error {
	type row struct{ Total int64 }
	var total *int64
	if err := p.inTime(ctx); err != nil {
		return err
	}
	if count != "" {
		got, _, err := database.Row[row](ctx, p.collector.pool, count, nil)
		if err != nil {
			return fmt.Errorf("count what there is to do: %w", cause(ctx, err))
		}
		total = &got.Total
	}
	return p.showLife(ctx, phase, total)
}

// inTime is asked before each batch: ErrTimeLimit once the time of the pass is over. What was begun is finished.
func (p *Pass) inTime(ctx context.Context) error {
	const query = `SELECT coalesce(fenceline_now() >= stop_at, false) AS late FROM gc_run WHERE run_id = @run`
	type row struct{ Late bool }
	if p.collector.cfg.TimeLimit == 0 {
		return nil
	}
	got, _, err := database.Row[row](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID})
	if err == nil && got.Late {
		err = ErrTimeLimit
	}
	return err
}
