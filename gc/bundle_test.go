package gc_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// The periods of a bundle.
const (
	urlLife    = time.Hour
	retention  = 24 * time.Hour  // of what was never published
	superseded = 100 * time.Hour // of what was
	grace      = 10 * time.Hour
	leaseTTL   = time.Minute

	// instantly is no time at all where a period is counted in whole milliseconds, and yet not the zero that
	// means the default.
	instantly = time.Nanosecond
)

// TestMain runs the tests in a time zone that no machine of ours is in: nothing may depend on it.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("far", 14*60*60)
	os.Exit(m.Run())
}

// bundle is everything that the collector works with or against, on a database and a bucket of its own.
type bundle struct {
	db      *testdb.DB
	storage *testbucket.Bucket
	bucket  *staging.Bucket
	leases  *lease.Authority
	objects *staging.Area
	catalog *catalog.Catalog
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return setupOn(t, testbucket.New(t), staging.Config{UploadURLLife: urlLife, Retention: retention, PurgeGrace: grace}, superseded)
}

func setupOn(t testing.TB, storage *testbucket.Bucket, cfg staging.Config, superseded time.Duration) *bundle {
	t.Helper()
	b := &bundle{db: testdb.New(t), storage: storage, bucket: storage.Open(t)}
	b.leases = lease.New(b.db.Pool)
	b.objects = staging.New(b.db.Pool, b.bucket, cfg)
	b.catalog = catalog.New(b.db.Pool, func(ctx context.Context, name fencing.ObjectName) error {
		_, err := b.objects.Seal(ctx, name)
		return err
	}, catalog.Config{Retention: superseded})
	_, err := b.catalog.SetDefaults(t.Context())
	must(t, "set the defaults", err)
	return b
}

// deletes is the real bucket, with a place on each side of a delete where a test stops it, or makes it fail.
type deletes struct {
	*staging.Bucket
	before func() error                  // an error keeps it from being sent
	answer func(staging.ObjectRef) error // the storage's error for one key, which stays
	sent   func([]staging.ObjectRef)     // told of what passed every check and is sent now
	after  func() error                  // an error stands for an answer that was lost
	abort  func() error                  // an error keeps uploads from being aborted

	// listed is called before each key of the listing, and at its end, with how many came before; an error breaks the listing off.
	listed func(n int, end bool) error
}

func (d *deletes) Stored(ctx context.Context, after string) iter.Seq2[staging.Stored, error] {
	if d.listed == nil {
		return d.Bucket.Stored(ctx, after)
	}
	return func(yield func(staging.Stored, error) bool) {
		n := 0
		for stored, err := range d.Bucket.Stored(ctx, after) {
			if err == nil {
				err = d.listed(n, false)
			}
			if n++; !yield(stored, err) || err != nil {
				return
			}
		}
		if err := d.listed(n, true); err != nil {
			yield(staging.Stored{}, err)
		}
	}
}

