package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/client"
)

// bigUploadCommand is the process that uploads for `big`: an ordinary program that uses the client library.
type bigUploadCommand struct {
	URL    string `env:"FENCELINE_URL" required:""`
	Key    string `env:"FENCELINE_WORKER_KEY" required:""`
	Size   int64  `required:""`
	Stream bool
}

// bigUploaded is what it prints, as a line of JSON.
type bigUploaded struct {
	SHA256                string
	Upload, Seal, Publish time.Duration
	PeakBytes             int64
}

// Run uploads and publishes under a lease that is kept meanwhile.
func (c *bigUploadCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	service := client.New(client.Config{URL: c.URL, Key: c.Key, UserAgent: "fenceline-big"})
	var did bigUploaded
	err := service.Hold(ctx, client.AcquireRequest{Report: bigReport, Holder: "big", TTL: 30 * time.Second}, func(ctx context.Context, k *client.Capability) error {
		return c.work(ctx, k, &did)
	})
	if err != nil {
		return err
	}
	if did.PeakBytes, err = peakMemory(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(did)
}

// work uploads without a declared digest, so that the client has to find it out, and publishes.
func (c *bigUploadCommand) work(ctx context.Context, k *client.Capability, did *bigUploaded) error {
	var body io.Reader = io.NewSectionReader(newGenerated(), 0, c.Size)
	if c.Stream {
		body = io.LimitReader(body, c.Size) // which hides all but Read
	}
	started, sent := time.Now(), time.Time{}
	sealed, err := k.Upload(ctx, client.UploadRequest{
		ObjectID: "big.bin", Body: body,
		Declaration: client.Declaration{ContentType: "application/octet-stream", Size: &c.Size},
		Progress: func(n, total int64) {
			if n == total {
				sent = time.Now()
			}
		},
	})
	if err != nil {
		return err
	}
	did.SHA256, did.Upload, did.Seal = sealed.SHA256, sent.Sub(started), time.Since(sent)
	started = time.Now()
	_, err = k.Publish(ctx, client.PublishRequest{ObjectID: "big.bin"})
	did.Publish = time.Since(started)
	return err
}

// generated is bytes without end that need no room, and of which no part is like another: pages of digests that are
// all the same but for the page's number at their heads.
type generated struct{ page []byte }

// generatedPage is how many bytes a page has, so many that to generate them is quicker than to send them.
const generatedPage = 1 << 16

func newGenerated() generated {
	var page []byte
	for n := uint64(0); len(page) < generatedPage; n++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, n))
		page = append(page, sum[:]...)
	}
	return generated{page}
}

// ReadAt implements [io.ReaderAt].
func (g generated) ReadAt(p []byte, at int64) (int, error) {
	for n := 0; n < len(p); {
		page, within := (at+int64(n))/generatedPage, int((at+int64(n))%generatedPage)
		var head [8]byte
		binary.BigEndian.PutUint64(head[:], uint64(page))
		if within < len(head) {
			n += copy(p[n:], head[within:])
			continue
		}
		n += copy(p[n:], g.page[within:])
	}
	return len(p), nil
}

// digest is the SHA-256 of the first size of them.
func (g generated) digest(size int64) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(g, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// peakMemory is the most memory that this process has had in use at once.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("the peak of memory: %w", err)
	}
	for line := range bytes.Lines(status) {
		var kib int64
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, errors.New("the peak of memory: the system does not tell VmHWM")
}
