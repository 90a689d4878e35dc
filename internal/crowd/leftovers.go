package crowd

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
)

// Leftovers are what an idle service has of each.
type Leftovers struct {
	Goroutines  int
	Connections int // to the database
	Waiting     int // requests in the lines
	Live        int // leases that nobody has ended
}

// String lists them.
func (l Leftovers) String() string {
	return fmt.Sprintf("%d goroutines, %d connections to the database, %d requests that wait, %d live leases",
		l.Goroutines, l.Connections, l.Waiting, l.Live)
}

// labelName is the label of the goroutines of one run.
const labelName = "crowd"

// eye looks at the process and at the database past the service.
type eye struct {
	pool  *pgxpool.Pool
	label string
}

func openEye(ctx context.Context, url, label string) (*eye, error) {
	pool, err := database.Open(ctx, database.Config{URL: url, Pool: 1, Name: "fenceline-crowd"})
	if err != nil {
		return nil, err
	}
	return &eye{pool, label}, nil
}

func (e *eye) close() { e.pool.Close() }

// leftovers closes the clients' idle connections, and counts what is there then.
func (e *eye) leftovers(ctx context.Context, replicas []*replica) (Leftovers, error) {
	const query = `
		SELECT (SELECT count(*)::int FROM pg_stat_activity
		        WHERE datname = current_database() AND application_name = 'fenceline') AS connections,
		       (SELECT count(*)::int FROM report WHERE lease_id IS NOT NULL) AS live`
	type row struct{ Connections, Live int }
	for _, r := range replicas {
		r.transport.CloseIdleConnections()
	}
	got, _, err := database.Row[row](ctx, e.pool, query, pgx.NamedArgs{})
	if err != nil {
		return Leftovers{}, fmt.Errorf("count what is left: %w", err)
	}
	goroutines, err := goroutinesOf(e.label)
	return Leftovers{
		Goroutines: goroutines, Connections: got.Connections, Waiting: waitingAt(replicas), Live: got.Live,
	}, err
}

// settled is leftovers once they are no more than before, or after a while: what has done its work may still be on
// its way out.
func (e *eye) settled(ctx context.Context, replicas []*replica, before Leftovers) (Leftovers, error) {
	deadline := time.Now().Add(patience / 3)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := e.leftovers(ctx, replicas)
		if err != nil || left.Goroutines <= before.Goroutines || time.Now().After(deadline) {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-tick.C:
		}
	}
}

// granted is how often each lease of the crowd was granted.
func (e *eye) granted(ctx context.Context) (map[string]int64, error) {
	const query = `
		SELECT lease_id, fence_counter FROM lease
		WHERE report_id = @report AND fence_counter IS NOT NULL AND ended_at IS NOT NULL`
	type row struct {
		LeaseID      string
		FenceCounter int64
	}
	rows, err := database.Rows[row](ctx, e.pool, query, pgx.NamedArgs{"report": report})
	if err != nil {
		return nil, fmt.Errorf("read the leases: %w", err)
	}
	fences := map[string]int64{}
	for _, r := range rows {
		fences[r.LeaseID] = r.FenceCounter
	}
	return fences, nil
}

// goroutinesOf counts the goroutines that carry the label.
func goroutinesOf(label string) (total int, err error) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return 0, fmt.Errorf("list the goroutines: %w", err)
	}
	labelled := regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: .*"` + regexp.QuoteMeta(labelName) + `":"` + regexp.QuoteMeta(label) + `"`)
	for _, match := range labelled.FindAllStringSubmatch(profile.String(), -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			return 0, fmt.Errorf("count the goroutines: %w", err)
		}
		total += n
	}
	return total, nil
}
