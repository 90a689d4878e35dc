package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/fenceline/fenceline/client"
)

// source is a file to be published, read once to know its size and digest.
type source struct {
	file     *os.File
	objectID string
	client.Declaration
}

// openSource opens a regular file and reads it through, or until ctx ends. The caller closes its file.
func openSource(ctx context.Context, path, contentType string) (_ *source, err error) {
	// Looked at before it is opened: to open a pipe would wait for its other end.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: its size must be known before it is sent", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	sum := sha256.New()
	sum.Write(head[:n])
	rest, err := io.Copy(sum, until(ctx, file))
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if contentType == "" {
		contentType = guessType(path, head[:n])
	}
	size := int64(n) + rest
	return &source{
		file:     file,
		objectID: objectID(filepath.Base(path)),
		Declaration: client.Declaration{
			ContentType: contentType, Filename: filepath.Base(path),
			Size: &size, SHA256: hex.EncodeToString(sum.Sum(nil)),
		},
	}, nil
}

// readFunc is a reader that is nothing but its Read.
type readFunc func(p []byte) (int, error)

func (r readFunc) Read(p []byte) (int, error) { return r(p) }

// until reads until ctx ends, which it looks at between two reads.
func until(ctx context.Context, from io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return from.Read(p)
	})
}

// guessType tells a file's content type by its name, else by its first bytes. What the
// name of a table says does not depend on what this machine has installed.
func guessType(path string, head []byte) string {
	extension := strings.ToLower(filepath.Ext(path))
	switch extension {
	case ".csv":
		return "text/csv"
	case ".parquet":
		return "application/vnd.apache.parquet"
	}
	if known := mime.TypeByExtension(extension); known != "" {
		return known
	}
	return http.DetectContentType(head)
}

// maxObjectID is the greatest length of an object's id.
const maxObjectID = 128

// objectID makes an id of a file's name: what an id may not hold becomes a dash. A
// grant stages one file, so the id need not be unique.
func objectID(name string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, name)
	id = strings.TrimLeft(id, "._-")
	if id == "" {
		return "object"
	}
	return id[:min(len(id), maxObjectID)]
}
