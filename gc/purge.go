package gc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// doomed is a condemned object whose grace has ended.
type doomed struct {
	ReportID        fencing.ReportID `json:"report_id"`
	FenceEpoch      int32            `json:"fence_epoch"`
	FenceCounter    int64            `json:"fence_counter"`
	ObjectID        fencing.ObjectID `json:"object_id"`
	Error           *string          `json:"error"` // why its bytes could not be deleted
	Key             string           `json:"-"`
	VersionID       *string          `json:"-"`
	Unfinished      bool             `json:"-"` // there may be unfinished uploads in parts under its key
	Size            *int64           `json:"-"`
	CondemnedReason string           `json:"-"`
	DueAt           time.Time        `json:"-"`
}

func (d *doomed) failed(err error) {
	text := err.Error()
	d.Error = &text
}

// selectDoomed reads what may be deleted now: a delete that failed is due again when its pause is over. The clock is read
// once, so that the index ends where the due ones do: a million may be within their grace.
const selectDoomed = `
	SELECT report_id, fence_epoch, fence_counter, object_id, NULL::text AS error, key, version_id,
	       (part_size IS NOT NULL OR sealed_at IS NULL) AS unfinished, coalesce(size, declared_size) AS size, condemned_reason,
	       coalesce(retry_at, purge_after) AS due_at
	FROM object
	WHERE state = 'condemned' AND coalesce(retry_at, purge_after) <= (SELECT fenceline_now()) AND NOT is_frozen(report_id)`

// purge deletes the bytes of condemned objects, and marks each row for which the storage has said that they
// are gone. Nothing can refer to them any more: condemned is final.
func (p *Pass) purge(ctx context.Context) error {
	// What has become due since the uploads were listed waits for the next pass, if there may be any of it.
	const query = selectDoomed + ` AND (coalesce(retry_at, purge_after), key) > (@after_at, @after_key)
		  AND (sealed_at IS NOT NULL AND part_size IS NULL OR coalesce(retry_at, purge_after) <= @aborted_to)
		ORDER BY coalesce(retry_at, purge_after), key
		LIMIT @batch`
	p.throttle = throttle{full: p.collector.cfg.atOnce, size: p.collector.cfg.atOnce}
	uploads, err := p.abortUploads(ctx)
	if err != nil {
		return err
	}
	afterAt, afterKey := beginning, ""
	for {
		if err := p.inTime(ctx); err != nil {
			return err
		}
		batch, err := p.doomed(ctx, query, pgx.NamedArgs{
			"after_at": afterAt, "after_key": afterKey, "batch": p.collector.cfg.Batch, "aborted_to": uploads.to,
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last := *batch[len(batch)-1]
		if p.options.DryRun {
			err = p.recordPurge(ctx, batch)
		} else {
			err = p.deleteBytes(ctx, batch, uploads.unknown)
		}
		if errors.Is(err, errFrozenSince) {
			continue // and pick again
		}
		if err != nil {
			return err
		}
		afterAt, afterKey = last.DueAt, last.Key
	}
}

// doomed reads objects that may be deleted now.
func (p *Pass) doomed(ctx context.Context, query string, args pgx.NamedArgs) ([]*doomed, error) {
	rows, err := database.Rows[doomed](ctx, p.collector.pool, query, args)
	batch := make([]*doomed, len(rows))
	for i := range rows {
		batch[i] = &rows[i]
	}
	return batch, err
}

// errFrozenSince reports that a report was frozen after its objects were picked.
var errFrozenSince = errors.New("a report was frozen")

// mayDelete is asked when the request is signed and not sent yet. It is nil while the pass is the one under way, on the
// database whose identity was verified, and none of the reports is frozen.
func (p *Pass) mayDelete(batch []*doomed) func(context.Context) error {
	const query = `
		SELECT epoch_verified() AS verified, continue_run(@run, NULL) AS lives, EXISTS (SELECT FROM gc_pause) AS paused,
		       EXISTS (SELECT FROM unnest(@reports::text[]) report WHERE is_frozen(report)) AS frozen`
	type answer struct{ Verified, Lives, Paused, Frozen bool }
	reports := make([]string, len(batch))
	for i, d := range batch {
		reports[i] = string(d.ReportID)
	}
	return func(ctx context.Context) error {
		got, err := database.Change[answer](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID, "reports": reports})
		switch {
		case err != nil:
		case !got.Verified:
			err = database.ErrEpochInDoubt
		case got.Paused:
			err = ErrPaused
		case !got.Lives:
			err = ErrRunEnded
		case got.Frozen:
			err = errFrozenSince
		}
		if err != nil {
			return &haltError{err}
		}
		return nil
	}
}

func (p *Pass) recordPurge(ctx context.Context, batch []*doomed) error {
	const query = `SELECT status FROM record_purge(@run, @results, true)`
	type answer struct{ Status string }
	if len(batch) == 0 {
		return nil
	}
	results, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("encode the storage's answers: %w", err)
	}
	got, err := database.Change[answer](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID, "results": string(results)})
	if err != nil {
		return err
	}
	if got.Status != "recorded" {
		return stepError(got.Status)
	}
	for _, d := range batch {
		p.tell(d.entry())
	}
	return nil
}
