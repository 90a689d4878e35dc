package lease_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// statements counts what a pool sends.
type statements struct{ sent atomic.Int64 }

// TraceQueryStart counts one.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "FROM") {
		s.sent.Add(1)
	}
	return ctx
}

// TraceQueryEnd does nothing.
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestTwoHundredThatWaitAreServedInTurnWithFewStatementsEach(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	counted := &statements{}
	config.ConnConfig.Tracer = counted
	config.MaxConns = 5
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o := office{Authority: lease.New(pool), db: db}
	o.listening(t)
	o.grant(t, "july", "holder")

	const clients = 200
	var mu sync.Mutex
	var served []int
	var all sync.WaitGroup
	for i := range clients {
		wait := o.waiting(t, t.Context(), fencing.LeaseID(fmt.Sprint("w", i)), i+1)
		all.Go(func() {
			a := wait()
			if a.err != nil {
				t.Errorf("number %d: %v", i, a.err)
				return
			}
			mu.Lock()
			served = append(served, i)
			mu.Unlock()
			if _, err := o.Release(t.Context(), "july", a.got.Lease); err != nil {
				t.Errorf("release %d: %v", i, err)
			}
		})
	}
	before := counted.sent.Load()
	o.released(t, "july", "holder")
	all.Wait()
	if len(served) != clients || !slices.IsSorted(served) {
		t.Errorf("%d were served, in order: %v", len(served), slices.IsSorted(served))
	}
	// One that finds the lease taken still, one that takes it, one that gives it back; and now and then a look.
	sent := float64(counted.sent.Load()-before) / clients
	t.Logf("%.2f statements a hand-over", sent)
	if sent > 4 {
		t.Errorf("%.2f statements a hand-over, want 4 at most", sent)
	}
	if n := o.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}
