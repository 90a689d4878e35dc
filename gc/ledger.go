package gc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Entry is what a pass did with one object, or in a dry run would have done.
type Entry struct {
	Entry  int64  // its place in the ledger; 0 in what a pass tells while it runs
	Action string // one of Actions
	Reason string // never_sealed, never_published, superseded, discarded, erased, live_lease, unknown, returned
	Detail string // what the storage said of a delete that failed
	Object fencing.ObjectName
	Key    string
	Size   *int64 // nil where it was never known
	At     time.Time
}

// Actions are what a pass does with an object; found and aborted (uploads of what is sealed) are a scan's.
func Actions() []string {
	return []string{"condemned", "put_off", "braked", "deleted", "delete_failed", "forgotten", "found", "aborted"}
}

// Entries lists what a pass did with the objects of the reports in the range of names, in its order, and only one action
// unless that is empty: at most limit entries after the one given. Errors: ErrRunNotFound, database.ErrUnavailable.
func (c *Collector) Entries(ctx context.Context, id int64, names catalog.Names, action string, after int64, limit int) ([]Entry, error) {
	const query = `SELECT EXISTS (SELECT FROM gc_run WHERE run_id = @run) AS known`
	type row struct{ Known bool }
	got, _, err := database.Row[row](ctx, c.pool, query, pgx.NamedArgs{"run": id})
	if err == nil && !got.Known {
		err = ErrRunNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read collector run %d: %w", id, err)
	}
	return c.entries(ctx, id, names, action, after, limit)
}

// entries is Entries of a run that exists.
func (c *Collector) entries(ctx context.Context, id int64, names catalog.Names, action string, after int64, limit int) ([]Entry, error) {
	const query = `
		SELECT entry, action, reason, detail, report_id, fence_epoch, fence_counter, object_id, key, size, at
		FROM gc_ledger
		WHERE run_id = @run AND entry > @after
		  AND report_id >= @from AND (@below = '' OR report_id < @below) AND @action IN ('', action)
		ORDER BY entry
		LIMIT @limit`
	type row struct {
		Entry        int64
		Action       string
		Reason       string
		Detail       *string
		ReportID     fencing.ReportID
		FenceEpoch   int32
		FenceCounter int64
		ObjectID     fencing.ObjectID
		Key          string
		Size         *int64
		At           time.Time
	}
	rows, err := database.Rows[row](ctx, c.pool, query, pgx.NamedArgs{
		"run": id, "after": after, "limit": limit, "from": names.From, "below": names.Below, "action": action,
	})
	if err != nil {
		return nil, fmt.Errorf("list what collector run %d did: %w", id, err)
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		fence := fencing.Fence{Epoch: r.FenceEpoch, Counter: r.FenceCounter}
		entries[i] = Entry{
			Entry: r.Entry, Action: r.Action, Reason: r.Reason, Key: r.Key, Size: r.Size, At: r.At,
			Object: fencing.ObjectName{Report: r.ReportID, Fence: fence, Object: r.ObjectID},
		}
		if r.Detail != nil {
			entries[i].Detail = *r.Detail
		}
	}
	return entries, nil
}

// tell passes an entry on to whoever watches the pass, and counts it.
func (p *Pass) tell(e Entry) {
	if !p.options.DryRun && e.Action != "forgotten" { // which only those who watch are told of
		var size int64
		if e.Size != nil {
			size = *e.Size
		}
		p.collector.cfg.Metrics.Collected(e.Action, size)
	}
	if p.options.Each != nil {
		p.options.Each(e)
	}
}

// answered is a row that a function answers for an object for which it has written something down.
type answered struct {
	Status       string
	ReportID     *fencing.ReportID // nil where nothing was written down, for which the status says why
	FenceEpoch   *int32
	FenceCounter *int64
	ObjectID     *fencing.ObjectID
	Key          *string
	Size         *int64
}

func (r answered) entry(reason string) Entry {
	return Entry{
		Action: r.Status, Reason: reason, Key: *r.Key, Size: r.Size,
		Object: fencing.ObjectName{
			Report: *r.ReportID, Fence: fencing.Joined(r.FenceEpoch, r.FenceCounter), Object: *r.ObjectID,
		},
	}
}

func (d doomed) entry() Entry {
	e := Entry{
		Action: d.Action, Reason: d.Reason, Key: d.Key, Size: d.Size,
		Object: fencing.ObjectName{
			Report: d.ReportID, Fence: fencing.Fence{Epoch: d.FenceEpoch, Counter: d.FenceCounter}, Object: d.ObjectID,
		},
	}
	if d.Error != nil {
		e.Action, e.Detail = "delete_failed", *d.Error
	}
	return e
}
