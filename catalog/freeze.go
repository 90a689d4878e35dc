package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Freeze makes the reports that a pattern covers (a name, a beginning followed by *, or *) resolve only, for an
// incident; repeated it does nothing. When it returns, no change of them is under way any more.
// Error: database.ErrUnavailable.
func (c *Catalog) Freeze(ctx context.Context, pattern, by string) error {
	return c.setFreeze(ctx, pattern, true, by)
}

// Unfreeze lifts the freeze of exactly that pattern; repeated it does nothing. Error: database.ErrUnavailable.
func (c *Catalog) Unfreeze(ctx context.Context, pattern, by string) error {
	return c.setFreeze(ctx, pattern, false, by)
}

func (c *Catalog) setFreeze(ctx context.Context, pattern string, freeze bool, by string) error {
	const query = `SELECT status FROM set_freeze(@pattern, @freeze, @by)`
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{"pattern": pattern, "freeze": freeze, "by": by})
	if err == nil && got.Status != "frozen" && got.Status != "unfrozen" {
		err = statusError(got.Status)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", map[bool]string{true: "freeze", false: "unfreeze"}[freeze], pattern, err)
	}
	return nil
}

// Frozen is a freeze in force.
type Frozen struct {
	Pattern  string
	FrozenAt time.Time
	FrozenBy string
}

// FrozenReports lists the freezes in force. Error: database.ErrUnavailable.
func (c *Catalog) FrozenReports(ctx context.Context) ([]Frozen, error) {
	const query = `SELECT pattern, frozen_at, frozen_by FROM frozen_reports ORDER BY pattern`
	frozen, err := database.Rows[Frozen](ctx, c.pool, query, nil)
	if err != nil {
		return nil, fmt.Errorf("list what is frozen: %w", err)
	}
	return frozen, nil
}
