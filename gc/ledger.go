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
	Action string // condemned, put_off, braked, deleted, delete_failed, forgotten; of a scan found, and aborted: uploads of what is sealed
	Reason string // never_sealed, never_published, superseded, discarded, erased, live_lease, unknown, returned
	Detail string // what the storage said of a delete that failed
	Object fencing.ObjectName
	Key    string
	Size   *int64 // nil where it was never known
	At     time.Time
}

// Record is what is written down of a pass while it goes on, and after it.
type Record struct {
	RunID            int64
	DryRun           bool
	StartedBy        string
	StartedAt        time.Time
	BeatAt           time.Time // when it last moved
	Phase            string    // condemn, purge, forget, scan, done
	FinishedAt       *time.Time
	Outcome          *string // completed, failed, paused, abandoned; nil while it is under way
	Error            *string
	Condemned        int64
	CondemnedBytes   int64
	PutOff           int64
	Braked           int64
	Deleted          int64
	DeletedBytes     int64
	DeleteFailed     int64
	Forgotten        int64
	BrakeMin         int64 // so many may be condemned whatever their share
	BrakeObjects     int64 // the share, as a number of objects
	BrakeBytes       int64 // the share, as a number of bytes
	BrakeUsedObjects int64 // condemned within the window, this pass included
	BrakeUsedBytes   int64

	// What its scan has counted, with what those have that it took up; ScanKeys is nil where it has not scanned.
	ScanKeys           *int64
	ScanUnknown        int64
	ScanReturned       int64
	ScanForeignObjects int64
	ScanForeignBytes   int64
	ScanForeignSample  []string // ten keys at most
	ScanCompleted      bool
}

const selectRecords = `
	SELECT run_id, dry_run, started_by, started_at, beat_at, phase, finished_at, outcome, error,
	       condemned, condemned_bytes, put_off, braked, deleted, deleted_bytes, delete_failed, forgotten,
	       brake_min, brake_objects, brake_bytes, brake_used_objects, brake_used_bytes,
	       scan_keys, coalesce(scan_unknown, 0) AS scan_unknown, coalesce(scan_returned, 0) AS scan_returned,
	       coalesce(scan_foreign_objects, 0) AS scan_foreign_objects, coalesce(scan_foreign_bytes, 0) AS scan_foreign_bytes,
	       scan_foreign_sample, coalesce(scan_completed, false) AS scan_completed
	FROM gc_run`

// Record reads the record of a pass. Errors: ErrRunNotFound, database.ErrUnavailable.
func (c *Collector) Record(ctx context.Context, id int64) (Record, error) {
	const query = selectRecords + ` WHERE run_id = @run`
	run, found, err := database.Row[Record](ctx, c.pool, query, pgx.NamedArgs{"run": id})
	if err == nil && !found {
		err = ErrRunNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("read collector run %d: %w", id, err)
	}
	return run, nil
}

// Records lists passes, newest first: at most limit of them, below the id before (0: from the newest on).
// Error: database.ErrUnavailable.
func (c *Collector) Records(ctx context.Context, before int64, limit int) ([]Record, error) {
	const query = selectRecords + ` WHERE @before::bigint = 0 OR run_id < @before::bigint ORDER BY run_id DESC LIMIT @limit`
	runs, err := database.Rows[Record](ctx, c.pool, query, pgx.NamedArgs{"before": before, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list collector runs: %w", err)
	}
	return runs, nil
}

// Entries lists what a pass did with the objects of the reports in the range of names, in its order: at most
// limit entries after the one given. Errors: ErrRunNotFound, database.ErrUnavailable.
func (c *Collector) Entries(ctx context.Context, id int64, names catalog.Names, after int64, limit int) ([]Entry, error) {
	const query = `
		SELECT entry, action, reason, detail, report_id, fence_epoch, fence_counter, object_id, key, size, at
		FROM gc_ledger
		WHERE run_id = @run AND entry > @after
		  AND report_id >= @from AND (@below = '' OR report_id < @below)
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
	if _, err := c.Record(ctx, id); err != nil {
		return nil, err
	}
	rows, err := database.Rows[row](ctx, c.pool, query, pgx.NamedArgs{
		"run": id, "after": after, "limit": limit, "from": names.From, "below": names.Below,
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

func (r condemned) entry() Entry {
	return Entry{
		Action: r.Status, Reason: *r.Reason, Key: *r.Key, Size: r.Size,
		Object: fencing.ObjectName{
			Report: *r.ReportID, Fence: fencing.Joined(r.FenceEpoch, r.FenceCounter), Object: *r.ObjectID,
		},
	}
}

func (d doomed) entry() Entry {
	e := Entry{
		Action: "deleted", Reason: d.CondemnedReason, Key: d.Key, Size: d.Size,
		Object: fencing.ObjectName{
			Report: d.ReportID, Fence: fencing.Fence{Epoch: d.FenceEpoch, Counter: d.FenceCounter}, Object: d.ObjectID,
		},
	}
	if d.Error != nil {
		e.Action, e.Detail = "delete_failed", *d.Error
	}
	return e
}
