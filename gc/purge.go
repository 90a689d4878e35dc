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
	"github.com/fenceline/fenceline/staging"
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
	PurgeAfter      time.Time        `json:"-"`
}

// purge deletes the bytes of condemned objects, and marks each row for which the storage has said that they
// are gone. Nothing can refer to them any more: condemned is final.
func (p *Pass) purge(ctx context.Context) error {
	const query = `
		SELECT report_id, fence_epoch, fence_counter, object_id, NULL::text AS error, key, version_id,
		       (part_size IS NOT NULL OR sealed_at IS NULL) AS unfinished, coalesce(size, declared_size) AS size, condemned_reason, purge_after
		FROM object
		WHERE state = 'condemned' AND purge_after <= fenceline_now() AND (purge_after, key) > (@after_at, @after_key)
		  AND NOT is_frozen(report_id)
		ORDER BY purge_after, key
		LIMIT @batch`
	afterAt, afterKey := beginning, ""
	for {
		if err := p.inTime(ctx); err != nil {
			return err
		}
		batch, err := database.Rows[doomed](ctx, p.collector.pool, query, pgx.NamedArgs{
			"after_at": afterAt, "after_key": afterKey, "batch": p.collector.cfg.Batch,
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		if !p.options.DryRun {
			err := p.deleteBytes(ctx, batch)
			if errors.Is(err, errFrozenSince) {
				continue // and pick again
			}
			if err != nil {
				return err
			}
		}
		if err := p.recordPurge(ctx, batch); err != nil {
			return err
		}
		last := batch[len(batch)-1]
		afterAt, afterKey = last.PurgeAfter, last.Key
	}
}

// deleteBytes asks the storage to delete the bytes of a batch, and to abort what uploads of them are unfinished, and
// notes in it what failed. After the request
// was signed, and before it is sent, the database's identity and the pass itself are looked at once more:
// if this process is paused after that, the storage refuses the aged signature.
func (p *Pass) deleteBytes(ctx context.Context, batch []doomed) error {
	refs := make([]staging.ObjectRef, len(batch))
	for i, d := range batch {
		refs[i] = staging.ObjectRef{Key: d.Key}
		if d.VersionID != nil {
			refs[i].VersionID = *d.VersionID
		}
	}
	for i := range batch { // first, since what is completed meanwhile is deleted then
		batch[i].abortUploads(ctx, p)
	}
	results, err := p.collector.bucket.Delete(ctx, refs, p.mayDelete(batch))
	if err != nil {
		return err
	}
	for i, r := range results {
		err := r.Err
		if err == nil && r.Hidden {
			err = p.deleteVersions(ctx, batch[i])
		}
		if err != nil {
			batch[i].failed(err)
		}
	}
	return nil
}

// abortUploads ends what uploads of an object are unfinished, and notes in it what failed. Those of an object that was
// not reserved in parts are its worker's own, by credentials for the storage.
func (d *doomed) abortUploads(ctx context.Context, p *Pass) {
	if !d.Unfinished {
		return
	}
	if err := p.collector.bucket.AbortUploads(ctx, d.Key, p.mayDelete([]doomed{*d})); err != nil {
		d.failed(err)
	}
}

func (d *doomed) failed(err error) {
	text := err.Error()
	d.Error = &text
}

// deleteVersions deletes what a versioned bucket keeps of an object's key behind its delete marker.
func (p *Pass) deleteVersions(ctx context.Context, d doomed) error {
	versions, err := p.collector.bucket.Versions(ctx, d.Key)
	if err != nil || len(versions) == 0 {
		return err
	}
	for some := range slices.Chunk(versions, staging.MaxDeletes) {
		results, err := p.collector.bucket.Delete(ctx, some, p.mayDelete([]doomed{d}))
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errFrozenSince reports that a report was frozen after its objects were picked.
var errFrozenSince = errors.New("a report was frozen")

// mayDelete is asked when the request is signed and not sent yet. It is nil while the pass is the one under way, on the
// database whose identity was verified, and none of the reports is frozen.
func (p *Pass) mayDelete(batch []doomed) func(context.Context) error {
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
			return err
		case !got.Verified:
			return database.ErrEpochInDoubt
		case got.Paused:
			return ErrPaused
		case !got.Lives:
			return ErrRunEnded
		case got.Frozen:
			return errFrozenSince
		}
		return nil
	}
}

func (p *Pass) recordPurge(ctx context.Context, batch []doomed) error {
	const query = `SELECT status FROM record_purge(@run, @results, true)`
	type answer struct{ Status string }
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
