package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
)

// databaseName is the name of the test's database.
func databaseName(t *testing.T, w *world) string {
	t.Helper()
	return testdb.Value[string](t, w.DB, "SELECT current_database()::text")
}

func TestTheEpochIsShown(t *testing.T) {
	t.Parallel()
	w := begin(t)
	got := w.Do(t, "GET", "/v1/epoch", nil).Want(t, 200)
	members(t, got, "epoch", "floor", "began_at", "reason", "verified")
	equal(t, got, doc{"epoch": 1, "floor": 1, "reason": "first start", "verified": true})
	w.closeEpoch(t)
	equal(t, w.Do(t, "GET", "/v1/epoch", nil).Want(t, 200), doc{"epoch": 2, "floor": 2, "verified": true})
}

func TestAnOperatorOfAllReportsBeginsTheNextEpoch(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	body := doc{"reason": "restored", "expected": 1, "floor": true}
	got := w.Do(t, "POST", "/v1/epoch", body).Want(t, 200)
	members(t, got, "epoch", "floor", "began_at", "reason", "verified")
	equal(t, got, doc{"epoch": 2, "floor": 2, "reason": "restored", "verified": true})
	equal(t, w.Do(t, "POST", "/v1/epoch", body).Refused(t, 409, "epoch_mismatch"), doc{"expected": 1, "actual": 2, "outcome": "not_applied"})
	equal(t, w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", nil).Refused(t, 410, "lease_lost"), doc{"reason": "epoch_closed"})

	equal(t, w.Do(t, "POST", "/v1/epoch", doc{"reason": "exhausted", "expected": 2}).Want(t, 200), doc{"epoch": 3, "floor": 2})
	for field, wrong := range map[string]doc{
		"reason":   {"expected": 3},
		"expected": {"reason": "test"},
		"floor":    {"reason": "test", "expected": 3, "floor": "yes"},
		"force":    {"reason": "test", "expected": 3, "force": true},
	} {
		equal(t, w.Do(t, "POST", "/v1/epoch", wrong).Refused(t, 400, "invalid_request"), doc{"field": field})
	}
	for _, expected := range []int64{0, -1, 1 << 31} {
		equal(t, w.Do(t, "POST", "/v1/epoch", doc{"reason": "test", "expected": expected}).Refused(t, 400, "invalid_request"), doc{"field": "expected"})
	}
	equal(t, w.Do(t, "GET", "/v1/epoch", nil).Want(t, 200), doc{"epoch": 3})
}

func TestWhatConcernsAllReportsNeedsAKeyForAll(t *testing.T) {
	t.Parallel()
	w := begin(t)
	sales := w.NewKey(t, api.RoleOperator, "sales.*")
	for path, body := range map[string]any{
		"/v1/epoch": doc{"reason": "test", "expected": 1}, "/v1/gc/pause": nil, "/v1/gc/resume": nil, "/v1/gc/runs": nil, "/v1/gc/runs/1/approve": nil,
		"/v1/verifications": nil,
	} {
		equal(t, w.DoAs(t, sales, "POST", path, body).Refused(t, 403, "forbidden"), doc{"outcome": "not_applied"})
	}
	w.DoAs(t, sales, "GET", "/v1/epoch", nil).Want(t, 200)
}

func TestTheStatusTellsWhatNeedsALook(t *testing.T) {
	t.Parallel()
	w := begin(t, func(c *service.Config) {
		c.API.Version = "1.2.3"
		c.API.Warnings = []string{"something was allowed"}
	})
	got := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
	members(t, got, "version", "epoch", "checks", "last_gc_run", "gc_paused_since", "collector", "verify", "frozen", "warnings")
	equal(t, got, doc{
		"verify":  doc{"last_completed_at": nil, "deep_last_completed_at": nil, "running": false, "faults": 0},
		"version": "1.2.3", "last_gc_run": nil, "gc_paused_since": nil, "frozen": []string{}, "warnings": []string{"something was allowed"},
		"checks": []doc{{"name": "process", "status": "ok"}, {"name": "schema", "status": "ok"}, {"name": "database", "status": "ok"}},
	})
	w.collect(t, true) // a dry run tells nothing of when a pass last ran
	pass := w.collect(t, false)
	run, _ := w.Do(t, "GET", "/v1/status", nil).Want(t, 200).JSON(t)["last_gc_run"].(doc)
	if run["outcome"] != "completed" || fmt.Sprint(run["run_id"]) != fmt.Sprint(pass.ID) {
		t.Errorf("last run %v, want %d", run, pass.ID)
	}
}

func TestAPassThatWasStoppedNeedsNoLook(t *testing.T) {
	t.Parallel()
	w := begin(t)
	pass, err := w.Collector.Begin(t.Context(), gc.Options{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pass.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the pass ended in %v, want that it was interrupted", err)
	}
	got := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
	equal(t, got, doc{"warnings": []string{}})
	if run, _ := got.JSON(t)["last_gc_run"].(doc); run["outcome"] != "stopped" {
		t.Errorf("last run %v, want that it was stopped", run)
	}
}

func TestHealthIsOpenToAll(t *testing.T) {
	t.Parallel()
	w := begin(t)
	equal(t, w.DoAs(t, "", "GET", "/livez", nil).Want(t, 200), doc{"status": "ok"})
	equal(t, w.DoAs(t, "", "GET", "/readyz", nil).Want(t, 200), doc{
		"status": "ready",
		"checks": []doc{{"name": "process", "status": "ok"}, {"name": "schema", "status": "ok"}, {"name": "database", "status": "ok"}},
	})
	document := w.DoAs(t, "", "GET", "/openapi.yaml", nil).Want(t, 200)
	if string(document.Body) != string(api.OpenAPI()) {
		t.Errorf("the document is served in %d bytes, want %d", len(document.Body), len(api.OpenAPI()))
	}
	for _, path := range []string{"/livez", "/readyz", "/openapi.yaml"} {
		w.DoAs(t, "nonsense", http.MethodHead, path, nil).Want(t, 200)
	}
}

func TestASchemaThatDoesNotFitIsNotReady(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.DB.Exec(t, "UPDATE schema_compatibility SET compatible_from = 999999")
	got := w.DoAs(t, "", "GET", "/readyz", nil).Refused(t, 503, "unavailable")
	equal(t, got, doc{
		"checks": []doc{{"name": "process", "status": "ok"}, {"name": "schema", "status": "failing"}, {"name": "database", "status": "ok"}},
	})
}
