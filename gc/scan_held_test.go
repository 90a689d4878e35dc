package gc_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/staging"
)

// stream is a bucket that lists as many keys as it is told, none of which is stored.
type stream struct {
	*staging.Bucket
	keys int
	each func(n int) // called before each key, with how many came before
}

func (s stream) Stored(context.Context, string) iter.Seq2[staging.Stored, error] {
	return func(yield func(staging.Stored, error) bool) {
		for n := range s.keys {
			s.each(n)
			if !yield(staging.Stored{Key: keyOf(nameOf("july", "1.1", fmt.Sprintf("%06d", n))), Size: 1}, nil) {
				return
			}
		}
	}
}

// pages counts the rows that a scan has read to compare them with a listing, and how many pages of them.
type pages struct{ rows, read atomic.Int64 }

type ofPages struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (p *pages) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, ofPages{}, strings.Contains(q.SQL, "SELECT key, state, version_id"))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *pages) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	if is, _ := ctx.Value(ofPages{}).(bool); is {
		p.rows.Add(q.CommandTag.RowsAffected())
		p.read.Add(1)
	}
}

func TestAScanHoldsOnePageOfRowsAndOneBatchOfWhatItHasSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const keys, batch, every = 4_000, 50, 100
	b.db.Exec(t, `INSERT INTO report (report_id, created_at) VALUES ('july', now())`)
	b.db.Exec(t, `
		INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, reserved_at, upload_until, eligible_at)
		SELECT 'july', 1, 1, lpad(n::text, 6, '0'), '', 'reserved', now(), now(), now() + interval '1 day'
		FROM generate_series(0, $1::integer, 2) n`, keys)
	p := &pages{}
	cfg := b.db.Pool.Config().Copy()
	cfg.ConnConfig.Tracer = p
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, "open a pool", err)
	t.Cleanup(pool.Close)

	var ahead, backlog int
	s := stream{Bucket: b.bucket, keys: keys, each: func(n int) {
		if n%every == 0 { // every other key has a row, and of the others one is recorded by and by
			ahead = max(ahead, int(p.rows.Load())-n/2)
			backlog = max(backlog, n/2-b.found(t))
		}
	}}
	run := scan(t, gc.New(pool, s, gc.Config{Unknown: unknown, BrakeMin: 1 << 40, Batch: batch}))
	if counts(t, run) != [4]int64{keys, keys / 2, 0, 0} {
		t.Errorf("keys, unknown, returned, foreign: %v", counts(t, run))
	}
	if ahead > batch || backlog > batch || p.read.Load() < keys/2/batch {
		t.Errorf("of %d keys, %d rows were read ahead, in %d pages, and %d that were seen not recorded yet; want at most %d each",
			keys, ahead, p.read.Load(), backlog, batch)
	}
}