func (d *deletes) Delete(ctx context.Context, refs []staging.ObjectRef, beforeSend func(context.Context) error) ([]staging.DeleteResult, error) {
	if d.before != nil {
		if err := d.before(); err != nil {
			return nil, err
		}
	}
	passed, stay := refs, map[int]error{}
	if d.answer != nil {
		passed = nil
		for i, ref := range refs {
			if err := d.answer(ref); err != nil {
				stay[i] = err
				continue
			}
			passed = append(passed, ref)
		}
	}
	got, err := d.Bucket.Delete(ctx, passed, func(ctx context.Context) error {
		err := beforeSend(ctx)
		if err == nil && d.sent != nil {
			d.sent(passed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	results := make([]staging.DeleteResult, len(refs))
	for i, ref := range refs {
		if refused, ok := stay[i]; ok {
			results[i] = staging.DeleteResult{ObjectRef: ref, Err: refused}
			continue
		}
		results[i], got = got[0], got[1:]
	}
	if d.after != nil {
		if err := d.after(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// stop is a place where a goroutine stops until the test lets it go.
type stop struct {
	reached, gone chan struct{}
	letGo         func() // for good; the test's end does it as well
}

func newStop(t testing.TB) *stop {
	s := &stop{reached: make(chan struct{}, 100), gone: make(chan struct{})}
	s.letGo = sync.OnceFunc(func() { close(s.gone) })
	t.Cleanup(s.letGo)
	return s
}

func (s *stop) wait() error {
	s.reached <- struct{}{}
	<-s.gone
	return nil
}

// arrived returns when a goroutine has come to the stop.
func (s *stop) arrived(t testing.TB) {
	t.Helper()
	await(t, "the stop", s.reached)
}

func await[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func async(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return ended
}

// collector makes a collector that condemns without a brake, with batches of up to 500.
func (b *bundle) collector(changes ...func(*gc.Config)) *gc.Collector {
	return b.collectorOn(&deletes{Bucket: b.bucket}, changes...)
}

func (b *bundle) collectorOn(d *deletes, changes ...func(*gc.Config)) *gc.Collector {
	cfg := gc.Config{PurgeGrace: grace, BrakeMin: 1 << 40, Log: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(&cfg)
	}
	return gc.New(b.db.Pool, d, cfg)
}

// instant has a pass delete what it has condemned.
func instant(cfg *gc.Config) { cfg.PurgeGrace = instantly }

// atOnce leaves a pass nothing to wait for: it deletes what it has condemned, and forgets what it has deleted.
func atOnce(cfg *gc.Config) { cfg.PurgeGrace, cfg.Tombstones = instantly, instantly }

// pass runs one pass and returns how it ended.
func pass(ctx context.Context, c *gc.Collector) error {
	p, err := c.Begin(ctx, gc.Options{By: "test"})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// collect runs one pass, which must succeed, and returns its record.
func collect(t testing.TB, c *gc.Collector) gc.Record {
	t.Helper()
	p, err := c.Begin(t.Context(), gc.Options{By: "test"})
	must(t, "begin a pass", err)
	must(t, "run a pass", p.Run(t.Context()))
	return record(t, c, p.ID)
}

func record(t testing.TB, c *gc.Collector, id int64) gc.Record {
	t.Helper()
	run, err := c.Record(t.Context(), id)
	must(t, "read the record of a pass", err)
	return run
}

// grant acquires a lease of the report, which must be free.
func (b *bundle) grant(t testing.TB, report fencing.ReportID) lease.Grant {
	t.Helper()
	g, err := b.leases.Acquire(t.Context(), lease.Request{
		Report: report, Lease: fencing.LeaseID(uuid.NewString()), Holder: "test", TTL: leaseTTL,
	})
	must(t, "acquire", err)
	return g
}

// free ends a lease.
func (b *bundle) free(t testing.TB, g lease.Grant) {
	t.Helper()
	_, err := b.leases.Release(t.Context(), g.Report, g.Lease)
	must(t, "release", err)
}

// reserve reserves an object for the body.
func (b *bundle) reserve(ctx context.Context, g lease.Grant, id fencing.ObjectID, body string) (fencing.ObjectName, staging.Reservation, error) {
	name := fencing.ObjectName{Report: g.Report, Fence: g.Fence, Object: id}
	size := int64(len(body))
	r, err := b.objects.Reserve(ctx, name, staging.Declaration{Size: &size, SHA256: sum(body)})
	return name, r, err
}

// upload sends the body as a worker does.
func upload(ctx context.Context, u staging.Upload, body string) error {
	request, err := http.NewRequestWithContext(ctx, u.Method, u.URL, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range u.Headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("upload: %s", response.Status)
	}
	return nil
}

// stage reserves, uploads and seals an object.
func (b *bundle) stage(t testing.TB, g lease.Grant, id fencing.ObjectID, body string) fencing.ObjectName {
	t.Helper()
	name, r, err := b.reserve(t.Context(), g, id, body)
	must(t, "reserve", err)
	must(t, "upload", upload(t.Context(), r.Upload, body))
	_, err = b.objects.Seal(t.Context(), name)
	must(t, "seal", err)
	return name
}

// publish makes an object visible under its own fence.
func (b *bundle) publish(ctx context.Context, name fencing.ObjectName) error {
	_, err := b.catalog.Publish(ctx, catalog.Request{
		Report: name.Report, Fence: name.Fence, Object: name.Object, IdempotencyKey: uuid.NewString(),
	})
	return err
}

// rollBack publishes an older version's object again.
func (b *bundle) rollBack(ctx context.Context, g lease.Grant, version int64) (catalog.Receipt, error) {
	visible, err := b.catalog.Visible(ctx, g.Report)
	if err != nil && !errors.Is(err, catalog.ErrWithdrawn) {
		return catalog.Receipt{}, err
	}
	return b.catalog.Publish(ctx, catalog.Request{
		Report: g.Report, Fence: g.Fence, FromVersion: version, IdempotencyKey: uuid.NewString(), ExpectedVersion: &visible.Version,
	})
}

// next publishes the body as the report's next version, under a grant of its own that is released.
func (b *bundle) next(t testing.TB, report fencing.ReportID, body string) fencing.ObjectName {
	t.Helper()
	g := b.grant(t, report)
	name := b.stage(t, g, "data", body)
	must(t, "publish", b.publish(t.Context(), name))
	b.free(t, g)
	return name
}

// state is the state in which the row of an object is; empty where there is none.
func (b *bundle) state(t testing.TB, name fencing.ObjectName) staging.State {
	t.Helper()
	o, err := b.objects.Object(t.Context(), name)
	if errors.Is(err, fencing.ErrObjectNotFound) {
		return ""
	}
	must(t, "read an object", err)
	return o.State
}

// wantState fails the test unless the object is in the state.
func (b *bundle) wantState(t testing.TB, name fencing.ObjectName, want staging.State) {
	t.Helper()
	if got := b.state(t, name); got != want {
		t.Errorf("object %v is %q, want %q", name, got, want)
	}
}

// ledger tells what the passes did, in its order, as "action reason report/object".
func (b *bundle) ledger(t testing.TB) []string {
	t.Helper()
	return testdb.Value[[]string](t, b.db, `
		SELECT coalesce(array_agg(action || ' ' || reason || ' ' || report_id || '/' || object_id ORDER BY entry), '{}')
		FROM gc_ledger`)
}

// wantIntact fails the test if anything visible is without its bytes.
func (b *bundle) wantIntact(t testing.TB) {
	t.Helper()
	reports := testdb.Value[[]string](t, b.db, `
		SELECT coalesce(array_agg(report_id ORDER BY report_id), '{}') FROM report WHERE visible_object_id IS NOT NULL`)
	for _, report := range reports {
		visible, err := b.catalog.Visible(t.Context(), fencing.ReportID(report))
		must(t, "resolve", err)
		if err := b.read(t.Context(), visible); err != nil {
			t.Errorf("report %q shows version %d: %v", report, visible.Version, err)
		}
	}
}

// read reads the bytes of a publication, and compares them with its receipt.
func (b *bundle) read(ctx context.Context, p catalog.Publication) error {
	body, err := b.objects.Open(ctx, p.Object.Name, staging.Range{})
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if sum(string(content)) != p.Object.SHA256 {
		return fmt.Errorf("version %d has other bytes than were published", p.Version)
	}
	return nil
}

func (b *bundle) keys(t testing.TB) string { return strings.Join(b.storage.Keys(t), "\n") }

func sum(body string) string {
	s := sha256.Sum256([]byte(body))
	return hex.EncodeToString(s[:])
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
