package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
)

// SetDefaults writes the service's defaults, of its configuration, where every instance reads them, and tells
// whether they were others: those of the instance that was started last count for all. Error: database.ErrUnavailable.
func (c *Catalog) SetDefaults(ctx context.Context) (changed bool, err error) {
	const query = `SELECT status FROM set_defaults(@fencing, @publishes_per_grant, @retention_ms, @keep_versions)`
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, c.pool, query, c.defaults())
	if err == nil && got.Status == "unsettled" {
		if err = SettleDefaults(ctx, c.pool); err == nil {
			got, err = database.Change[answer](ctx, c.pool, query, c.defaults())
		}
	}
	if err == nil && got.Status != "set" && got.Status != "unchanged" {
		err = statusError(got.Status)
	}
	if err != nil {
		return false, fmt.Errorf("set the defaults of the reports' settings: %w", err)
	}
	return got.Status == "set", nil
}

// settledAtOnce is how many reports follow a changed default in one transaction.
const settledAtOnce = 100

// SettleDefaults lets all reports follow what has changed in the defaults, bit by bit, so that nobody waits for it long.
// Where it breaks off, the next call goes on, or a pass of the collector. Error: database.ErrUnavailable.
func SettleDefaults(ctx context.Context, pool *pgxpool.Pool) error {
	const query = `SELECT status FROM settle_defaults(@limit)`
	type answer struct{ Status string }
	for {
		got, err := database.Change[answer](ctx, pool, query, pgx.NamedArgs{"limit": settledAtOnce})
		if err == nil && got.Status != "more" && got.Status != "settled" {
			err = statusError(got.Status)
		}
		if err != nil {
			return fmt.Errorf("let the reports follow the changed defaults: %w", err)
		}
		if got.Status == "settled" {
			return nil
		}
	}
}

// HasDefaults tells whether the service's defaults are those of this configuration, and not of an instance that was
// started later with others. Error: database.ErrUnavailable.
func (c *Catalog) HasDefaults(ctx context.Context) (bool, error) {
	const query = `
		SELECT (fencing, publishes_per_grant, retention_ms, keep_versions)
		     = (@fencing, @publishes_per_grant, @retention_ms::bigint, @keep_versions::integer) AS same
		FROM service_default`
	type row struct{ Same bool }
	got, _, err := database.Row[row](ctx, c.pool, query, c.defaults())
	if err != nil {
		return false, fmt.Errorf("read the defaults of the reports' settings: %w", err)
	}
	return got.Same, nil
}

// defaults are those of the configuration, as arguments.
func (c *Catalog) defaults() pgx.NamedArgs {
	return pgx.NamedArgs{
		"fencing": c.cfg.Fencing, "publishes_per_grant": c.cfg.PublishesPerGrant,
		"retention_ms": c.cfg.Retention.Milliseconds(), "keep_versions": c.cfg.KeepVersions,
	}
}
