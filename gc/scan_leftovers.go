package gc

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/staging"
)

// abortedAction is what is said of unfinished uploads that are gone while their object stays.
const abortedAction = "aborted"

// leftovers removes what the listings have shown, since they were whole, to lie under rows that say it is not there: of what is
// deleted, whatever is stored, and unfinished uploads; of what is sealed, unfinished uploads that were seen long ago.
func (s *scan) leftovers(ctx context.Context) error {
	const query = `
		SELECT report_id, fence_epoch, fence_counter, object_id, NULL::text AS error, key, NULL::text AS version_id,
		       leftover_uploads AS unfinished, leftover_size AS size, 'returned' AS reason,
		       CASE state WHEN 'deleted' THEN 'deleted' ELSE 'aborted' END AS action, leftover_at AS due_at
		FROM object
		WHERE leftover_at IS NOT NULL AND key > @after AND key >= @root AND key < @end AND NOT is_frozen(report_id)
		  AND (state = 'deleted' OR state = 'sealed' AND leftover_at <= fenceline_now() - @spared_ms * interval '1 millisecond')
		ORDER BY key
		LIMIT @batch`
	if s.pass.options.DryRun {
		return nil // it has counted them when it saw them
	}
	cfg := s.pass.collector.cfg
	for after := s.after; ; {
		if err := s.pass.inTime(ctx); err != nil {
			return err
		}
		batch, err := s.pass.doomed(ctx, query, pgx.NamedArgs{
			"after": after, "root": s.layout.Root(), "end": s.layout.End(),
			"spared_ms": cfg.Staged.Milliseconds(), "batch": cfg.Batch,
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last := batch[len(batch)-1].Key
		err = s.remove(ctx, batch)
		if errors.Is(err, errFrozenSince) {
			continue // and pick again
		}
		if err != nil {
			return err
		}
		after = last
		if err := s.record(ctx, after); err != nil {
			return err
		}
	}
}

// remove aborts the unfinished uploads of a batch, and then has what is stored under what is deleted go the way of everything
// that is deleted: what is completed meanwhile is among it.
func (s *scan) remove(ctx context.Context, batch []*doomed) error {
	var done, stored []*doomed
	for _, d := range batch {
		if d.Unfinished {
			if err := s.abort(ctx, d); err != nil {
				return err
			}
		}
		if d.Error != nil || d.Action == abortedAction {
			done = append(done, d)
		} else {
			stored = append(stored, d)
		}
	}
	if err := s.pass.recordLeftovers(ctx, done); err != nil {
		return err
	}
	return s.pass.deleteBytes(ctx, stored, s.pass.recordLeftovers)
}

// abort ends the unfinished uploads of one object, and notes at it what the storage said where that failed.
func (s *scan) abort(ctx context.Context, d *doomed) error {
	may := s.pass.mayDelete([]*doomed{d})
	err := s.pass.patiently(ctx, may, func() error { return s.pass.collector.bucket.AbortUploads(ctx, d.Key, may) })
	switch {
	case stops(err) || errors.Is(err, staging.ErrThrottled) || errors.Is(err, staging.ErrStorageUnavailable):
		return err
	case err != nil:
		d.failed(err)
	}
	return nil
}

// recordLeftovers writes down what the storage answered for a batch of leftovers.
func (p *Pass) recordLeftovers(ctx context.Context, batch []*doomed) error {
	const query = `SELECT status FROM record_leftovers(@run, @results)`
	return p.recordAnswers(ctx, query, batch)
}
