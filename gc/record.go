package gc

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Record is a run: what is written down of a pass while it goes on, and after it.
type Record struct {
	RunID            int64
	DryRun           bool
	StartedBy        string
	StartedAt        time.Time
	Outcome          *string // completed, failed, paused, time_limit, stopped, abandoned; nil while it is under way
	Error            *string
	Condemned        int64
	CondemnedBytes   int64
	PutOff           int64
	Braked           int64
	BrakedBytes      int64
	Deleted          int64
	DeletedBytes     int64
	DeleteFailed     int64
	Forgotten        int64
	BrakeMin         int64 // so many may be condemned whatever their share
	BrakeObjects     int64 // the share, as a number of objects
	BrakeBytes       int64 // the share, as a number of bytes
	BrakeUsedObjects int64 // condemned within the window, this pass included
	BrakeUsedBytes   int64
	ReportOnly       bool // it was dry, since the installation does not collect yet
	ApprovedAt       *time.Time
	ApprovedBy       *string
	ByReason         []Tally   // by action and reason
	Errors           []Failure // what the storage said most, up to ten

	// What its scan has counted, with what those have that it took up; ScanKeys is nil where it has not scanned.
	ScanKeys           *int64
	ScanUnknown        int64
	ScanReturned       int64
	ScanForeignObjects int64
	ScanForeignBytes   int64
	ScanForeignSample  []string // ten keys at most
	ScanCompleted      bool

	Moves
}

// Moves tell how far a pass is.
type Moves struct {
	Phase        string     // condemn, purge, forget, scan, done
	PhaseBeganAt *time.Time // nil before it has entered one
	PhaseDone    int64
	PhaseTotal   *int64    // nil where it is not known
	BeatAt       time.Time // when it last moved
	FinishedAt   *time.Time
}

// Tally counts what a pass did for one reason.
type Tally struct {
	Action  string `json:"action"`
	Reason  string `json:"reason"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Failure is one thing that the storage said of deletes that failed.
type Failure struct {
	Detail  string    `json:"detail"`
	Objects int64     `json:"objects"`
	LastAt  time.Time `json:"last_at"`
}

// Progress is how far the present phase of a pass is.
type Progress struct {
	Phase     string
	Done      int64
	Total     *int64         // nil where it is not known
	PerSecond *float64       // nil while nothing was done
	Remaining *time.Duration // nil where one of the two is not known
}

// Progress tells how far a pass is; nil once it has ended.
func (m Moves) Progress() *Progress {
	if m.FinishedAt != nil {
		return nil
	}
	p := Progress{Phase: m.Phase, Done: m.PhaseDone, Total: m.PhaseTotal}
	if m.PhaseBeganAt == nil || m.PhaseDone == 0 || !m.BeatAt.After(*m.PhaseBeganAt) {
		return &p
	}
	p.PerSecond = new(float64(m.PhaseDone) / m.BeatAt.Sub(*m.PhaseBeganAt).Seconds())
	if p.Total != nil {
		left := max(0, *p.Total-p.Done) // more may have become due meanwhile
		p.Remaining = new(time.Duration(float64(left) / *p.PerSecond * float64(time.Second)))
	}
	return &p
}

const selectRecords = `
	SELECT run_id, dry_run, started_by, started_at, beat_at, phase, finished_at, outcome, error,
	       condemned, condemned_bytes, put_off, braked, deleted, deleted_bytes, delete_failed, forgotten,
	       brake_min, brake_objects, brake_bytes, brake_used_objects, brake_used_bytes,
	       braked_bytes, report_only, approved_at, approved_by, phase_began_at, phase_done, phase_total,
	       (SELECT coalesce(jsonb_agg(to_jsonb(t) - 'run_id' ORDER BY action, reason), '[]')
	        FROM gc_tally t WHERE t.run_id = gc_run.run_id) AS by_reason,
	       CASE WHEN delete_failed = 0 THEN '[]'
	       ELSE (SELECT coalesce(jsonb_agg(to_jsonb(f) ORDER BY objects DESC, last_at DESC), '[]') FROM (
	           SELECT coalesce(detail, '') AS detail, count(*) AS objects, max(at) AS last_at
	           FROM gc_ledger l
	           WHERE l.run_id = gc_run.run_id AND action = 'delete_failed'
	           GROUP BY 1
	           ORDER BY 2 DESC, 3 DESC
	           LIMIT 10) f)
	       END AS errors,
	       scan_keys, coalesce(scan_unknown, 0) AS scan_unknown, coalesce(scan_returned, 0) AS scan_returned,
	       coalesce(scan_foreign_objects, 0) AS scan_foreign_objects, coalesce(scan_foreign_bytes, 0) AS scan_foreign_bytes,
	       scan_foreign_sample, coalesce(scan_completed, false) AS scan_completed
	FROM gc_run`

// Record reads the run of a pass. Errors: ErrRunNotFound, database.ErrUnavailable.
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

// Records lists runs, newest first: at most limit of them, below the id before (0: from the newest on).
// Error: database.ErrUnavailable.
func (c *Collector) Records(ctx context.Context, before int64, limit int) ([]Record, error) {
	const query = selectRecords + ` WHERE @before::bigint = 0 OR run_id < @before::bigint ORDER BY run_id DESC LIMIT @limit`
	runs, err := database.Rows[Record](ctx, c.pool, query, pgx.NamedArgs{"before": before, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list collector runs: %w", err)
	}
	return runs, nil
}
