package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/service"
)

// tight has the collector's brake let one object go within its window.
func tight(c *service.Config) { c.Collector.BrakeMin, c.Collector.BrakeShare = 1, 0.0001 }

// heldBack leaves three objects staged until they are due, has the brake hold two of them back, and returns the run.
func (w *world) heldBack(t *testing.T) (run int64, fence string) {
	t.Helper()
	fence = w.grant(t, "july", "a7")
	for i := range 3 {
		w.stage(t, "july", fence, fmt.Sprintf("never-%d", i), "hello", doc{"size": 5})
	}
	w.DB.Advance(t, 25*time.Hour)
	return w.collect(t, false).ID, fence
}

func approvePath(run int64) string { return "/v1/gc/runs/" + strconv.FormatInt(run, 10) + "/approve" }

func TestWhatTheBrakeHoldsBackIsShownAndLetGoOnceItIsApproved(t *testing.T) {
	t.Parallel()
	w := begin(t, tight)
	run, fence := w.heldBack(t)
	held := doc{"run_id": run, "objects": 2, "bytes": 10}
	status := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
	collector, _ := status.JSON(t)["collector"].(doc)
	if got := fmt.Sprint(collector["held_back"]); got != fmt.Sprint([]any{doc{"run_id": run, "objects": 2, "bytes": 10}}) {
		t.Errorf("the status says that %v is held back", got)
	}
	if !strings.Contains(string(status.Body), fmt.Sprintf("fenceline gc approve %d", run)) {
		t.Errorf("no warning names the command: %s", status.Body)
	}
	w.DB.Advance(t, 2*time.Hour)
	overdue, _ := w.Do(t, "GET", "/v1/status", nil).Want(t, 200).JSON(t)["collector"].(doc)["overdue"].(doc)
	ages, _ := overdue["by_age"].([]any)
	if fmt.Sprint(overdue["objects"]) != "2" || len(ages) != 4 || fmt.Sprint(ages[0]) != fmt.Sprint(doc{"older_than_ms": 3600000, "objects": 2}) {
		t.Errorf("overdue is %v", overdue)
	}

	record := w.Do(t, "GET", fmt.Sprintf("/v1/gc/runs/%d", run), nil).Want(t, 200)
	equal(t, record, doc{
		"braked": doc{"objects": 2, "bytes": 10}, "condemned": doc{"objects": 1, "bytes": 5}, "report_only": false,
		"approved_at": nil, "approved_by": nil, "progress": nil, "errors": []any{},
		"by_reason": []doc{
			{"action": "braked", "reason": "never_sealed", "objects": 2, "bytes": 10},
			{"action": "condemned", "reason": "never_sealed", "objects": 1, "bytes": 5},
		},
	})
	entries, _ := w.Do(t, "GET", fmt.Sprintf("/v1/gc/runs/%d/objects?action=braked", run), nil).Want(t, 200).JSON(t)["items"].([]any)
	if len(entries) != 2 {
		t.Errorf("%d entries of what is held back, want 2: %v", len(entries), entries)
	}
	equal(t, w.Do(t, "GET", fmt.Sprintf("/v1/gc/runs/%d/objects?action=thrown", run), nil).Refused(t, 400, "invalid_request"), doc{"field": "action"})
	equal(t, w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "never-2"), nil).Want(t, 200),
		doc{"kept_because": "held_back", "held_back": doc{"run_id": run, "reason": "never_sealed"}})

	held["result"] = "approved"
	equal(t, w.Do(t, "POST", approvePath(run), nil).Want(t, 200), held)
	held["result"] = "already_approved"
	equal(t, w.Do(t, "POST", approvePath(run), doc{}).Want(t, 200), held)
	if by := w.Do(t, "GET", fmt.Sprintf("/v1/gc/runs/%d", run), nil).Want(t, 200).JSON(t)["approved_by"]; by != strings.Split(w.Operator, "_")[1] {
		t.Errorf("it was approved by %v", by)
	}
	w.collect(t, false)
	equal(t, w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "never-2"), nil).Want(t, 200),
		doc{"state": "condemned", "condemned_because": "never_sealed"})
}

func TestWhatHoldsNothingBackCannotBeApproved(t *testing.T) {
	t.Parallel()
	w := begin(t)
	dry := w.collect(t, true)
	equal(t, w.Do(t, "POST", approvePath(dry.ID), nil).Refused(t, 409, "nothing_held_back"), doc{"outcome": "not_applied"})
	for _, id := range []string{"0", "x", "99"} {
		equal(t, w.Do(t, "POST", "/v1/gc/runs/"+id+"/approve", nil).Refused(t, 404, "run_not_found"), doc{"outcome": "not_applied"})
	}
	equal(t, w.Do(t, "POST", approvePath(dry.ID), doc{"all": true}).Refused(t, 400, "invalid_request"), doc{"field": "all"})
	pass, err := w.Collector.Begin(t.Context(), gc.Options{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, w.Do(t, "POST", approvePath(pass.ID), nil).Refused(t, 409, "already_running"), doc{"run_id": pass.ID})
	if err := pass.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestACollectorThatOnlyReportsSaysSoUntilItIsApproved(t *testing.T) {
	t.Parallel()
	w := begin(t, func(c *service.Config) { c.Collector.ReportFirst = true })
	waiting := func(want bool, words string) {
		t.Helper()
		status := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
		collector, _ := status.JSON(t)["collector"].(doc)
		if collector["report_only"] != want || !strings.Contains(string(status.Body), words) {
			t.Errorf("the status is %s, want report_only %v and a warning with %q", status.Body, want, words)
		}
	}
	waiting(true, "fenceline gc approve RUN")
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "never", "hello", doc{"size": 5})
	w.DB.Advance(t, 25*time.Hour)
	run := w.Do(t, "POST", "/v1/gc/runs", nil).Want(t, 202).Int(t, "run_id")
	if got := w.finished(t, run); got["report_only"] != true || got["dry_run"] != true {
		t.Errorf("run %v", got)
	}
	waiting(true, fmt.Sprintf("fenceline gc approve %d", run))
	equal(t, w.Do(t, "POST", approvePath(run), nil).Want(t, 200), doc{"result": "approved", "run_id": run, "objects": 1, "bytes": 5})
	waiting(false, `"warnings":[]`)
	if got := w.finished(t, w.Do(t, "POST", "/v1/gc/runs", nil).Want(t, 202).Int(t, "run_id")); got["report_only"] != false || got["dry_run"] != false {
		t.Errorf("run %v", got)
	}
}
