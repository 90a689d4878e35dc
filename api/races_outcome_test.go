package api_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

func TestAnAnswerThatIsLostAfterTheChangeIsFoundOutByRepeatingTheRequest(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	fragile, network := s.through(t)
	fence := s.work(t, "a7")
	version := int64(0)
	for _, c := range []struct {
		name, key string
		bytes     int // how much of the answer arrives
	}{{"before it comes back", "k-none", 0}, {"after it has begun", "k-some", 40}} {
		body := publication(fence, "a7", map[string]any{"expected_version": version})
		network.Hold(c.key)
		lost := fragile.sending(c.key, body)
		network.AwaitHeld(t)
		network.CutAnswer(c.bytes)
		network.LetGo()
		if got := lost(); got.err == nil {
			t.Fatalf("%s: the client got %d: %s", c.name, got.Status, got.Body)
		}
		version++
		s.shows(t, "a7", version)
		for range 2 {
			again := s.publish(t, c.key, body).Want(t, 200)
			wantMembers(t, again, map[string]string{"result": "duplicate"})
			if visible := again.JSON(t)["visible"]; visible != true || again.Int(t, "version") != version {
				t.Errorf("%s: the repetition got %s", c.name, again.Body)
			}
		}
		s.shows(t, "a7", version)
	}
}

func TestADuplicateSaysThatItIsNoLongerVisible(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	a := s.work(t, "a7")
	s.publish(t, "from-a", publication(a, "a7")).Want(t, 201)
	s.DB.Advance(t, 2*leaseTime)
	b := s.work(t, "b9")
	s.publish(t, "from-b", publication(b, "b9")).Want(t, 201)
	again := s.publish(t, "from-a", publication(a, "a7")).Want(t, 200)
	if visible := again.JSON(t)["visible"]; visible != false || again.Int(t, "version") != 1 {
		t.Errorf("the repetition got %s", again.Body)
	}
	s.publish(t, "from-a", publication(a, "other")).Refused(t, 422, "idempotency_key_reused")
	s.shows(t, "b9", 2)
}

func TestASessionThatDiesDuringAPublishIsAnUnknownOutcomeThatTheRepetitionFindsOut(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	fence := s.work(t, "a7")
	letGo := s.DB.HoldReport(t, "july")
	publish := s.sending("k1", publication(fence, "a7"))
	s.DB.AwaitWaiting(t, 1)
	s.DB.Exec(t, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	got := publish()
	if got.err != nil {
		t.Fatal(got.err)
	}
	wantMembers(t, got.Refused(t, 503, "unavailable"), map[string]string{"outcome": "unknown"})
	if got.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	letGo()
	s.publish(t, "k1", publication(fence, "a7")).Want(t, 201)
	s.publish(t, "k1", publication(fence, "a7")).Want(t, 200)
	s.shows(t, "a7", 1)
}

func TestAPublishThatRunsOutOfTimeIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	s := newArena(t, func(c *service.Config) { c.API.RequestTimeout = 2 * time.Second })
	fence := s.work(t, "a7")
	letGo := s.DB.HoldReport(t, "july")
	got := s.send("k1", publication(fence, "a7"))
	if got.err != nil {
		t.Fatal(got.err)
	}
	wantMembers(t, got.Refused(t, 503, "unavailable"), map[string]string{"outcome": "unknown"})
	letGo()
	if again := s.publish(t, "k1", publication(fence, "a7")); again.Status != 201 && again.Status != 200 {
		t.Errorf("the repetition got %d: %s", again.Status, again.Body)
	}
	s.shows(t, "a7", 1)
}

