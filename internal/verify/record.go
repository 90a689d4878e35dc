package verify

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Record is what is written down of a run while it goes on, and after it.
type Record struct {
	VerificationID int64
	Deep           bool
	Pattern        string // of the reports
	RangeBelow     string
	StartedBy      string
	StartedAt      time.Time
	BeatAt         time.Time // when it last moved
	Attempt        int32     // how often it was begun or gone on with
	FinishedAt     *time.Time
	Outcome        *string // completed, stopped, failed, abandoned; nil while it is under way
	Error          *string
	AtReportID     string // the last object that was looked at
	AtEpoch        int32
	AtCounter      int64
	AtObjectID     string // empty: none was
	TotalObjects   *int64 // to look at in all; nil where that is not known
	TotalBytes     *int64
	Objects        int64 // that were looked at and are shown
	Bytes          int64 // of these, as they were published
	Faults         int64 // of these, how many are not as they were published
}

func (r Record) place() place { return place{r.AtReportID, r.AtEpoch, r.AtCounter, r.AtObjectID} }

const selectRecords = `
	SELECT verification_id, deep, pattern, range_below, started_by, started_at, beat_at, attempt, finished_at, outcome, error,
	       at_report_id, at_epoch, at_counter, at_object_id, total_objects, total_bytes, objects, bytes, faults
	FROM verify_run`

// Record reads the record of a run. Errors: ErrNotFound, database.ErrUnavailable.
func (v *Verifier) Record(ctx context.Context, id int64) (Record, error) {
	const query = selectRecords + ` WHERE verification_id = @run`
	record, found, err := database.Row[Record](ctx, v.pool, query, pgx.NamedArgs{"run": id})
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("read verification %d: %w", id, err)
	}
	return record, nil
}

// Records lists runs, newest first: at most limit of them, below the id before (0: from the newest on).
// Error: database.ErrUnavailable.
func (v *Verifier) Records(ctx context.Context, before int64, limit int) ([]Record, error) {
	const query = selectRecords + ` WHERE @before::bigint = 0 OR verification_id < @before::bigint ORDER BY verification_id DESC LIMIT @limit`
	records, err := database.Rows[Record](ctx, v.pool, query, pgx.NamedArgs{"before": before, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list verifications: %w", err)
	}
	return records, nil
}

// Stat is what bytes are known by, as far as that is known.
type Stat struct {
	Size      *int64
	SHA256    string // hex
	ETag      string
	VersionID string // empty on a bucket without versions
}

// Finding is an object that a run has found not to be as it was published.
type Finding struct {
	VerificationID int64
	Object         fencing.ObjectName
	Key            string
	Versions       []int64 // that show it, the newest first; at most twenty of them
	Visible        bool    // one of them is the report's visible version
	Fault          Fault
	Detail         string // what the storage said
	Published      Stat
	Found          Stat // empty where nothing was found
	FirstAt        time.Time
	FoundAt        time.Time
	Present        bool // no later look has seen it over or found it anew, and the object can still be downloaded
}

// After is where a page of findings goes on: after the one of this object. The zero After is the beginning.
type After struct {
	Report  string
	Epoch   int32
	Counter int64
	Object  string
}

// Place is where a finding stands in a list of them.
func (f Finding) Place() After { return After(placeOf(f.Object)) }

// Findings lists what a run has found of the reports in the range of names, in the order of the objects' key: at most limit
// of them, after the place given. Errors: ErrNotFound, database.ErrUnavailable.
func (v *Verifier) Findings(ctx context.Context, id int64, names catalog.Names, after After, limit int) ([]Finding, error) {
	const query = `
		SELECT verification_id, report_id, fence_epoch, fence_counter, object_id, f.key, versions, visible, fault, detail,
		       f.size, f.sha256, f.etag, f.version_id, found_size, found_sha256, found_etag, found_version_id, first_at, f.found_at,
		       present AND o.state IS NOT DISTINCT FROM 'sealed' AS present
		FROM verify_finding f
		LEFT JOIN object o USING (report_id, fence_epoch, fence_counter, object_id)
		WHERE verification_id = @run AND report_id >= @from AND (@below = '' OR report_id < @below)
		  AND (report_id, fence_epoch, fence_counter, object_id) > (@report, @epoch, @counter, @object)
		ORDER BY report_id, fence_epoch, fence_counter, object_id
		LIMIT @limit`
	if _, err := v.Record(ctx, id); err != nil {
		return nil, err
	}
	rows, err := database.Rows[findingRow](ctx, v.pool, query, pgx.NamedArgs{
		"run": id, "from": names.From, "below": names.Below, "limit": limit,
		"report": after.Report, "epoch": after.Epoch, "counter": after.Counter, "object": after.Object,
	})
	if err != nil {
		return nil, fmt.Errorf("list what verification %d found: %w", id, err)
	}
	findings := make([]Finding, len(rows))
	for i, row := range rows {
		findings[i] = row.finding()
	}
	return findings, nil
}

type findingRow struct {
	VerificationID int64
	ReportID       fencing.ReportID
	FenceEpoch     int32
	FenceCounter   int64
	ObjectID       fencing.ObjectID
	Key            string
	Versions       []int64
	Visible        bool
	Fault          Fault
	Detail         *string
	Size           int64
	Sha256         []byte
	Etag           string
	VersionID      *string
	FoundSize      *int64
	FoundSha256    []byte
	FoundEtag      *string
	FoundVersionID *string
	FirstAt        time.Time
	FoundAt        time.Time
	Present        bool
}

func (r findingRow) finding() Finding {
	return Finding{
		VerificationID: r.VerificationID,
		Object:         fencing.ObjectName{Report: r.ReportID, Fence: fencing.Fence{Epoch: r.FenceEpoch, Counter: r.FenceCounter}, Object: r.ObjectID},
		Key:            r.Key, Versions: r.Versions, Visible: r.Visible, Fault: r.Fault, Detail: orEmpty(r.Detail),
		Published: Stat{&r.Size, hex.EncodeToString(r.Sha256), r.Etag, orEmpty(r.VersionID)},
		Found:     Stat{r.FoundSize, hex.EncodeToString(r.FoundSha256), orEmpty(r.FoundEtag), orEmpty(r.FoundVersionID)},
		FirstAt:   r.FirstAt, FoundAt: r.FoundAt, Present: r.Present,
	}
}
