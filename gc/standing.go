package gc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Standing is what the collector has not done, and why, whichever instance was to do it.
type Standing struct {
	// ReportOnly says that passes only report: nothing was collected yet, and nobody has approved a run.
	ReportOnly bool
	// ReportedRun is the newest run that only reported, and may be approved; nil where there is none.
	ReportedRun *int64
	HeldBack    []HeldBack // oldest run first
	Stuck       int64      // objects that are condemned, and could not be deleted in ten attempts
	Overdue     Overdue
	// LastCompleteScan is when a scan of the bucket was last complete; nil: none was.
	LastCompleteScan *time.Time
}

// HeldBack is what one run's brake holds back now, and nobody has approved.
type HeldBack struct {
	RunID   int64
	Objects int64
	Bytes   int64
}

// Overdue counts the objects that should have gone by now: those that are due and not condemned, also where the brake holds
// them back, those that are condemned, past their grace and not deleted, and what has returned under those that were
// deleted. What a freeze keeps is not overdue.
type Overdue struct {
	Objects int64
	Oldest  time.Duration  // how long ago the first of them should have gone; 0 if there is none
	ByAge   []OverdueByAge // by rising age
}

// OverdueByAge counts those that should have gone longer ago than that.
type OverdueByAge struct {
	OlderThan time.Duration
	Objects   int64
}

// Standing reads what the collector has not done. Error: database.ErrUnavailable.
func (c *Collector) Standing(ctx context.Context) (Standing, error) {
	const query = `
		SELECT collecting_since IS NULL AND @report_first AS report_only,
		       (SELECT max(run_id) FROM gc_run WHERE report_only AND finished_at IS NOT NULL) AS reported_run,
		       (SELECT count(*) FROM object WHERE state = 'condemned' AND purge_attempts >= 10) AS stuck,
		       (SELECT completed_at FROM gc_scan) AS last_complete_scan
		FROM deployment`
	type row struct {
		ReportOnly       bool
		ReportedRun      *int64
		Stuck            int64
		LastCompleteScan *time.Time
	}
	got, _, err := database.Row[row](ctx, c.pool, query, pgx.NamedArgs{"report_first": c.cfg.ReportFirst})
	if err != nil {
		return Standing{}, fmt.Errorf("read what the collector has not done: %w", err)
	}
	standing := Standing{ReportOnly: got.ReportOnly, ReportedRun: got.ReportedRun, Stuck: got.Stuck, LastCompleteScan: got.LastCompleteScan}
	if standing.HeldBack, err = c.heldBack(ctx); err != nil {
		return Standing{}, err
	}
	standing.Overdue, err = c.overdue(ctx)
	return standing, err
}

func (c *Collector) heldBack(ctx context.Context) ([]HeldBack, error) {
	const query = `
		SELECT g.run_id, h.objects, h.bytes
		FROM gc_run g
		CROSS JOIN LATERAL (
			SELECT count(*) AS objects, coalesce(sum(coalesce(size, declared_size, 0)), 0)::bigint AS bytes
			FROM object
			WHERE held_back_run = g.run_id AND state IN ('reserved', 'sealed')
		) h
		WHERE g.braked > 0 AND NOT g.dry_run AND g.approved_at IS NULL AND h.objects > 0
		ORDER BY g.run_id`
	held, err := database.Rows[HeldBack](ctx, c.pool, query, nil)
	if err != nil {
		return nil, fmt.Errorf("count what the brake holds back: %w", err)
	}
	return held, nil
}

// overdue reads nothing but indexes where it can: the report is in the key, two from its end.
func (c *Collector) overdue(ctx context.Context) (Overdue, error) {
	const query = `
		WITH clock AS MATERIALIZED (SELECT fenceline_now() AS now),
		late AS (
			SELECT eligible_at AS since, key
			FROM object
			WHERE state IN ('reserved', 'sealed') AND held_back_run IS NULL AND eligible_at <= (SELECT now FROM clock)
			UNION ALL
			SELECT eligible_at, key
			FROM object
			WHERE state IN ('reserved', 'sealed') AND held_back_run IS NOT NULL AND eligible_at <= (SELECT now FROM clock)
			UNION ALL
			SELECT purge_after, key
			FROM object
			WHERE state = 'condemned' AND purge_after <= (SELECT now FROM clock)
			UNION ALL
			SELECT leftover_at, key -- it has returned, and was not removed by the scan that saw it
			FROM object
			WHERE leftover_at IS NOT NULL AND state = 'deleted'
		)
		SELECT count(*) AS objects,
		       coalesce(extract(epoch FROM max(now - since)) * 1000, 0)::bigint AS oldest_ms,
		       ARRAY[count(*) FILTER (WHERE since < now - interval '1 hour'),
		             count(*) FILTER (WHERE since < now - interval '6 hours'),
		             count(*) FILTER (WHERE since < now - interval '1 day'),
		             count(*) FILTER (WHERE since < now - interval '7 days')] AS by_age
		FROM late, clock
		WHERE NOT EXISTS (SELECT FROM frozen_reports) OR NOT is_frozen(split_part(key, '/', -3))`
	type row struct {
		Objects  int64
		OldestMs int64
		ByAge    []int64
	}
	got, _, err := database.Row[row](ctx, c.pool, query, nil)
	if err != nil {
		return Overdue{}, fmt.Errorf("count what is overdue: %w", err)
	}
	overdue := Overdue{Objects: got.Objects, Oldest: time.Duration(got.OldestMs) * time.Millisecond}
	for i, age := range []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		overdue.ByAge = append(overdue.ByAge, OverdueByAge{OlderThan: age, Objects: got.ByAge[i]})
	}
	return overdue, nil
}
