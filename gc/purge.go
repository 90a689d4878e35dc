package gc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// doomed is an object whose bytes are to go: it is condemned and its grace has ended, or a scan has seen what its row says is
// not there.
type doomed struct {
	ReportID     fencing.ReportID `json:"report_id"`
	FenceEpoch   int32            `json:"fence_epoch"`
	FenceCounter int64            `json:"fence_counter"`
	ObjectID     fencing.ObjectID `json:"object_id"`
	Error        *string          `json:"error"` // why its bytes could not be deleted
	Key          string           `json:"-"`
	VersionID    *string          `json:"-"`
	Unfinished   bool             `json:"-"` // there may be unfinished uploads in parts under its key
	Size         *int64           `json:"-"`
	Reason       string           `json:"-"`
	Action       string           `json:"-"` // what is done with it, if it does not fail
	DueAt        time.Time        `json:"-"`
}

func (d *doomed) failed(err error) {
	text := err.Error()
	d.Error = &text
}

// deleteDue is from when a condemned object may be deleted: once its grace has ended, or after a delete that failed, when the
// pause after that is over.
const deleteDue = "coalesce(retry_at, purge_after)"

// selectDoomed reads what may be deleted now. The clock is read once, so that the index ends where the due ones do: a million
// may be within their grace.
const selectDoomed = `
	SELECT report_id, fence_epoch, fence_counter, object_id, NULL::text AS error, key, version_id,
	       (part_size IS NOT NULL OR sealed_at IS NULL) AS unfinished, coalesce(size, declared_size) AS size,
	       condemned_reason AS reason, 'deleted' AS action, ` + deleteDue + ` AS due_at
	FROM object
	WHERE state = 'condemned' AND ` + deleteDue + ` <= (SELECT fenceline_now()) AND NOT is_frozen(report_id)`

// purge deletes the bytes of condemned objects, and marks each row for which the storage has said that they
// are gone. Nothing can refer to them any more: condemned is final.
func (p *Pass) purge(ctx context.Context) error {
	// What has become due since the uploads were listed waits for the next pass, if there may be any of it.
	const query = selectDoomed + ` AND (` + deleteDue + `, key) > (@after_at, @after_key)
		  AND (sealed_at IS NOT NULL AND part_size IS NULL OR ` + deleteDue + ` <= @aborted_to)
		ORDER BY ` + deleteDue + `, key
		LIMIT @batch`
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
			err = p.deleteDoomed(ctx, batch, uploads.unknown)
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

// deleteDoomed deletes the bytes of a batch. unknown is why it could not be found out what uploads are unfinished: then what may
// have some is left.
func (p *Pass) deleteDoomed(ctx context.Context, batch []*doomed, unknown error) error {
	if unknown != nil {
		var left []*doomed
		batch = slices.DeleteFunc(batch, func(d *doomed) bool {
			if d.Unfinished {
				d.failed(unknown)
				left = append(left, d)
			}
			return d.Unfinished
		})
		if err := p.recordPurge(ctx, left); err != nil {
			return err
		}
	}
	return p.deleteBytes(ctx, batch, p.recordPurge)
}

// doomed reads objects whose bytes are to go.
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

// recordPurge writes down what the storage answered for a batch of condemned objects.
func (p *Pass) recordPurge(ctx context.Context, batch []*doomed) error {
	const query = `SELECT status FROM record_purge(@run, @results, true)`
	return p.recordAnswers(ctx, query, batch)
}

// recordAnswers has one of the functions that record the storage's answers write down those for a batch, and tells them.
func (p *Pass) recordAnswers(ctx context.Context, query string, batch []*doomed) error {
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
