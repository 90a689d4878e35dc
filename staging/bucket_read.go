package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Stat is what the storage says about the bytes under a key.
type Stat struct {
	Size         int64  // bytes of the whole object, also where a part was asked for
	ETag         string // as the storage writes it, quotes included
	VersionID    string // "" on a bucket without versions
	SHA256       string // hex; "" where the storage cannot vouch for the whole
	LastModified time.Time
}

// Range is the part of an object to read: Length bytes from Offset on. Length 0
// means up to the end, so the zero value is the whole object.
type Range struct {
	Offset, Length int64
}

// header returns the value of the Range header, or nil for the whole object.
func (r Range) header() *string {
	switch {
	case r.Length > 0:
		return aws.String(fmt.Sprintf("bytes=%d-%d", r.Offset, r.Offset+r.Length-1))
	case r.Offset > 0:
		return aws.String(fmt.Sprintf("bytes=%d-", r.Offset))
	}
	return nil
}

// Head asks what the storage holds under key; versionID may be "" for the
// newest. ErrNoBytes if nothing is there.
func (b *Bucket) Head(ctx context.Context, key, versionID string) (Stat, error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket:       aws.String(b.name),
		Key:          aws.String(key),
		VersionId:    optional(versionID),
		ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return Stat{}, fmt.Errorf("head %q: %w", key, storageError(err))
	}
	stat := Stat{
		Size:         aws.ToInt64(out.ContentLength),
		ETag:         aws.ToString(out.ETag),
		VersionID:    aws.ToString(out.VersionId),
		LastModified: aws.ToTime(out.LastModified),
	}
	// The checksum of a multipart upload is one of checksums: it says nothing
	// about the whole.
	if out.ChecksumType == types.ChecksumTypeFullObject {
		stat.SHA256 = sumOf(aws.ToString(out.ChecksumSHA256))
	}
	return stat, nil
}

// Open streams the bytes of key, or the part of them that r names, if they are
// still those that etag was recorded for; versionID names the version on a
// versioned bucket, else it is "". The caller closes the reader, and reads only
// as long as ctx lives. ErrNoBytes if nothing is there, ErrBytesChanged if the
// bytes are others or no ETag is given. A stream that breaks off ends in ErrStorageUnavailable,
// never in io.EOF.
func (b *Bucket) Open(ctx context.Context, key, versionID, etag string, r Range) (io.ReadCloser, Stat, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket:    aws.String(b.name),
		Key:       aws.String(key),
		VersionId: optional(versionID),
		IfMatch:   aws.String(etag),
		Range:     r.header(),
	})
	if err != nil {
		return nil, Stat{}, fmt.Errorf("open %q: %w", key, storageError(err))
	}
	stat := Stat{
		Size:         wholeSize(out),
		ETag:         aws.ToString(out.ETag),
		VersionID:    aws.ToString(out.VersionId),
		LastModified: aws.ToTime(out.LastModified),
	}
	if stat.ETag != etag { // none was sent, or the server does not know If-Match on GET
		out.Body.Close()
		return nil, Stat{}, fmt.Errorf("open %q: %w: ETag %s, recorded %s", key, ErrBytesChanged, stat.ETag, etag)
	}
	return &objectBody{ReadCloser: out.Body}, stat, nil
}

// wholeSize returns the size of the object that an answer, perhaps with a part
// of it, belongs to.
func wholeSize(out *s3.GetObjectOutput) int64 {
	if _, total, ok := strings.Cut(aws.ToString(out.ContentRange), "/"); ok {
		if size, err := strconv.ParseInt(total, 10, 64); err == nil {
			return size
		}
	}
	return aws.ToInt64(out.ContentLength)
}

// objectBody translates what breaks off a stream.
type objectBody struct{ io.ReadCloser }

func (b *objectBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = storageError(err)
	}
	return n, err
}
