package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxMemory bounds, in bytes, how much of a body is kept in memory so that it can be sent
// again.
const maxMemory = 8 << 20

// prepare makes a payload of the body of a request. The caller calls done once the payload is not needed any more.
func prepare(ctx context.Context, r *UploadRequest) (p payload, done func(), err error) {
	done = func() {}
	r.SHA256 = strings.ToLower(r.SHA256)
	body := r.Body
	if body == nil {
		body = bytes.NewReader(nil)
	}
	_, _, again := rereadable(body)
	switch {
	case again:
	case r.Size != nil && *r.Size > maxMemory:
		return payload{
			open: func() io.Reader { return body }, size: *r.Size, sha256: r.SHA256, progress: r.Progress,
		}, done, nil
	default:
		if body, done, err = spool(ctx, body); err != nil {
			return payload{}, done, err
		}
	}
	if p, err = measure(r, body); err != nil {
		done()
	}
	return p, done, err
}

// measure makes a payload of a body that can be read again, and declares its size.
func measure(r *UploadRequest, body io.Reader) (payload, error) {
	source, start, _ := rereadable(body)
	end, err := source.Seek(0, io.SeekEnd)
	if err != nil {
		return payload{}, err
	}
	if _, err := source.Seek(start, io.SeekStart); err != nil {
		return payload{}, err
	}
	size := end - start
	if r.Size != nil && *r.Size != size {
		return payload{}, fmt.Errorf("%w: the body has %d bytes, declared were %d", ErrObjectMismatch, size, *r.Size)
	}
	r.Size = &size
	return payload{
		open:  func() io.Reader { return io.NewSectionReader(source, start, size) },
		again: true, size: size, sha256: r.SHA256, progress: r.Progress,
		at: io.NewSectionReader(source, start, size),
	}, nil
}

// digested is p with the digest of its bytes, if they can be read again for that.
func (p payload) digested(ctx context.Context) (payload, error) {
	if p.sha256 != "" || !p.again {
		return p, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, untilDone(ctx, p.open())); err != nil {
		return p, err
	}
	p.sha256 = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// spool reads a body to its end, into memory as far as there is room, else into a
// temporary file.
func spool(ctx context.Context, body io.Reader) (_ io.Reader, done func(), err error) {
	body = untilDone(ctx, body)
	var head bytes.Buffer
	n, err := io.CopyN(&head, body, maxMemory+1)
	if errors.Is(err, io.EOF) {
		return bytes.NewReader(head.Bytes()), func() {}, nil
	}
	if err != nil {
		return nil, func() {}, err
	}
	file, err := os.CreateTemp("", "fenceline-upload-*")
	if err != nil {
		return nil, func() {}, fmt.Errorf("after %d bytes: %w", n, err)
	}
	done = func() {
		file.Close()
		os.Remove(file.Name())
	}
	if _, err = io.Copy(file, io.MultiReader(&head, body)); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
		return nil, func() {}, err
	}
	return file, done, nil
}

// untilDone reads from a body until ctx ends.
func untilDone(ctx context.Context, body io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return body.Read(p)
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
