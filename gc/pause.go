package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// ErrPaused reports that an operator has paused the collector.
var ErrPaused = errors.New("the collector is paused")

// Pause stops the collector everywhere, at the next step of the pass under way, until Resume; repeated it does
// nothing. Error: database.ErrUnavailable.
func (c *Collector) Pause(ctx context.Context, by string) error { return c.setPause(ctx, true, by) }

// Resume lets the collector go on; repeated it does nothing. Error: database.ErrUnavailable.
func (c *Collector) Resume(ctx context.Context, by string) error { return c.setPause(ctx, false, by) }

func (c *Collector) setPause(ctx context.Context, pause bool, by string) error {
	const query = `SELECT status FROM set_gc_pause(@pause, @by)`
	type answer struct{ Status string }
	_, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{"pause": pause, "by": by})
	if err != nil {
		return fmt.Errorf("pause or resume the collector: %w", err)
	}
	return nil
}

// Situation is how collecting stands, whichever instance does it.
type Situation struct {
	LastSuccess *time.Time // when the last pass completed that was no dry run; nil if none is on record
	Running     bool       // a pass is under way
	Paused      bool
}

// Situation reads how collecting stands. Error: database.ErrUnavailable.
func (c *Collector) Situation(ctx context.Context) (Situation, error) {
	const query = `
		SELECT (SELECT finished_at FROM gc_run WHERE outcome = 'completed' AND NOT dry_run ORDER BY run_id DESC LIMIT 1) AS last_success,
		       EXISTS (SELECT FROM gc_run WHERE finished_at IS NULL) AS running,
		       EXISTS (SELECT FROM gc_pause) AS paused`
	got, _, err := database.Row[Situation](ctx, c.pool, query, nil)
	if err != nil {
		return Situation{}, fmt.Errorf("read how collecting stands: %w", err)
	}
	return got, nil
}

// PausedSince tells since when the collector is paused, and by whom; nil if it is not. Error: database.ErrUnavailable.
func (c *Collector) PausedSince(ctx context.Context) (*time.Time, string, error) {
	const query = `SELECT paused_at, paused_by FROM gc_pause`
	type row struct {
		PausedAt time.Time
		PausedBy string
	}
	got, found, err := database.Row[row](ctx, c.pool, query, nil)
	if err != nil {
		return nil, "", fmt.Errorf("read the collector's pause: %w", err)
	}
	if !found {
		return nil, "", nil
	}
	return &got.PausedAt, got.PausedBy, nil
}
