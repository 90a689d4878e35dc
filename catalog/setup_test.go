package catalog_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
)

// ttl is the time to live of the leases in these tests; their clock is moved by multiples of it.
const ttl = time.Minute

// desk is a catalog on a database of its own, and the reports' other parts as far as a publish needs them.
type desk struct {
	*catalog.Catalog
	db *testdb.DB
}

func newDesk(t *testing.T) desk {
	t.Helper()
	db := testdb.New(t)
	return deskOn(db, db.Pool)
}

// deskOn is a desk whose catalog reaches the database through pool.
func deskOn(db *testdb.DB, pool *pgxpool.Pool) desk {
	return desk{Catalog: catalog.New(pool, sealIn(pool), catalog.Config{}), db: db}
}

// sealIn writes down what an object's bytes are without a storage: here nobody reads them.
func sealIn(pool *pgxpool.Pool) catalog.Seal {
	return func(ctx context.Context, name fencing.ObjectName) error {
		digest := sha256.Sum256([]byte(name.Object))
		var status string
		err := pool.QueryRow(ctx, `SELECT status FROM seal($1, $2, $3, $4, $5, $6, 'etag', NULL, 3600000)`,
			name.Report, name.Fence.Epoch, name.Fence.Counter, name.Object, len(name.Object), digest[:]).Scan(&status)
		if err == nil && status != "sealed" {
			err = errors.New("seal: " + status)
		}
		return err
	}
}

// grant acquires a lease of a minute, which must be granted, and returns its fence.
func (d desk) grant(t *testing.T, report, lease string) fencing.Fence {
	t.Helper()
	const query = `SELECT status || ' ' || coalesce(fence_epoch::text || '.' || fence_counter, '') FROM acquire($1, $2, 'holder', $3)`
	answer := testdb.Value[string](t, d.db, query, report, lease, ttl.Milliseconds())
	const acquired = "acquired "
	if len(answer) < len(acquired) || answer[:len(acquired)] != acquired {
		t.Fatalf("acquire %q of %q: %s", lease, report, answer)
	}
	f, err := fencing.ParseFence(answer[len(acquired):])
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// stage reserves objects under a fence.
func (d desk) stage(t *testing.T, report string, f fencing.Fence, objects ...string) {
	t.Helper()
	for _, object := range objects {
		const query = `SELECT status FROM reserve($1, $2, $3, $4, '', NULL, NULL, NULL, NULL, 60000, 3600000, 'test')`
		if status := testdb.Value[string](t, d.db, query, report, f.Epoch, f.Counter, object); status != "reserved" {
			t.Fatalf("reserve %q: %s", object, status)
		}
	}
}

// ready is a report with a grant and objects a and b under it.
func (d desk) ready(t *testing.T, report, lease string) fencing.Fence {
	t.Helper()
	f := d.grant(t, report, lease)
	d.stage(t, report, f, "a", "b")
	return f
}

// object asks for an object to be published; edits change the request.
func object(f fencing.Fence, object fencing.ObjectID, key string, edits ...func(*catalog.Request)) catalog.Request {
	r := catalog.Request{Report: "july", Fence: f, Object: object, IdempotencyKey: key, By: "worker"}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

// expecting says which version a request follows.
func expecting(version int64) func(*catalog.Request) {
	return func(r *catalog.Request) { r.ExpectedVersion = &version }
}

// applied publishes what must be applied as the version given.
func (d desk) applied(t *testing.T, r catalog.Request, version int64) catalog.Receipt {
	t.Helper()
	receipt, err := d.Publish(t.Context(), r)
	if err != nil || receipt.Duplicate || receipt.Version != version || !receipt.Visible {
		t.Fatalf("publish %q: %+v, %v, want version %d to be applied", r.IdempotencyKey, receipt, err, version)
	}
	return receipt
}

// duplicate publishes what must have been applied before as the version given.
func (d desk) duplicate(t *testing.T, r catalog.Request, version int64, visible bool) catalog.Receipt {
	t.Helper()
	receipt, err := d.Publish(t.Context(), r)
	if err != nil || !receipt.Duplicate || receipt.Version != version || receipt.Visible != visible {
		t.Fatalf("publish %q: %+v, %v, want a duplicate of version %d, visible: %v", r.IdempotencyKey, receipt, err, version, visible)
	}
	return receipt
}

// refused publishes what must be refused with want.
func (d desk) refused(t *testing.T, r catalog.Request, want error) {
	t.Helper()
	receipt, err := d.Publish(t.Context(), r)
	if !errors.Is(err, want) {
		t.Errorf("publish %q: %+v, %v, want %v", r.IdempotencyKey, receipt, err, want)
	}
	if errors.Is(err, database.ErrUnavailable) {
		t.Errorf("publish %q: %v, but a refusal is certain", r.IdempotencyKey, err)
	}
}

// stale publishes what must be refused as stale.
func (d desk) stale(t *testing.T, r catalog.Request, highest fencing.Fence, reason string) {
	t.Helper()
	_, err := d.Publish(t.Context(), r)
	wantStale(t, err, fencing.StaleError{Presented: r.Fence, Highest: highest, Reason: reason})
}

func wantStale(t *testing.T, err error, want fencing.StaleError) {
	t.Helper()
	got, ok := errors.AsType[*fencing.StaleError](err)
	if !ok || *got != want || errors.Is(err, database.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// shows fails the test unless readers see the object in the version given, and there are no more versions.
func (d desk) shows(t *testing.T, object fencing.ObjectID, f fencing.Fence, version int64) {
	t.Helper()
	p, err := d.Visible(t.Context(), "july")
	if err != nil {
		t.Errorf("resolve: %v", err)
		return
	}
	want := fencing.ObjectName{Report: "july", Fence: f, Object: object}
	if p.Version != version || p.Object.Name != want {
		t.Errorf("readers see version %d, %v, want version %d, %v", p.Version, p.Object.Name, version, want)
	}
	if n := testdb.Value[int64](t, d.db, "SELECT count(*) FROM publication WHERE report_id = 'july'"); n != version {
		t.Errorf("there are %d versions, want %d", n, version)
	}
}

// publishing starts a publish that comes as far as the lock that the test holds.
func (d desk) publishing(t *testing.T, r catalog.Request, waiting int) func() (catalog.Receipt, error) {
	t.Helper()
	type answer struct {
		receipt catalog.Receipt
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		receipt, err := d.Publish(t.Context(), r)
		done <- answer{receipt, err}
	}()
	d.db.AwaitWaiting(t, waiting)
	return func() (catalog.Receipt, error) { a := <-done; return a.receipt, a.err }
}

// setting changes a report's setting, as the owner of the database.
func (d desk) setting(t *testing.T, column, value string) {
	t.Helper()
	d.db.Exec(t, "UPDATE report SET "+column+" = nullif($1, '') WHERE report_id = 'july'", value)
}

// revoke bars a fence.
func (d desk) revoke(t *testing.T, f fencing.Fence) {
	t.Helper()
	const query = "SELECT status FROM revoke_lease('july', $1, $2, 'test', 'test')"
	if status := testdb.Value[string](t, d.db, query, f.Epoch, f.Counter); status != "revoked" {
		t.Fatalf("revoke %s: %s", f, status)
	}
}
