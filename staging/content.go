package staging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/fenceline/fenceline/internal/fencing"
)

// Open streams an object's bytes, or a part of them. They are the sealed ones or an error: by version id on a
// versioned bucket, elsewhere with the sealed ETag demanded; and a whole object is hashed as it passes, its
// end withheld where the digest is another. The caller closes the reader, and reads only as long as ctx lives.
// Errors, here and from the reader: fencing.ErrObjectGone, ErrDamaged,
// ErrStorageUnavailable, database.ErrUnavailable.
func (a *Area) Open(ctx context.Context, name fencing.ObjectName, part Range) (io.ReadCloser, error) {
	o, err := a.readable(ctx, name)
	if err != nil {
		return nil, err
	}
	body, stat, err := a.bucket.Open(ctx, o.Key, o.VersionID, o.ETag, part)
	if errors.Is(err, ErrNoBytes) || errors.Is(err, ErrBytesChanged) {
		return nil, fmt.Errorf("read object %q of %q: %w: %w", name.Object, name.Report, ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read object %q of %q: %w", name.Object, name.Report, err)
	}
	if stat.Size != *o.Size {
		return nil, errors.Join(fmt.Errorf("read object %q of %q: %w", name.Object, name.Report, ErrDamaged), body.Close())
	}
	if part != (Range{}) {
		return body, nil
	}
	want, err := hex.DecodeString(o.SHA256)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("decode digest: %w", err), body.Close())
	}
	return &verifyingReader{ReadCloser: body, hash: sha256.New(), left: *o.Size, want: want}, nil
}

// PresignDownload signs a URL from which a reader without credentials gets an object's bytes, and tells the
// ETag that they have: on a bucket without versions the URL cannot demand it. Errors: as Open.
func (a *Area) PresignDownload(ctx context.Context, name fencing.ObjectName) (Download, string, error) {
	o, err := a.readable(ctx, name)
	if err != nil {
		return Download{}, "", err
	}
	d, err := a.bucket.PresignGet(ctx, o.Key, o.VersionID, o.ContentType, o.Filename, a.cfg.DownloadURLLife)
	if err != nil {
		return Download{}, "", fmt.Errorf("sign the download of object %q of %q: %w", name.Object, name.Report, err)
	}
	return d, o.ETag, nil
}

// readable is an object whose bytes may be given out. It was published, so if it is not known any more it was
// collected, and its tombstone forgotten.
func (a *Area) readable(ctx context.Context, name fencing.ObjectName) (Object, error) {
	o, err := a.Object(ctx, name)
	if errors.Is(err, fencing.ErrObjectNotFound) || err == nil && o.State != Sealed {
		err = fmt.Errorf("read object %q of %q: %w", name.Object, name.Report, fencing.ErrObjectGone)
	}
	return o, err
}

// verifyingReader passes the last bytes on only if all of them together have the digest.
type verifyingReader struct {
	io.ReadCloser
	hash hash.Hash
	left int64
	want []byte
}

// Read implements io.Reader.
func (r *verifyingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.hash.Write(p[:n])
	r.left -= int64(n)
	whole := r.left == 0 && n > 0 || errors.Is(err, io.EOF)
	if r.left < 0 || whole && !bytes.Equal(r.hash.Sum(nil), r.want) {
		return 0, ErrDamaged
	}
	return n, err
}
