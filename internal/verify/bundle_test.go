package verify_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// bundle is a catalog with its bucket, and the parts that publish into it.
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
	return setupOn(t, testbucket.New(t))
}

func setupOn(t testing.TB, storage *testbucket.Bucket) *bundle {
	t.Helper()
	b := &bundle{db: testdb.New(t), storage: storage, bucket: storage.Open(t)}
	b.leases = lease.New(b.db.Pool)
	b.objects = staging.New(b.db.Pool, b.bucket, staging.Config{})
	b.catalog = catalog.New(b.db.Pool, func(ctx context.Context, name fencing.ObjectName) error {
		_, err := b.objects.Seal(ctx, name)
		return err
	}, catalog.Config{})
	must(t, "claim the bucket", staging.Claim(t.Context(), b.db.Pool, b.bucket))
	return b
}

// published is a version, and where its bytes are.
type published struct {
	Name    fencing.ObjectName
	Key     string
	Body    string
	Version int64
}

// next publishes the body as the report's next version, under a grant of its own that is released.
func (b *bundle) next(t testing.TB, report fencing.ReportID, body string) published {
	t.Helper()
	g := b.grant(t, report)
	name := fencing.ObjectName{Report: report, Fence: g.Fence, Object: "data"}
	reserved, err := b.objects.Reserve(t.Context(), name, staging.Declaration{})
	must(t, "reserve", err)
	b.storage.Put(t, reserved.Key, body)
	receipt, err := b.catalog.Publish(t.Context(), catalog.Request{
		Report: report, Fence: g.Fence, Object: name.Object, IdempotencyKey: uuid.NewString(),
	})
	must(t, "publish", err)
	b.free(t, g)
	return published{name, reserved.Key, body, receipt.Version}
}

func (b *bundle) grant(t testing.TB, report fencing.ReportID) lease.Grant {
	t.Helper()
	g, err := b.leases.Acquire(t.Context(), lease.Request{
		Report: report, Lease: fencing.LeaseID(uuid.NewString()), Holder: "test", TTL: time.Minute,
	})
	must(t, "acquire", err)
	return g
}

func (b *bundle) free(t testing.TB, g lease.Grant) {
	t.Helper()
	_, err := b.leases.Release(t.Context(), g.Report, g.Lease)
	must(t, "release", err)
}

// erase erases an older version, and removes its bytes as the collector will.
func (b *bundle) erase(t testing.TB, p published) {
	t.Helper()
	must(t, "erase", b.catalog.Erase(t.Context(), p.Name.Report, p.Version, "test", "test"))
	b.storage.Delete(t, p.Key)
}

// verifier is one that waits for nothing.
func (b *bundle) verifier(changes ...func(*verify.Config)) *verify.Verifier {
	return b.verifierOn(b.bucket, changes...)
}

func (b *bundle) verifierOn(bucket *staging.Bucket, changes ...func(*verify.Config)) *verify.Verifier {
	cfg := verify.Config{Patience: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	for _, change := range changes {
		change(&cfg)
	}
	return verify.New(b.db.Pool, bucket, cfg)
}

// through is the bucket with a handler before it.
func (b *bundle) through(t testing.TB, handle func(w http.ResponseWriter, r *http.Request, next http.Handler)) *staging.Bucket {
	t.Helper()
	next := b.storage.Proxy(t)
	return b.storage.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, next) })).Open(t)
}

// told are a run's record and what it told of while it ran.
type told struct {
	verify.Record
	Findings []verify.Finding
}

// run runs with the options, and returns what came of it, and the error that it ended with.
func run(t testing.TB, v *verify.Verifier, o verify.Options) (told, error) {
	t.Helper()
	var got told
	o.By, o.Each = "test", func(f verify.Finding) { got.Findings = append(got.Findings, f) }
	r, err := v.Begin(t.Context(), o)
	must(t, "begin", err)
	failure := r.Run(t.Context())
	got.Record, err = v.Record(t.Context(), r.ID)
	must(t, "read the record", err)
	return got, failure
}

// look runs with the options, to the end.
func look(t testing.TB, v *verify.Verifier, o verify.Options) told {
	t.Helper()
	got, err := run(t, v, o)
	must(t, "run", err)
	if got.Outcome == nil || *got.Outcome != "completed" {
		t.Fatalf("the record says %+v", got.Record)
	}
	return got
}

// wantFaults fails the test unless the run told of these faults, as "report versions fault", and wrote down the same.
func (b *bundle) wantFaults(t testing.TB, v *verify.Verifier, got told, want ...string) {
	t.Helper()
	list := func(findings []verify.Finding) []string {
		lines := []string{}
		for _, f := range findings {
			lines = append(lines, fmt.Sprintf("%s %v %s", f.Object.Report, f.Versions, f.Fault))
		}
		return lines
	}
	if diff := cmp.Diff(append([]string{}, want...), list(got.Findings)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	written, err := v.Findings(t.Context(), got.VerificationID, catalog.Names{}, verify.After{}, 1000)
	must(t, "list the findings", err)
	if diff := cmp.Diff(append([]string{}, want...), list(written)); diff != "" {
		t.Errorf("written down (-want +got):\n%s", diff)
	}
	if got.Faults != int64(len(want)) {
		t.Errorf("the record counts %d faults, want %d", got.Faults, len(want))
	}
}

// wantPresent fails the test unless so many faults count as present.
func wantPresent(t testing.TB, v *verify.Verifier, want int64) {
	t.Helper()
	s, err := v.Situation(t.Context())
	must(t, "read the situation", err)
	if s.Faults != want {
		t.Errorf("%d faults are present, want %d", s.Faults, want)
	}
}

// asked counts the requests by method and key.
type asked struct {
	mu    sync.Mutex
	times map[string]int
}

func (a *asked) note(r *http.Request) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.times == nil {
		a.times = map[string]int{}
	}
	if strings.Contains(r.URL.Path, "/reports/") {
		a.times[r.Method+" "+r.URL.Path]++
	}
	for _, times := range a.times {
		n += times
	}
	return n
}

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
