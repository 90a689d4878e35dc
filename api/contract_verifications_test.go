package api_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/verify"
)

// verified returns the record of a verification that was started over HTTP, once it has ended.
func (w *world) verified(t *testing.T, id int64) doc {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		got := w.Do(t, "GET", "/v1/verifications/"+strconv.FormatInt(id, 10), nil).Want(t, 200).JSON(t)
		if got["finished_at"] != nil {
			return got
		}
	}
	t.Fatalf("verification %d does not end", id)
	return nil
}

// lose publishes a version of each report and takes its bytes away, or all but the first of them.
func (w *world) lose(t *testing.T, left int, reports ...string) {
	t.Helper()
	for _, report := range reports {
		w.published(t, report, "hello", nil)
		for _, key := range w.Storage.Keys(t) {
			switch {
			case !strings.Contains(key, "/"+report+"/"):
			case left == 0:
				w.Storage.Delete(t, key)
			default:
				w.Storage.Put(t, key, "hello"[:left])
			}
		}
	}
}

func TestAVerificationIsStartedAndTellsWhatItFound(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "august", "hello", nil)
	w.lose(t, 3, "july")
	w.lose(t, 0, "june")
	for i, body := range []any{nil, doc{}, doc{"deep": true}, raw(`{"deep":null}`)} {
		started := w.Do(t, "POST", "/v1/verifications", body).Want(t, 202)
		members(t, started, "verification_id")
		id := started.Int(t, "verification_id")
		got := w.verified(t, id)
		if got["outcome"] != "completed" || got["error"] != nil || got["deep"] != (i == 2) || got["reports"] != "*" ||
			got["started_by"] != strings.Split(w.Operator, "_")[1] || fmt.Sprint(got["faults"]) != "2" ||
			fmt.Sprint(got["verified"]) != "map[bytes:15 objects:3]" || fmt.Sprint(got["total"]) != fmt.Sprint(got["verified"]) {
			t.Errorf("verification %v", got)
		}
		items := w.pages(t, w.Operator, fmt.Sprintf("/v1/verifications/%d/findings", id), 1)
		if len(items) != 2 || items[0]["report"] != "july" || items[0]["fault"] != "size" || items[0]["present"] != true ||
			items[1]["report"] != "june" || items[1]["fault"] != "missing" || items[1]["found"] != nil {
			t.Errorf("findings %v", items)
		}
	}
	status := w.Do(t, "GET", "/v1/status", nil).Want(t, 200).JSON(t)
	verifying, _ := status["verify"].(doc)
	if fmt.Sprint(verifying["faults"]) != "2" || verifying["last_completed_at"] == nil || verifying["deep_last_completed_at"] == nil || verifying["running"] != false {
		t.Errorf("the status says %v", verifying)
	}
	warnings, _ := status["warnings"].([]any)
	if !slices.ContainsFunc(warnings, func(text any) bool { return strings.HasPrefix(text.(string), "2 objects that are shown") }) {
		t.Errorf("the status warns of %v", warnings)
	}
	if ids := w.pages(t, w.Operator, "/v1/verifications", 1); len(ids) != 4 || fmt.Sprint(ids[0]["verification_id"]) != "4" {
		t.Errorf("the list is %v", ids)
	}
	w.Do(t, "GET", "/v1/verifications?limit=2", nil).Want(t, 200)
}

func TestOneVerificationOfEachKindIsUnderWayAtATime(t *testing.T) {
	t.Parallel()
	w := begin(t)
	run, err := w.Verifier.Begin(t.Context(), verify.Options{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, w.Do(t, "POST", "/v1/verifications", nil).Refused(t, 409, "already_running"), doc{"verification_id": run.ID, "run_id": nil, "outcome": "not_applied"})
	equal(t, w.Do(t, "GET", fmt.Sprint("/v1/verifications/", run.ID), nil).Want(t, 200), doc{"outcome": nil, "finished_at": nil})
	w.verified(t, w.Do(t, "POST", "/v1/verifications", doc{"deep": true}).Want(t, 202).Int(t, "verification_id"))
	if err := run.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnknownVerificationIsNotFound(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, id := range []string{"1", "0", "-1", "x", "9223372036854775808"} {
		w.Do(t, "GET", "/v1/verifications/"+id, nil).Refused(t, 404, "verification_not_found")
		w.Do(t, "GET", "/v1/verifications/"+id+"/findings", nil).Refused(t, 404, "verification_not_found")
	}
	for field, body := range map[string]any{"dry_run": doc{"dry_run": true}, "deep": doc{"deep": "true"}, "body": raw("true")} {
		equal(t, w.Do(t, "POST", "/v1/verifications", body).Refused(t, 400, "invalid_request"), doc{"field": field})
	}
}

func TestAnOperatorOfSomeReportsSeesWhatWasFoundOfThese(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.lose(t, 0, "sales.a", "sales_x", "sales.b", "july")
	w.verified(t, w.Do(t, "POST", "/v1/verifications", nil).Want(t, 202).Int(t, "verification_id"))
	for pattern, want := range map[api.Pattern]int{"*": 4, "sales.*": 2, "july": 1, "august": 0} {
		items := w.pages(t, w.NewKey(t, api.RoleOperator, pattern), "/v1/verifications/1/findings", 1)
		if len(items) != want {
			t.Errorf("%s: %v, want %d", pattern, items, want)
		}
		for _, item := range items {
			if report := item["report"].(string); !pattern.Covers(report) {
				t.Errorf("%s sees %s", pattern, report)
			}
		}
	}
}
