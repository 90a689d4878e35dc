package collect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/staging"
)

const (
	// inFlight is how many uploads are on their way at once. More are not quicker where server and client share two cores.
	inFlight = 16
	// chunk is how many objects are written at once.
	chunk = 4 * perGrant
)

// fill makes everything, in the order in which the service would: reports and grants, rows, bytes, seals.
func (f *Field) fill(ctx context.Context) error {
	started := time.Now()
	if err := f.grant(ctx); err != nil {
		return err
	}
	steps := []struct {
		what string
		n    int
		make func(context.Context, []int) error
	}{
		{"objects that are due", f.Objects, f.stageDue},
		{"objects that are kept", f.layout.reports, f.stageKept},
		{"foreign keys", f.Foreign, f.keys(func(n int) string { return foreign(n, f.Storage.Prefix) })},
		{"unknown keys", f.Unknown, f.keys(func(n int) string { return f.layout.unknown(n, f.Storage.Prefix, f.epoch) })},
	}
	for _, s := range steps {
		if err := f.inChunks(ctx, s.what, s.n, s.make); err != nil {
			return fmt.Errorf("make %s: %w", s.what, err)
		}
	}
	f.result.Prepared = since(started)
	// As autovacuum would have by the time when so many objects are due.
	if _, err := f.pool.Exec(ctx, "VACUUM (ANALYZE) object, report, lease"); err != nil {
		return err
	}
	listed, err := f.list(ctx, func(string) {})
	f.result.ListedBefore = listed
	return err
}

// grant writes the reports, and grants that were released long ago, as acquire and release would have.
func (f *Field) grant(ctx context.Context) error {
	const clock = `SELECT (SELECT max(epoch) FROM epoch) AS epoch, fenceline_now() AS now`
	const reports = `
		INSERT INTO report (report_id, created_at, granted_epoch, granted_counter)
		SELECT report_id, @began, @epoch, counter
		FROM unnest(@reports::text[], @counters::bigint[]) AS g (report_id, counter)`
	const leases = `
		INSERT INTO lease (report_id, lease_id, holder, ttl_ms, fence_epoch, fence_counter, granted_at, ended_at, end_reason, created_at)
		SELECT report_id, 'grant-' || n, 'a worker', 60000, @epoch, n, @began, @began::timestamptz + interval '1 minute', 'released', @began
		FROM unnest(@reports::text[], @counters::bigint[]) AS g (report_id, counter), generate_series(1, counter) n`
	if err := f.pool.QueryRow(ctx, clock).Scan(&f.epoch, &f.now); err != nil {
		return err
	}
	f.began = f.now.Add(-longAgo)
	names, counters := make([]string, f.layout.reports), make([]int64, f.layout.reports)
	for n := range names {
		names[n] = f.layout.report(n)
		counters[n] = int64((f.layout.grants-1-n)/f.layout.reports) + 1
	}
	args := pgx.NamedArgs{"epoch": f.epoch, "began": f.began, "reports": names, "counters": counters}
	if _, err := f.pool.Exec(ctx, reports, args); err != nil {
		return err
	}
	_, err := f.pool.Exec(ctx, leases, args)
	return err
}

// inChunks has n things made, chunk by chunk, several at once, and tells how far it is.
func (f *Field) inChunks(ctx context.Context, what string, n int, make func(context.Context, []int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	started := time.Now()
	for range inFlight {
		workers.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(chunk)) - chunk
				if from >= n {
					return
				}
				some := upTo(from, min(from+chunk, n))
				if err := make(ctx, some); err != nil {
					stop(err)
					return
				}
				made := done.Add(int64(len(some)))
				if step := int64(max(n/20, chunk)); made/step > (made-int64(len(some)))/step {
					f.tell("made %d of %d %s, %.0f a second", made, n, what, float64(made)/time.Since(started).Seconds())
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

func upTo(from, below int) []int {
	numbers := make([]int, 0, below-from)
	for n := from; n < below; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// keys makes keys that no row knows.
func (f *Field) keys(name func(int) string) func(context.Context, []int) error {
	return func(ctx context.Context, numbers []int) error {
		for _, n := range numbers {
			content, _ := body(name(n))
			if _, err := f.put(ctx, name(n), content); err != nil {
				return err
			}
		}
		return nil
	}
}

// put uploads as a worker does, with a presigned URL, over a connection that stays open.
func (f *Field) put(ctx context.Context, key string, content []byte) (etag string, err error) {
	size := int64(len(content))
	signed, err := f.bucket.PresignPut(ctx, key, staging.PutDeclaration{Size: &size}, urlLife)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, signed.Method, signed.URL, bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	for name, value := range signed.Headers {
		request.Header.Set(name, value)
	}
	response, err := f.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 1<<12)) // to its end: else the connection is not used again
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("upload %q: %s: %s", key, response.Status, said)
	}
	return response.Header.Get("ETag"), err
}