// mutations are the requests that change something, each with what it needs to get as far as the database.
var mutations = []struct {
	method, path string
	body         any
}{
	{"PUT", "/v1/reports/july/leases/b9", map[string]any{"holder": "B", "ttl_ms": 60000}},
	{"PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "worker of a7", "ttl_ms": 60000}},
	{"POST", "/v1/reports/july/leases/a7/renew", nil},
	{"DELETE", "/v1/reports/july/leases/a7", nil},
	{"POST", "/v1/reports/july/lease/revoke", map[string]any{"reason": "test"}},
	{"PUT", "/v1/reports/july/objects/1.1/o", map[string]any{}},
	{"POST", "/v1/reports/july/objects/1.1/later/seal", nil},
	{"DELETE", "/v1/reports/july/objects/1.1/later", nil},
	{"POST", "/v1/reports/july/publications", map[string]any{"fence": "1.1", "object_id": "a7"}},
	{"POST", "/v1/reports/july/publications", map[string]any{"fence": "1.1", "withdraw": true}},
	{"POST", "/v1/gc/runs", map[string]any{"dry_run": true}},
	{"POST", "/v1/verifications", nil},
}

// unwatched is a service that does not verify a new identity by itself.
func unwatched(t *testing.T) arena {
	t.Helper()
	s := &testservice.Service{DB: testdb.New(t), Storage: testbucket.New(t)}
	opened, err := service.Open(t.Context(), service.Config{
		Database: database.Config{URL: s.DB.URL}, Bucket: s.Storage.Config, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	s.Service = opened
	server := httptest.NewServer(api.New(api.Config{
		Leases: s.Leases, Objects: s.Objects, Catalog: s.Catalog, Collector: s.Collector, Verifier: s.Verifier,
		Authenticate: s.Keys.Authenticate, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	s.Operator, s.Worker, s.Reader = s.NewKey(t, api.RoleOperator, "*"), s.NewKey(t, api.RoleWorker, "*"), s.NewKey(t, api.RoleReader, "*")
	return arena{s}
}

func TestWhileTheDatabasesIdentityIsInDoubtEveryChangeIsRefusedAndNothingIsChanged(t *testing.T) {
	t.Parallel()
	s := unwatched(t)
	fence := s.work(t, "a7")
	s.stage(t, fence, "later")
	s.publish(t, "k1", publication(fence, "a7")).Want(t, 201)
	s.DB.Exec(t, "VACUUM FULL report")
	for _, m := range mutations {
		answer := s.Do(t, m.method, m.path, m.body, "Idempotency-Key", "k2").Want(t, 503)
		wantMembers(t, answer, map[string]string{"code": "unavailable", "outcome": "not_applied"})
		if answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s does not say when to try again", m.method, m.path)
		}
	}
	s.shows(t, "a7", 1) // readers are served on

	if epoch, advanced, err := s.Leases.VerifyEpoch(t.Context()); err != nil || !advanced || epoch != 2 {
		t.Fatalf("epoch %d, advanced: %v, %v", epoch, advanced, err)
	}
	s.publish(t, "k2", publication(fence, "a7", map[string]any{"expected_version": 1})).Want(t, 201)
	s.DB.Advance(t, 2*leaseTime)
	if b := s.acquire(t, "b9").Want(t, 201).String(t, "fence"); b != "2.2" {
		t.Errorf("the next fence is %s, want 2.2", b)
	}
}

func TestWhileTheDatabaseIsAwayNoChangeIsApplied(t *testing.T) {
	t.Parallel()
	s := unwatched(t)
	s.work(t, "a7")
	name := testdb.Value[string](t, s.DB, "SELECT current_database()::text")
	s.DB.Exec(t, "ALTER DATABASE "+name+" CONNECTION LIMIT 0") // for all but the owner
	s.Pool.Reset()
	for _, m := range mutations {
		answer := s.Do(t, m.method, m.path, m.body, "Idempotency-Key", "k2").Want(t, 503)
		wantMembers(t, answer, map[string]string{"code": "unavailable", "outcome": "not_applied"})
	}
	s.DB.Exec(t, "ALTER DATABASE "+name+" CONNECTION LIMIT -1")
	s.publish(t, "k2", publication("1.1", "a7")).Want(t, 201)
	s.shows(t, "a7", 1)
}
