package service_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// mortal is a service that a test stops by itself.
type mortal struct {
	*testservice.Service
	stop  context.CancelFunc
	ended chan error
}

// startMortal runs a service until stop is called; what serving it ended with is then in ended.
func startMortal(t testing.TB, db *testdb.DB) *mortal {
	t.Helper()
	storage := testbucket.New(t)
	cfg := config(db.URL, storage)
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := service.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open the service: %v", err)
	}
	t.Cleanup(s.Close)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	m := &mortal{
		Service: &testservice.Service{Service: s, DB: db, Storage: storage, URL: "http://" + listener.Addr().String()},
		stop:    stop, ended: make(chan error, 1),
	}
	go func() { m.ended <- s.Serve(ctx, listener) }()
	m.Operator = m.NewKey(t, api.RoleOperator, "*")
	return m
}

// until returns when the condition holds, and fails the test where it does not within half a minute.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("it does not come to pass: %s", what)
		case <-tick.C:
		}
	}
}

func TestAPublishInFlightIsFinishedAndAnsweredWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	m := startMortal(t, testdb.New(t))
	fence := m.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
	key := m.Do(t, "PUT", "/v1/reports/july/objects/"+fence+"/july.csv", map[string]any{}).Want(t, 201).String(t, "key")
	m.Storage.Put(t, key, "hello")

	letGo := m.DB.HoldReport(t, "july")
	defer letGo()
	answered := make(chan testservice.Answer, 1)
	go func() {
		answered <- m.Do(t, "POST", "/v1/reports/july/publications", map[string]any{"fence": fence, "object_id": "july.csv"}, "Idempotency-Key", "k1")
	}()
	m.DB.AwaitWaiting(t, 1)
	m.stop()
	until(t, "nothing new is accepted", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(m.URL, "http://"))
		if err != nil {
			return true
		}
		conn.Close()
		return false
	})
	select {
	case err := <-m.ended:
		t.Fatalf("it ended while a publish was in flight: %v", err)
	case a := <-answered:
		t.Fatalf("it answered before the publish could be decided: %d %s", a.Status, a.Body)
	default:
	}
	letGo()
	a := <-answered
	if a.Status != http.StatusCreated || a.String(t, "result") != "applied" {
		t.Errorf("the publish was answered %d %s", a.Status, a.Body)
	}
	if err := <-m.ended; err != nil {
		t.Errorf("serving ended with %v", err)
	}
	if version := testdb.Value[int](t, m.DB, `SELECT version FROM report`); version != 1 {
		t.Errorf("the report's version is %d, want 1", version)
	}
}

// ready is what /readyz says, with the states of its checks.
func ready(t testing.TB, s *testservice.Service) (status int, checks map[string]string) {
	t.Helper()
	a := s.DoAs(t, "", "GET", "/readyz", nil)
	checks = map[string]string{}
	for _, c := range a.JSON(t)["checks"].([]any) {
		row := c.(map[string]any)
		checks[row["name"].(string)] = row["status"].(string)
	}
	return a.Status, checks
}

func TestAServiceWithoutItsDatabaseIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	if status, checks := ready(t, s); status != http.StatusOK || checks["database"] != "ok" || checks["schema"] != "ok" {
		t.Fatalf("/readyz answers %d %v", status, checks)
	}
	s.DB.Exec(t, `DO $$ BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database()); END $$`)
	s.DB.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'fenceline_service'`)
	if status, checks := ready(t, s); status != http.StatusServiceUnavailable || checks["database"] != "failing" || checks["schema"] != "failing" || checks["process"] != "ok" {
		t.Errorf("without the database /readyz answers %d %v", status, checks)
	}
	s.DoAs(t, "", "GET", "/livez", nil).Want(t, 200)
	refused := s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Refused(t, 503, "unavailable")
	if refused.String(t, "outcome") != "not_applied" || refused.Header.Get("Retry-After") == "" {
		t.Errorf("without the database a lease is refused with %s, Retry-After %q", refused.Body, refused.Header.Get("Retry-After"))
	}
	s.DB.Exec(t, `DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO PUBLIC', current_database()); END $$`)
	until(t, "it is ready again", func() bool { status, _ := ready(t, s); return status == http.StatusOK })
	s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201)
}

func TestAServiceOnAnIdentityInDoubtIsNotReadyUntilThatIsVerified(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	s.DB.Exec(t, `REVOKE EXECUTE ON FUNCTION verify_epoch FROM fenceline_service`) // so that nobody verifies it meanwhile
	s.DB.Exec(t, `VACUUM FULL report`)
	if status, checks := ready(t, s); status != http.StatusServiceUnavailable || checks["database"] != "failing" || checks["schema"] != "ok" {
		t.Errorf("in doubt /readyz answers %d %v", status, checks)
	}
	if warnings := shownWarnings(t, s); len(warnings) != 1 || !strings.Contains(warnings[0], "identity") {
		t.Errorf("in doubt the status warns of %v", warnings)
	}
	refused := s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Refused(t, 503, "unavailable")
	if refused.String(t, "outcome") != "not_applied" {
		t.Errorf("in doubt a lease is refused with %s", refused.Body)
	}
	s.DB.Exec(t, `GRANT EXECUTE ON FUNCTION verify_epoch TO fenceline_service`)
	until(t, "it is ready again", func() bool { status, _ := ready(t, s); return status == http.StatusOK })
	if fence := s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201).String(t, "fence"); fence != "2.1" {
		t.Errorf("the first grant after the doubt is %s, want 2.1", fence)
	}
}

func TestASchemaThatMovesOnUnderTheServiceShowsInItsReadiness(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	s.DB.Exec(t, `UPDATE schema_compatibility SET compatible_from = 999`)
	if status, checks := ready(t, s); status != http.StatusServiceUnavailable || checks["schema"] != "failing" || checks["database"] != "ok" {
		t.Errorf("/readyz answers %d %v", status, checks)
	}
}
