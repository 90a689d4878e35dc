package gc

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
)

// forget removes the rows that nothing can refer to any more.
func (p *Pass) forget(ctx context.Context) error {
	const query = `SELECT status, more FROM forget(@run, @batch, @tombstone_ms, @lease_ms, @refusal_ms)`
	type answer struct {
		Status string
		More   *bool
	}
	for {
		if err := p.inTime(ctx); err != nil {
			return err
		}
		got, err := database.Change[answer](ctx, p.collector.pool, query, pgx.NamedArgs{
			"run": p.ID, "batch": p.collector.cfg.Batch,
			"tombstone_ms": p.collector.cfg.Tombstones.Milliseconds(), "lease_ms": p.collector.cfg.Leases.Milliseconds(),
			"refusal_ms": p.collector.cfg.Refusals.Milliseconds(),
		})
		if err != nil {
			return err
		}
		if got.Status != "forgotten" {
			return stepError(got.Status)
		}
		if err := p.tellForgotten(ctx); err != nil {
			return err
		}
		if !*got.More {
			return nil
		}
	}
}

// tellForgotten tells whoever watches the pass of the objects that it has forgotten since the last call.
func (p *Pass) tellForgotten(ctx context.Context) error {
	if p.options.Each == nil {
		return nil
	}
	for {
		entries, err := p.collector.entries(ctx, p.ID, catalog.Names{}, "forgotten", p.told, p.collector.cfg.Batch)
		if err != nil {
			return err
		}
		for _, e := range entries {
			p.told = e.Entry
			p.tell(e)
		}
		if len(entries) < p.collector.cfg.Batch {
			return nil
		}
	}
}
