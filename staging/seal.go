package staging

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Seal looks at the bytes in the storage and writes down what they are; from then on the object is these
// bytes and no others. Repeated it answers the same. An object that was sealed in an older epoch is looked at
// again, since the database may remember more or less than the bucket holds.
// An object in parts is made of them first: parts are all of its parts, in any order. Without them it is sealed if
// its bytes are there already.
// It makes nothing visible, so it compares no fence. Errors: fencing.ErrObjectNotFound, fencing.ErrFrozen, ErrIncomplete (also as
// ErrPartsNeeded and ErrPartsWrong), ErrNotInParts, ErrMismatch (*MismatchError), fencing.ErrObjectGone,
// ErrStorageUnavailable, database.ErrUnavailable.
func (a *Area) Seal(ctx context.Context, name fencing.ObjectName, parts ...Part) (Object, error) {
	o, err := a.Object(ctx, name)
	if err == nil {
		o, err = a.seal(ctx, o, parts)
	}
	if err != nil {
		return Object{}, fmt.Errorf("seal object %q of %q: %w", name.Object, name.Report, err)
	}
	return o, nil
}

func (a *Area) seal(ctx context.Context, o Object, parts []Part) (Object, error) {
	switch {
	case len(parts) > 0 && o.PartSize == 0:
		return Object{}, ErrNotInParts
	case o.State == Condemned || o.State == Deleted:
		return Object{}, fencing.ErrObjectGone
	case o.State == Sealed && o.checked:
		return o, nil
	}
	inParts := o.PartSize != 0 && o.State == Reserved
	if inParts {
		if err := a.complete(ctx, o, parts); err != nil {
			return Object{}, err
		}
	}
	seen, err := a.look(ctx, o)
	if err != nil {
		return Object{}, err
	}
	if inParts { // no other upload of the key can become anything; sealed, it may stay for years before they are looked for
		if err := a.bucket.AbortUploads(ctx, o.Key); err != nil {
			return Object{}, err
		}
	}
	return a.writeSeal(ctx, o, seen)
}

// LongestSeal is how long a seal may take: that of the largest object, which is completed first.
var LongestSeal = readLimit(MaxObjectSize) + maxAttempts*joinTimeout

// readLimit bounds the reading of size bytes for their digest: three minutes a GiB, which is not quite 6 MB a second.
func readLimit(size int64) time.Duration {
	return max(15*time.Minute, time.Duration(size>>30)*3*time.Minute)
}

// look asks the storage what it holds for o, and compares it with what o was declared or sealed as. Where the
// storage cannot vouch for a digest, the bytes are read once.
func (a *Area) look(ctx context.Context, o Object) (Stat, error) {
	expected := o.Declared
	if o.State == Sealed {
		expected = Bytes{Size: o.Size, SHA256: o.SHA256}
	}
	seen, err := a.bucket.Head(ctx, o.Key, o.VersionID)
	if errors.Is(err, ErrNoBytes) && o.State == Sealed {
		return Stat{}, fencing.ErrObjectGone
	}
	if errors.Is(err, ErrNoBytes) {
		return Stat{}, ErrIncomplete
	}
	if err != nil {
		return Stat{}, err
	}
	if expected.Size != nil && *expected.Size != seen.Size {
		return Stat{}, &MismatchError{Expected: expected, Actual: Bytes{Size: &seen.Size, SHA256: seen.SHA256}}
	}
	if o.State == Sealed && seen.ETag == o.ETag {
		seen.SHA256 = o.SHA256 // the same bytes as then
	}
	if seen.SHA256 == "" {
		ctx, cancel := context.WithTimeout(ctx, readLimit(seen.Size))
		defer cancel()
		seen.SHA256, _, err = a.bucket.Digest(ctx, o.Key, seen.VersionID, seen.ETag)
	}
	if errors.Is(err, ErrNoBytes) || errors.Is(err, ErrBytesChanged) {
		return Stat{}, fmt.Errorf("%w: they changed while they were read", ErrIncomplete)
	}
	if err != nil {
		return Stat{}, err
	}
	if expected.SHA256 != "" && expected.SHA256 != seen.SHA256 {
		return Stat{}, &MismatchError{Expected: expected, Actual: Bytes{Size: &seen.Size, SHA256: seen.SHA256}}
	}
	return seen, nil
}

func (a *Area) writeSeal(ctx context.Context, o Object, seen Stat) (Object, error) {
	const query = `
		SELECT status, size, sha256, etag
		FROM seal(@report, @epoch, @counter, @object, @size, @sha256, @etag, nullif(@version_id, ''), @retention_ms)`
	type answer struct {
		Status string
		Size   *int64
		Sha256 []byte
		Etag   *string
	}
	digest, err := hex.DecodeString(seen.SHA256)
	if err != nil {
		return Object{}, fmt.Errorf("decode digest: %w", err)
	}
	args := nameArgs(o.Name)
	args["size"], args["sha256"], args["etag"], args["version_id"] = seen.Size, digest, seen.ETag, seen.VersionID
	args["retention_ms"] = a.cfg.Retention.Milliseconds()
	got, err := database.Change[answer](ctx, a.pool, query, args)
	if err != nil {
		return Object{}, err
	}
	sealed := Bytes{Size: got.Size, SHA256: hex.EncodeToString(got.Sha256)}
	switch got.Status {
	case "sealed":
		o.State, o.Size, o.SHA256, o.ETag = Sealed, sealed.Size, sealed.SHA256, *got.Etag
		return o, nil
	case "object_changed":
		return Object{}, &MismatchError{Expected: sealed, Actual: Bytes{Size: &seen.Size, SHA256: seen.SHA256}}
	default:
		return Object{}, statusError(got.Status)
	}
}
