package staging

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// State is how far an object is in its life. It never goes back.
type State string

// The states of an object, in their order.
const (
	Reserved  State = "reserved"
	Sealed    State = "sealed"
	Condemned State = "condemned"
	Deleted   State = "deleted"
)

// ParseState reads a state's name.
func ParseState(text string) (State, bool) {
	switch s := State(text); s {
	case Reserved, Sealed, Condemned, Deleted:
		return s, true
	}
	return "", false
}

// Object is what is known of the bytes of one key.
type Object struct {
	Name        fencing.ObjectName
	Key         string
	State       State
	ContentType string
	Filename    string
	Declared    Bytes
	PartSize    int64  // of an object that is uploaded in parts
	UploadID    string // of its upload in parts, once that is known
	Size        *int64 // known once it is sealed
	SHA256      string // hex, known once it is sealed
	ETag        string // as the storage writes it, known once it is sealed
	VersionID   string // empty on a bucket without versions
	ReservedAt  time.Time
	SealedAt    *time.Time
	FoundAt     *time.Time // when a scan of the bucket first saw its key, which nobody had reserved; to workers it does not exist

	// Verdict and Reason are what the collector would say of it now; Until is when that may change, if it
	// is a matter of time. HeldBackRun is the pass whose brake holds it back, where that is the verdict.
	Verdict     string
	Reason      string
	Until       *time.Time
	HeldBackRun *int64

	// Failure is what became of the last attempt to delete its bytes, where that has failed.
	Failure *PurgeFailure

	checked bool // the bytes were looked at in the present epoch
}

// PurgeFailure is a delete that the storage has refused, and that is tried again.
type PurgeFailure struct {
	Attempts int    // how many there were
	Error    string // what the storage said to the last one
	RetryAt  time.Time
}

// stuckAfter is how many attempts must fail before somebody should look at it.
const stuckAfter = 10

// Stuck tells whether it has been tried in vain so often that somebody should look at it. It is tried again all the same.
func (f *PurgeFailure) Stuck() bool { return f.Attempts >= stuckAfter }

type objectRow struct {
	ReportID       fencing.ReportID
	FenceEpoch     int32
	FenceCounter   int64
	ObjectID       fencing.ObjectID
	Key            string
	State          State
	ContentType    *string
	Filename       *string
	DeclaredSize   *int64
	DeclaredSha256 []byte
	PartSize       int64
	UploadID       *string
	Size           *int64
	Sha256         []byte
	Etag           *string
	VersionID      *string
	ReservedAt     time.Time
	SealedAt       *time.Time
	FoundAt        *time.Time
	Checked        bool
	Verdict        string
	Reason         string
	Until          *time.Time
	HeldBackRun    *int64
	PurgeAttempts  int
	PurgeError     *string
	RetryAt        *time.Time
}

const selectObjects = `
	SELECT o.report_id, o.fence_epoch, o.fence_counter, o.object_id, o.key, o.state, o.content_type, o.filename,
	       o.declared_size, o.declared_sha256, coalesce(o.part_size, 0) AS part_size, o.upload_id, o.size, o.sha256, o.etag, o.version_id, o.reserved_at, o.sealed_at, o.found_at,
	       coalesce(o.checked_epoch = (SELECT max(epoch) FROM epoch), false) AS checked,
	       x.verdict, x.reason, x.until, x.held_back_run, o.purge_attempts, o.purge_error, o.retry_at
	FROM object o
	CROSS JOIN LATERAL explain_object(o.report_id, o.fence_epoch, o.fence_counter, o.object_id) x
	WHERE o.report_id = @report`

// Object reads one object. Errors: fencing.ErrObjectNotFound, database.ErrUnavailable.
func (a *Area) Object(ctx context.Context, name fencing.ObjectName) (Object, error) {
	const query = selectObjects + ` AND (o.fence_epoch, o.fence_counter, o.object_id) = (@epoch, @counter, @object)`
	row, found, err := database.Row[objectRow](ctx, a.pool, query, nameArgs(name))
	if err == nil && !found {
		err = fencing.ErrObjectNotFound
	}
	if err != nil {
		return Object{}, fmt.Errorf("read object %q of %q: %w", name.Object, name.Report, err)
	}
	return row.object(), nil
}

// After is where a page of objects goes on: after the one of this name. The zero After is the beginning.
type After struct {
	Fence  fencing.Fence
	Object fencing.ObjectID
}

// Filter says which objects of a report a list holds. The zero Filter: all.
type Filter struct {
	State  State            // only those in this state
	Object fencing.ObjectID // only those of this id, which each grant may have one of
}

// Objects lists the objects of a report by fence and id, newest grant first, at most limit of them.
// Errors: fencing.ErrReportNotFound, database.ErrUnavailable.
func (a *Area) Objects(ctx context.Context, report fencing.ReportID, only Filter, after After, limit int) ([]Object, error) {
	const query = selectObjects + `
		AND (@state = '' OR o.state = @state)
		AND (@only_object = '' OR o.object_id = @only_object)
		AND (@first OR (o.fence_epoch, o.fence_counter) < (@epoch, @counter)
		            OR (o.fence_epoch, o.fence_counter) = (@epoch, @counter) AND o.object_id > @object)
		ORDER BY o.fence_epoch DESC, o.fence_counter DESC, o.object_id
		LIMIT @limit`
	args := nameArgs(fencing.ObjectName{Report: report, Fence: after.Fence, Object: after.Object})
	args["first"], args["limit"] = after == After{}, limit
	args["state"], args["only_object"] = only.State, only.Object
	rows, err := database.Rows[objectRow](ctx, a.pool, query, args)
	if err == nil && len(rows) == 0 {
		err = database.ReportExists(ctx, a.pool, report)
	}
	if err != nil {
		return nil, fmt.Errorf("list the objects of %q: %w", report, err)
	}
	objects := make([]Object, len(rows))
	for i, row := range rows {
		objects[i] = row.object()
	}
	return objects, nil
}

func (r objectRow) object() Object {
	o := Object{
		Name: fencing.ObjectName{
			Report: r.ReportID, Fence: fencing.Fence{Epoch: r.FenceEpoch, Counter: r.FenceCounter}, Object: r.ObjectID,
		},
		Key: r.Key, State: r.State, ContentType: orEmpty(r.ContentType), Filename: orEmpty(r.Filename),
		Declared: Bytes{Size: r.DeclaredSize, SHA256: hex.EncodeToString(r.DeclaredSha256)},
		PartSize: r.PartSize, UploadID: orEmpty(r.UploadID),
		Size: r.Size, SHA256: hex.EncodeToString(r.Sha256), ETag: orEmpty(r.Etag), VersionID: orEmpty(r.VersionID),
		ReservedAt: r.ReservedAt, SealedAt: r.SealedAt, FoundAt: r.FoundAt,
		Verdict: r.Verdict, Reason: r.Reason, Until: r.Until, HeldBackRun: r.HeldBackRun, checked: r.Checked,
	}
	if r.PurgeError != nil {
		o.Failure = &PurgeFailure{Attempts: r.PurgeAttempts, Error: *r.PurgeError, RetryAt: *r.RetryAt}
	}
	return o
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
