package api_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/gc"
)

// collect runs one pass by itself, where it can be waited for.
func (w *world) collect(t *testing.T, dry bool) *gc.Pass {
	t.Helper()
	pass, err := w.Collector.Begin(t.Context(), gc.Options{DryRun: dry, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := pass.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return pass
}

func copyTo(into io.Writer, from io.Reader) (int64, error) { return io.Copy(into, from) }

// finished returns the record of a run that was started over HTTP, once it has ended.
func (w *world) finished(t *testing.T, run int64) doc {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		got := w.Do(t, "GET", "/v1/gc/runs/"+strconv.FormatInt(run, 10), nil).Want(t, 200).JSON(t)
		if got["finished_at"] != nil {
			return got
		}
	}
	t.Fatalf("run %d does not end", run)
	return nil
}

func TestARunIsStartedAndTellsWhatItDid(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "never", "hello", nil)
	w.DB.Advance(t, 25*time.Hour)

	for i, body := range []any{doc{"dry_run": true}, nil} {
		started := w.Do(t, "POST", "/v1/gc/runs", body).Want(t, 202)
		members(t, started, "run_id")
		id := started.Int(t, "run_id")
		run := w.finished(t, id)
		if run["phase"] != "done" || run["outcome"] != "completed" || run["error"] != nil || run["dry_run"] != (i == 0) ||
			run["started_by"] != strings.Split(w.Operator, "_")[1] {
			t.Errorf("run %v", run)
		}
		entries := w.Do(t, "GET", "/v1/gc/runs/"+strconv.FormatInt(id, 10)+"/objects", nil).Want(t, 200)
		items, _ := entries.JSON(t)["items"].([]any)
		if len(items) != 1 {
			t.Fatalf("entries %s", entries.Body)
		}
		entry, _ := items[0].(doc)
		if entry["report"] != "july" || entry["object_id"] != "never" || entry["action"] != "condemned" || entry["reason"] != "never_sealed" ||
			entry["key"] != "reports/july/1.1/never" || entry["fence"] != "1.1" {
			t.Errorf("entry %v", entry)
		}
		state := map[bool]string{true: "reserved", false: "condemned"}[i == 0]
		equal(t, w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "never"), nil).Want(t, 200), doc{"state": state})
	}
}

func TestOneRunIsUnderWayAtATime(t *testing.T) {
	t.Parallel()
	w := begin(t)
	pass, err := w.Collector.Begin(t.Context(), gc.Options{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, w.Do(t, "POST", "/v1/gc/runs", doc{"dry_run": true}).Refused(t, 409, "already_running"),
		doc{"run_id": pass.ID, "outcome": "not_applied"})
	equal(t, w.Do(t, "GET", "/v1/gc/runs/"+strconv.FormatInt(pass.ID, 10), nil).Want(t, 200),
		doc{"outcome": nil, "finished_at": nil, "phase": "condemn"})
	if err := pass.Run(t.Context()); err != nil && !errors.Is(err, gc.ErrRunEnded) {
		t.Fatal(err)
	}
	w.finished(t, w.Do(t, "POST", "/v1/gc/runs", nil).Want(t, 202).Int(t, "run_id"))
}

func TestAnUnknownRunIsNotFound(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, id := range []string{"1", "0", "-1", "x", "9223372036854775808"} {
		w.Do(t, "GET", "/v1/gc/runs/"+id, nil).Refused(t, 404, "run_not_found")
		w.Do(t, "GET", "/v1/gc/runs/"+id+"/objects", nil).Refused(t, 404, "run_not_found")
	}
	for field, body := range map[string]any{"dry": doc{"dry": true}, "dry_run": doc{"dry_run": "true"}, "body": raw("true")} {
		equal(t, w.Do(t, "POST", "/v1/gc/runs", body).Refused(t, 400, "invalid_request"), doc{"field": field})
	}
	w.finished(t, w.Do(t, "POST", "/v1/gc/runs", raw(`{"dry_run":null}`)).Want(t, 202).Int(t, "run_id"))
}

func TestAKeyForSomeReportsIsNotToldOfOthersByARun(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.Storage.Put(t, "reports/finance.secret/merger.csv", "x")
	pass, err := w.Collector.Begin(t.Context(), gc.Options{By: "test", Scan: true})
	if err == nil {
		err = pass.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.DB.Exec(t, "UPDATE gc_run SET error = 'delete reports/finance.secret/merger.csv: denied'")
	sales := w.NewKey(t, api.RoleOperator, "sales.*")
	for _, path := range []string{"/v1/gc/runs", "/v1/gc/runs/1", "/v1/status"} {
		if all := w.Do(t, "GET", path, nil).Want(t, 200); !strings.Contains(string(all.Body), "finance.secret") {
			t.Errorf("%s does not tell a key for all reports: %s", path, all.Body)
		}
		if some := w.DoAs(t, sales, "GET", path, nil).Want(t, 200); strings.Contains(string(some.Body), "finance.secret") {
			t.Errorf("%s tells a key for other reports: %s", path, some.Body)
		}
	}
}
