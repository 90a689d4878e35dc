package api_test

import (
	"net/http"
	"testing"

	"github.com/fenceline/fenceline/api"
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

func TestTheStatusTellsWhatNeedsALook(t *testing.T) {
	t.Parallel()
	w := begin(t, func(c *service.Config) {
		c.API.Version = "1.2.3"
		c.API.Warnings = []string{"something was allowed"}
	})
	got := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
	members(t, got, "version", "epoch", "checks", "last_gc_run", "gc_paused_since", "frozen", "warnings")
	equal(t, got, doc{
		"version": "1.2.3", "last_gc_run": nil, "gc_paused_since": nil, "frozen": []string{}, "warnings": []string{"something was allowed"},
		"checks": []doc{{"name": "process", "status": "ok"}, {"name": "schema", "status": "ok"}, {"name": "database", "status": "ok"}},
	})
	pass := w.collect(t, true)
	run, _ := w.Do(t, "GET", "/v1/status", nil).Want(t, 200).JSON(t)["last_gc_run"].(doc)
	if run["outcome"] != "completed" || run["run_id"] == nil {
		t.Errorf("last run %v, want %d", run, pass.ID)
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
