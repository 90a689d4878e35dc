package staging

import (
	"context"
	"errors"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// The limits of S3 to an upload in parts.
const (
	MinPartSize int64 = 5 << 20
	MaxPartSize       = MaxUploadSize
	MaxParts          = 10_000
	// MaxObjectSize is the most that an object has: 5 TiB.
	MaxObjectSize int64 = 5 << 40
)

// MaxPartURLs is how many parts one reservation signs.
const MaxPartURLs = 1000

// PartRange is the parts First to Last. The zero value is the first MaxPartURLs.
type PartRange struct{ First, Last int }

// PartUpload is the right to upload one part. Until the object is sealed that may be repeated.
type PartUpload struct {
	Number int32
	Upload
}

// Part is a part that was uploaded, with the ETag that the storage answered.
type Part struct {
	Number int32
	ETag   string
}

// PartCount is how many parts the declared bytes have: 0 as a whole.
func (d Declaration) PartCount() int { return partCount(d.Size, d.PartSize) }

func partCount(size *int64, partSize int64) int {
	if size == nil || partSize == 0 {
		return 0
	}
	return int((*size + partSize - 1) / partSize)
}

// partUploads signs the uploads of some parts of an object that was just reserved. Where the object's upload in the
// storage is not known yet, it is begun first: the row was there before, so that the collector looks under its key
// for what a process that ended in between has left.
func (a *Area) partUploads(ctx context.Context, name fencing.ObjectName, r Reservation, uploadID string, d Declaration) (parts []PartUpload, err error) {
	if uploadID == "" {
		uploadID, err = a.beginUpload(ctx, name, r.Key, d.ContentType)
	}
	if err != nil {
		return nil, err
	}
	first, last := d.Parts.First, min(d.Parts.Last, d.PartCount())
	if d.Parts == (PartRange{}) {
		first, last = 1, min(d.PartCount(), MaxPartURLs)
	}
	for n := first; n <= last; n++ {
		size := min(d.PartSize, *d.Size-int64(n-1)*d.PartSize)
		signed, err := a.bucket.PresignPart(ctx, r.Key, uploadID, int32(n), size, a.cfg.UploadURLLife)
		if err != nil {
			return nil, afterReserving(err)
		}
		parts = append(parts, PartUpload{Number: int32(n), Upload: signed})
	}
	return parts, nil
}

// beginUpload begins the upload of a reserved object, and writes it down. Of several that are begun at once the first
// that is written down is the object's, and the others are aborted.
func (a *Area) beginUpload(ctx context.Context, name fencing.ObjectName, key, contentType string) (uploadID string, err error) {
	const query = `SELECT status, upload_id FROM record_upload(@report, @epoch, @counter, @object, @upload_id)`
	type answer struct {
		Status   string
		UploadID *string
	}
	begun, err := a.bucket.CreateUpload(ctx, key, contentType)
	if err != nil {
		return "", afterReserving(err)
	}
	args := nameArgs(name)
	args["upload_id"] = begun
	got, err := database.Change[answer](ctx, a.pool, query, args)
	if err != nil {
		return "", err // it may be the object's: whether it is shows when the request is repeated
	}
	if got.Status == "recorded" {
		return begun, nil
	}
	// Where this fails the seal, or else the collector, aborts it, which look for all that is under the key.
	abortErr := a.bucket.AbortUpload(ctx, key, begun, nil)
	if got.Status == "superseded" {
		return *got.UploadID, nil
	}
	return "", errors.Join(statusError(got.Status), abortErr)
}

// complete makes the object of its parts. Whether this did it, or an earlier attempt whose answer was lost, shows in
// what is under the key then.
func (a *Area) complete(ctx context.Context, o Object, parts []Part) error {
	switch {
	case len(parts) == 0:
		_, err := a.bucket.Head(ctx, o.Key, "")
		if errors.Is(err, ErrNoBytes) {
			return ErrPartsNeeded
		}
		return err
	case !allParts(parts, partCount(o.Declared.Size, o.PartSize)):
		return ErrPartsWrong
	case o.UploadID == "": // nor can it have parts
		return nil
	}
	err := a.bucket.CompleteUpload(ctx, o.Key, o.UploadID, parts)
	switch {
	case errors.Is(err, ErrBytesChanged):
		return nil // the bytes of the key were there already
	case errors.Is(err, ErrNoBytes), errors.Is(err, ErrNotCompleted):
		_, headErr := a.bucket.Head(ctx, o.Key, "")
		if errors.Is(headErr, ErrNoBytes) {
			return errors.Join(ErrPartsWrong, err)
		}
		return headErr
	}
	return err
}

// allParts reports whether parts are those from 1 to count, each once.
func allParts(parts []Part, count int) bool {
	named := make(map[int32]bool, len(parts))
	for _, p := range parts {
		named[p.Number] = p.Number >= 1 && int(p.Number) <= count
		if !named[p.Number] {
			return false
		}
	}
	return len(parts) == count && len(named) == count
}
