package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/fencing"
)

// tormentReader resolves and reads all the time.
type tormentReader struct {
	rng       *rand.Rand
	service   *client.Client
	reports   int
	retention time.Duration
	log       *tormentLog
}

func (t *torment) newReader(n int) *tormentReader {
	return &tormentReader{
		rng: rand.New(rand.NewPCG(t.Seed, uint64(n)+1_000_000)), service: t.newClient("reader"),
		reports: t.Reports, retention: t.Retention, log: t.log,
	}
}

func (r *tormentReader) read(ctx context.Context, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-time.After(upTo(r.rng, 15*time.Millisecond)):
		}
		report := reportName(r.rng.IntN(r.reports))
		sentAt := time.Now()
		shown, ok := r.resolve(ctx, report)
		if ok && shown.SHA256 != "" {
			r.fetch(ctx, shown, sentAt)
		}
	}
}

// resolve asks for the newest version, and writes the answer down.
func (r *tormentReader) resolve(ctx context.Context, report string) (shown check.Read, ok bool) {
	shown.Report, shown.SentAt = fencing.ReportID(report), time.Now()
	got, err := r.service.Report(ctx, report)
	shown.AnsweredAt = time.Now()
	var failure *client.Error
	switch {
	case err == nil:
		shown.Version = got.Version
		shown.SHA256 = got.Object.SHA256
	case errors.Is(err, client.ErrWithdrawn) && errors.As(err, &failure):
		shown.Version = failure.Version
	default:
		return shown, false // killed, or nothing published yet
	}
	r.log.read(shown)
	return shown, true
}

// fetch reads the version that was shown: its bytes must be there for as long as it is visible, and for the
// retention after that.
func (r *tormentReader) fetch(ctx context.Context, shown check.Read, resolvedAt time.Time) {
	sum, err := r.digest(ctx, shown)
	switch {
	case err == nil && sum == shown.SHA256:
		r.log.count("contents")
	case err == nil:
		r.log.fault("version %d of %s has digest %s, and was read with %s", shown.Version, shown.Report, shown.SHA256, sum)
	case errors.Is(err, client.ErrUnavailable) || ctx.Err() != nil: // killed
	case errors.Is(err, client.ErrGone) && time.Since(resolvedAt) > r.retention:
	default:
		r.log.fault("version %d of %s was shown, and cannot be read: %v", shown.Version, shown.Report, err)
	}
}

func (r *tormentReader) digest(ctx context.Context, shown check.Read) (string, error) {
	content, err := r.service.OpenVersion(ctx, string(shown.Report), shown.Version)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, content)
	if err := errors.Join(err, content.Close()); err != nil {
		return "", fmt.Errorf("read version %d of %s: %w", shown.Version, shown.Report, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
