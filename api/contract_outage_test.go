package api_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testproxy"
)

// storageBehind is a world whose storage the service reaches through a proxy; workers reach it past it.
func storageBehind(t *testing.T) (*world, *testproxy.Proxy) {
	t.Helper()
	var proxy *testproxy.Proxy
	w := begin(t, func(c *service.Config) {
		endpoint, err := url.Parse(c.Bucket.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		proxy = testproxy.New(t, "tcp", endpoint.Host)
		c.Bucket.PublicEndpoint = c.Bucket.Endpoint
		c.Bucket.Endpoint = "http://" + proxy.Addr
	})
	return w, proxy
}

// databaseBehind is a world whose database the service reaches through a proxy.
func databaseBehind(t *testing.T, changes ...func(*service.Config)) (*world, *testproxy.Proxy) {
	t.Helper()
	db := testdb.New(t)
	parsed, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "unix", parsed.Host+"/.s.PGSQL."+strconv.Itoa(int(parsed.Port))
	if !strings.HasPrefix(parsed.Host, "/") {
		network, address = "tcp", parsed.Host+":"+strconv.Itoa(int(parsed.Port))
	}
	proxy := testproxy.New(t, network, address)
	w := beginOn(t, db, append(changes, func(c *service.Config) {
		c.Database.URL = (&url.URL{
			Scheme: "postgres", User: url.User(parsed.User), Host: proxy.Addr, Path: "/" + parsed.Database, RawQuery: "sslmode=disable",
		}).String()
	})...)
	return w, proxy
}

func TestAPublishWhileTheStorageIsAwayAnswersWhatItKnows(t *testing.T) {
	t.Parallel()
	w, storage := storageBehind(t)
	first := w.grant(t, "july", "a7")
	w.stage(t, "july", first, "o", "hello", nil)
	applied := doc{"fence": first, "object_id": "o"}
	w.publish(t, "july", "k1", applied).Want(t, 201)
	second := w.overtake(t, "july", "b9")
	reserved := w.DoAs(t, w.Worker, "PUT", objectPath("july", second, "o"), nil).Want(t, 201)
	if status, _ := upload(t, reserved, "again"); status != 200 {
		t.Fatalf("upload: %d", status)
	}
	storage.Refuse()

	w.publish(t, "july", "k1", applied).Want(t, 200)
	w.publish(t, "july", "k1", doc{"fence": first, "withdraw": true}).Refused(t, 422, "idempotency_key_reused")
	w.publish(t, "july", "k2", applied).Refused(t, 409, "stale_fence")
	w.publish(t, "july", "k2", doc{"fence": "1.9", "object_id": "o"}).Refused(t, 409, "fence_not_granted")
	w.publish(t, "july", "k2", doc{"fence": second, "object_id": "o", "expected_version": 9}).Refused(t, 412, "version_conflict")
	w.publish(t, "july", "k2", doc{"fence": second, "object_id": "never"}).Refused(t, 404, "object_not_found")

	away := w.publish(t, "july", "k2", doc{"fence": second, "object_id": "o"}).Refused(t, 503, "unavailable")
	equal(t, away, doc{"outcome": "not_applied"})
	away = w.DoAs(t, w.Worker, "POST", objectPath("july", second, "o")+"/seal", nil).Refused(t, 503, "unavailable")
	equal(t, away, doc{"outcome": "not_applied"})
	w.DoAs(t, w.Worker, "PUT", objectPath("july", second, "o2"), nil).Want(t, 201) // a URL needs no storage to be signed

	equal(t, w.publish(t, "july", "k3", doc{"fence": second, "from_version": 1}).Want(t, 201), doc{"version": 2}) // its bytes are known
	equal(t, w.publish(t, "july", "k4", doc{"fence": second, "withdraw": true, "expected_version": 2}).Want(t, 201), doc{"version": 3})
}

func TestContentWhileTheStorageIsAwayIsUnavailableBeforeItsFirstByte(t *testing.T) {
	t.Parallel()
	w, storage := storageBehind(t)
	w.published(t, "july", "hello", doc{"content_type": "text/csv"})
	etag := w.get(t, july+"/content").Header.Get("ETag")
	storage.Refuse()
	for _, path := range []string{july + "/content", july + "/publications/1/content"} {
		got := w.get(t, path).Refused(t, 503, "unavailable")
		if got.Header.Get("Repr-Digest") != "" || got.Header.Get("ETag") != "" {
			t.Errorf("the problem has the headers of the bytes: %v", got.Header)
		}
		w.get(t, path, "Range", "bytes=0-1").Refused(t, 503, "unavailable")
		w.DoAs(t, w.Reader, http.MethodHead, path, nil).Want(t, 503)
		w.get(t, path, "If-None-Match", etag).Want(t, 304) // nothing has to be read
	}
	w.get(t, july).Want(t, 200)
	w.get(t, july+"?presign=true").Want(t, 200)
	w.DoAs(t, "", "GET", "/readyz", nil).Want(t, 200) // only what needs the storage is degraded
}

func TestEveryRouteIsUnavailableWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	w, database := databaseBehind(t)
	w.published(t, "july", "hello", nil)
	database.Refuse()
	for _, r := range api.Routes() {
		if r.Role == "" {
			continue
		}
		got := w.Do(t, r.Method, address(r, "july"), nil, anyRequest...).Refused(t, 503, "unavailable")
		if outcome := got.String(t, "outcome"); r.Mutates != (outcome == "not_applied") {
			t.Errorf("%s %s: outcome %q of what was never asked", r.Method, r.Path, outcome)
		}
		if r.Method == http.MethodGet {
			w.Do(t, http.MethodHead, address(r, "july"), nil).Want(t, 503)
		}
	}
	w.DoAs(t, "", "GET", "/livez", nil).Want(t, 200)
	ready := w.DoAs(t, "", "GET", "/readyz", nil).Refused(t, 503, "unavailable")
	equal(t, ready, doc{
		"checks": []doc{{"name": "process", "status": "ok"}, {"name": "schema", "status": "failing"}, {"name": "database", "status": "failing"}},
	})
}

