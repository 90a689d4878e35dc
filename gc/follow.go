package gc

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Progress reads how far a pass is and nothing else of its record, so that it can be asked often; nil once it has ended.
// Errors: ErrRunNotFound, database.ErrUnavailable.
func (c *Collector) Progress(ctx context.Context, id int64) (*Progress, error) {
	const query = `SELECT phase, phase_began_at, phase_done, phase_total, beat_at, finished_at FROM gc_run WHERE run_id = @run`
	got, found, err := database.Row[Moves](ctx, c.pool, query, pgx.NamedArgs{"run": id})
	if err == nil && !found {
		err = ErrRunNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read how far collector run %d is: %w", id, err)
	}
	return got.Progress(), nil
}
