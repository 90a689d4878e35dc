package gc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/staging"
)

// leftover is an object under whose key there is something that its row says is not there.
type leftover struct {
	ReportID     fencing.ReportID `json:"report_id"`
	FenceEpoch   int32            `json:"fence_epoch"`
	FenceCounter int64            `json:"fence_counter"`
	ObjectID     fencing.ObjectID `json:"object_id"`
	Error        *string          `json:"error"` // why it could not be removed
	Key          string           `json:"-"`
	State        staging.State    `json:"-"`
	Uploads      bool             `json:"-"` // unfinished uploads were seen
	LeftoverSize int64            `json:"-"`
}

// leftovers removes what the listings have shown, since they were whole, to lie under rows that say it is not there: of what is
// deleted, whatever is stored, and unfinished uploads; of what is sealed, unfinished uploads that were seen long ago.
func (s *scan) leftovers(ctx context.Context) error {
	const query = `
		SELECT report_id, fence_epoch, fence_counter, object_id, NULL::text AS error, key, state,
		       leftover_uploads AS uploads, leftover_size
		FROM object
		WHERE leftover_at IS NOT NULL AND key > @after AND key >= @root AND key < @end AND NOT is_frozen(report_id)
		  AND (state = 'deleted' OR state = 'sealed' AND leftover_at <= fenceline_now() - @spared_ms * interval '1 millisecond')
		ORDER BY key
		LIMIT @batch`
	if s.pass.options.DryRun {
		return nil // it has counted them when it saw them
	}
	c := s.pass.collector
	for after := s.after; ; {
		batch, err := database.Rows[leftover](ctx, c.pool, query, pgx.NamedArgs{
			"after": after, "root": s.layout.Root(), "end": s.layout.End(),
			"spared_ms": c.cfg.Staged.Milliseconds(), "batch": c.cfg.Batch,
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		err = s.remove(ctx, batch)
		if errors.Is(err, errFrozenSince) {
			continue // and pick again
		}
		if err != nil {
			return err
		}
		if err := s.recordLeftovers(ctx, batch); err != nil {
			return err
		}
		after = batch[len(batch)-1].Key
		if err := s.record(ctx, after); err != nil {
			return err
		}
	}
}

// remove asks the storage to abort the unfinished uploads of a batch, and to delete what is stored under what is deleted, and notes in it
// what failed. As in a purge, each request is looked at once more when it was signed.
func (s *scan) remove(ctx context.Context, batch []leftover) error {
	all := make([]*doomed, len(batch))
	for i, l := range batch {
		all[i] = &doomed{ReportID: l.ReportID, Key: l.Key}
	}
	for i, l := range batch { // first, since what is completed meanwhile is deleted then
		if !l.Uploads {
			continue
		}
		err := s.pass.collector.bucket.AbortUploads(ctx, l.Key, s.pass.mayDelete(all[i:i+1]))
		if endsScan(err) {
			return err
		}
		batch[i].note(err)
	}

	var refs []staging.ObjectRef
	var places []int
	for i, l := range batch {
		if l.State == staging.Deleted && l.Error == nil {
			refs, places = append(refs, staging.ObjectRef{Key: l.Key}), append(places, i)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	results, err := s.pass.collector.bucket.Delete(ctx, refs, s.pass.mayDelete(all))
	if err != nil {
		return err
	}
	for n, r := range results {
		err := r.Err
		if err == nil && r.Hidden {
			err = s.pass.deleteVersions(ctx, all[places[n]])
		}
		if endsScan(err) {
			return err
		}
		batch[places[n]].note(err)
	}
	return nil
}

// endsScan tells an error that is of no single key, but has the pass stop where it is, or pick again.
func endsScan(err error) bool {
	return stops(err) || errors.Is(err, staging.ErrThrottled) || errors.Is(err, staging.ErrStorageUnavailable)
}

func (l *leftover) note(err error) {
	if err != nil {
		text := err.Error()
		l.Error = &text
	}
}

func (s *scan) recordLeftovers(ctx context.Context, batch []leftover) error {
	const query = `SELECT status FROM record_leftovers(@run, @results)`
	type answer struct{ Status string }
	results, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("encode the storage's answers: %w", err)
	}
	got, err := database.Change[answer](ctx, s.pass.collector.pool, query, pgx.NamedArgs{"run": s.pass.ID, "results": string(results)})
	if err != nil {
		return err
	}
	if got.Status != "recorded" {
		return stepError(got.Status)
	}
	for _, l := range batch {
		s.pass.tell(l.entry())
	}
	return nil
}

func (l leftover) entry() Entry {
	e := Entry{
		Action: "deleted", Reason: "returned", Key: l.Key, Size: &l.LeftoverSize,
		Object: fencing.ObjectName{
			Report: l.ReportID, Fence: fencing.Fence{Epoch: l.FenceEpoch, Counter: l.FenceCounter}, Object: l.ObjectID,
		},
	}
	switch {
	case l.Error != nil:
		e.Action, e.Detail = "delete_failed", *l.Error
	case l.State == staging.Sealed:
		e.Action = "aborted"
	}
	return e
}
