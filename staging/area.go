package staging

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Config says how long things last. The zero value of every field is the default named beside it.
type Config struct {
	// Prefix begins every key, for buckets that are shared. Default: none.
	Prefix string
	// UploadURLLife is how long an upload URL is valid. Default 1 h.
	UploadURLLife time.Duration
	// DownloadURLLife is how long a download URL is valid. Default 5 min.
	DownloadURLLife time.Duration
	// Retention is how long an object is kept that is not published. Default 24 h.
	Retention time.Duration
	// PurgeGrace is how long a condemned object's bytes stay. Default 24 h.
	PurgeGrace time.Duration
}

// Area is the staging area: the rows that say what every object is, and the bucket that holds the bytes.
type Area struct {
	pool   *pgxpool.Pool
	bucket *Bucket
	cfg    Config
}

// New makes a staging area of a database and a bucket.
func New(pool *pgxpool.Pool, bucket *Bucket, cfg Config) *Area {
	cfg.UploadURLLife = cmp.Or(cfg.UploadURLLife, time.Hour)
	cfg.DownloadURLLife = cmp.Or(cfg.DownloadURLLife, 5*time.Minute)
	cfg.Retention = cmp.Or(cfg.Retention, 24*time.Hour)
	cfg.PurgeGrace = cmp.Or(cfg.PurgeGrace, 24*time.Hour)
	return &Area{pool: pool, bucket: bucket, cfg: cfg}
}

// Retention is how long an object is kept that is not published.
func (a *Area) Retention() time.Duration { return a.cfg.Retention }

// Declaration is what a worker says of its bytes before it uploads them. What it says must hold; what it
// leaves out is found out when the object is sealed.
type Declaration struct {
	ContentType string    // empty: readers get application/octet-stream
	Filename    string    // under which readers save it; empty: none
	Size        *int64    // bytes, at most MaxUploadSize, in parts at most MaxObjectSize
	SHA256      string    // hex, lower case
	PartSize    int64     // bytes of each part but the last; 0: it is uploaded as a whole. Size is known then
	Parts       PartRange // whose uploads are to be signed; not part of what is declared
	By          string    // who reserves it; not part of what is declared
}

// Reservation is a reserved object, and the right to upload its bytes once.
type Reservation struct {
	Key      string
	Upload   Upload
	Parts    []PartUpload // instead of Upload, of an object in parts
	Repeated bool         // it had been reserved before, with the same declaration
}

// Reserve makes an object known under a fence that is not stale, before any byte of it is uploaded, and
// signs the upload: as a whole, or those of its parts that are wanted. Errors: fencing.ErrReportNotFound, fencing.ErrFrozen, fencing.ErrStaleFence, fencing.ErrNotGranted,
// fencing.ErrLeaseNotLive, ErrIDReused, ErrExists, ErrStorageUnavailable, database.ErrUnavailable.
func (a *Area) Reserve(ctx context.Context, name fencing.ObjectName, d Declaration) (Reservation, error) {
	r, uploadID, err := a.reserve(ctx, name, d)
	switch {
	case err != nil:
	case d.PartSize != 0:
		r.Parts, err = a.partUploads(ctx, name, r, uploadID, d)
	default:
		r.Upload, err = a.bucket.PresignPut(ctx, r.Key,
			PutDeclaration{ContentType: d.ContentType, Size: d.Size, SHA256: d.SHA256}, a.cfg.UploadURLLife)
		err = afterReserving(err)
	}
	if err != nil {
		return Reservation{}, fmt.Errorf("reserve object %q of %q: %w", name.Object, name.Report, err)
	}
	return r, nil
}

// afterReserving is the error of what failed in the storage once the object was reserved: repeating the request gets
// its URLs.
func afterReserving(err error) error {
	if err == nil {
		return nil
	}
	return &database.UnavailableError{Outcome: database.Unknown, Cause: err}
}

// reserve also tells the upload in parts, if one is known.
func (a *Area) reserve(ctx context.Context, name fencing.ObjectName, d Declaration) (r Reservation, uploadID string, err error) {
	const query = `
		SELECT status, reason, highest_epoch, highest_counter, granted_epoch, granted_counter, key, upload_id
		FROM reserve(@report, @epoch, @counter, @object, @prefix, nullif(@content_type, ''), nullif(@filename, ''),
		             @size, @sha256, @upload_life_ms, @retention_ms, @by, nullif(@part_size, 0))`
	type answer struct {
		Status string
		fencing.Verdict
		Key      *string
		UploadID *string
	}
	digest, err := hex.DecodeString(d.SHA256)
	if err != nil {
		return Reservation{}, "", fmt.Errorf("decode digest: %w", err)
	}
	args := nameArgs(name)
	args["prefix"], args["content_type"], args["filename"], args["size"] = a.cfg.Prefix, d.ContentType, d.Filename, d.Size
	args["sha256"], args["by"], args["part_size"] = orNULL(digest), d.By, d.PartSize
	args["upload_life_ms"] = a.cfg.UploadURLLife.Milliseconds()
	args["retention_ms"] = a.cfg.Retention.Milliseconds()

	got, err := database.Change[answer](ctx, a.pool, query, args)
	if err != nil {
		return Reservation{}, "", err
	}
	switch got.Status {
	case "reserved", "reserved_again":
		return Reservation{Key: *got.Key, Repeated: got.Status == "reserved_again"}, orEmpty(got.UploadID), nil
	case "object_id_reused":
		return Reservation{}, "", ErrIDReused
	}
	if err := got.Err(got.Status, name.Fence); err != nil {
		return Reservation{}, "", err
	}
	return Reservation{}, "", statusError(got.Status)
}

// Discard condemns an object that was never published, and tells its state then; repeated it does nothing. No fence is compared: the
// one in the name is the object's own, so that a worker that has become stale can clear up.
// Errors: fencing.ErrObjectNotFound, ErrInUse, fencing.ErrFrozen, database.ErrUnavailable.
func (a *Area) Discard(ctx context.Context, name fencing.ObjectName) (State, error) {
	const query = `SELECT status, state FROM discard(@report, @epoch, @counter, @object, @grace_ms)`
	type answer struct {
		Status string
		State  *State
	}
	args := nameArgs(name)
	args["grace_ms"] = a.cfg.PurgeGrace.Milliseconds()
	got, err := database.Change[answer](ctx, a.pool, query, args)
	if err == nil && got.Status == "object_in_use" {
		err = ErrInUse
	}
	if err == nil && got.Status != "discarded" {
		err = statusError(got.Status)
	}
	if err != nil {
		return "", fmt.Errorf("discard object %q of %q: %w", name.Object, name.Report, err)
	}
	return *got.State, nil
}

func nameArgs(name fencing.ObjectName) pgx.NamedArgs {
	return pgx.NamedArgs{
		"report": name.Report, "epoch": name.Fence.Epoch, "counter": name.Fence.Counter, "object": name.Object,
	}
}

// orNULL makes NULL of no bytes.
func orNULL(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// statusError is the error of the statuses that several functions have in common.
func statusError(status string) error {
	switch status {
	case "epoch_in_doubt":
		return database.ErrEpochInDoubt
	case "object_not_found":
		return fencing.ErrObjectNotFound
	case "frozen":
		return fencing.ErrFrozen
	case "object_gone":
		return fencing.ErrObjectGone
	case "object_exists":
		return ErrExists
	default:
		return fmt.Errorf("unexpected status %q", status)
	}
}