func TestADatabaseThatDoesNotAnswerHoldsNoRequestUpForAsLongAsItMayWait(t *testing.T) {
	t.Parallel()
	w, database := databaseBehind(t, func(c *service.Config) { c.API.RequestTimeout = 500 * time.Millisecond })
	w.published(t, "july", "hello", nil)
	database.BlackHole()
	var asking sync.WaitGroup
	for _, r := range api.Routes() {
		if r.Role == "" || r.Limit == 0 { // the others have the configured time as a whole
			continue
		}
		asking.Go(func() {
			const patience = 20 * time.Second // less than the shortest of their limits, which is more than a minute
			began := time.Now()
			got := w.Do(t, r.Method, address(r, "july"), nil, anyRequest...)
			if took := time.Since(began); got.Status != 503 || took > patience {
				t.Errorf("%s %s: %d after %v", r.Method, r.Path, got.Status, took)
			}
		})
	}
	asking.Wait()
}

func TestAChangeWhoseSessionWasEndedIsUnknownAndTheRepeatFindsOut(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "o", "hello", nil)
	w.DoAs(t, w.Worker, "POST", objectPath("july", fence, "o")+"/seal", nil).Want(t, 200)
	for _, c := range []struct {
		method, path string
		body         doc
		status       int // of the repeat
	}{
		{"POST", july + "/publications", doc{"fence": fence, "object_id": "o"}, 201},
		{"POST", july + "/leases/a7/renew", doc{}, 200},
		{"PUT", objectPath("july", fence, "p"), doc{}, 201},
		{"DELETE", objectPath("july", fence, "p"), nil, 200},
		{"PUT", july + "/leases/a7", doc{"holder": "worker-7", "ttl_ms": 30000}, 200},
		{"DELETE", july + "/leases/a7", nil, 200},
		{"POST", july + "/lease/revoke", doc{"reason": "x"}, 200},
	} {
		var body any
		if c.body != nil {
			body = c.body
		}
		letGo := w.DB.HoldReport(t, "july")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			got := w.Do(t, c.method, c.path, body, anyRequest...)
			if got.Status != 503 || got.String(t, "code") != "unavailable" || got.String(t, "outcome") != "unknown" {
				t.Errorf("%s %s: %d %s", c.method, c.path, got.Status, got.Body)
			}
		}()
		w.DB.AwaitWaiting(t, 1)
		w.DB.Exec(t, `
			SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		<-ended
		letGo()
		w.Do(t, c.method, c.path, body, anyRequest...).Want(t, c.status)
	}
}

func TestADatabaseThatOnlyReadsChangesNothingAndStillAnswersReaders(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	w.DB.Exec(t, "ALTER DATABASE "+databaseName(t, w)+" SET default_transaction_read_only = on")
	w.Pool.Reset()
	for path, body := range map[string]doc{
		"PUT " + july + "/leases/b9":     {"holder": "w", "ttl_ms": 1000},
		"POST " + july + "/publications": {"fence": fence, "withdraw": true},
		"POST /v1/gc/runs":               {},
		"POST /v1/verifications":         {},
	} {
		method, path, _ := strings.Cut(path, " ")
		equal(t, w.Do(t, method, path, body, anyRequest...).Refused(t, 503, "unavailable"), doc{"outcome": "not_applied"})
	}
	w.get(t, july).Want(t, 200)
	if got := w.get(t, july+"/content").Want(t, 200); string(got.Body) != "hello" {
		t.Errorf("content %q", got.Body)
	}
}

func TestAFaultInsideIs500AndShowsNothingOfIt(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	for _, table := range []string{
		"report", "publication", "lease", "object", "epoch", "gc_run", "gc_ledger", "gc_pause", "refusal", "frozen_reports", "service_default",
		"verify_run", "verify_finding",
	} {
		w.DB.Exec(t, "ALTER TABLE "+table+" RENAME TO lost_"+table)
	}
	bodies := map[string]doc{
		"PUT /v1/reports/:report/leases/:lease_id": {"holder": "w", "ttl_ms": 1000},
		"POST /v1/reports/:report/lease/revoke":    {"reason": "x"},
		"POST /v1/reports/:report/publications":    {"fence": fence, "object_id": "july.csv"},

		"PATCH /v1/reports/:report/settings":                   {},
		"POST /v1/reports/:report/publications/:version/erase": {"reason": "x"},
		"POST /v1/freeze":   {"pattern": "july"},
		"POST /v1/unfreeze": {"pattern": "july"},
		"POST /v1/epoch":    {"reason": "x", "expected": 1},
	}
	for _, r := range api.Routes() {
		if r.Role == "" {
			continue
		}
		var body any
		if b, ok := bodies[r.Method+" "+r.Path]; ok {
			body = b
		}
		got := w.Do(t, r.Method, address(r, "july"), body, anyRequest...).Refused(t, 500, "internal")
		if outcome := got.String(t, "outcome"); r.Mutates != (outcome == "unknown") {
			t.Errorf("%s %s: outcome %q", r.Method, r.Path, outcome)
		}
		if r.Method == http.MethodGet {
			w.Do(t, http.MethodHead, address(r, "july"), nil).Want(t, 500)
		}
	}
	if !strings.Contains(w.log.String(), "42P01") {
		t.Error("the log does not say what went wrong")
	}
}
