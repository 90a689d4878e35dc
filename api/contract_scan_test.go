package api_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testbucket"
)

func TestARunComparesTheBucketWithTheCatalogUnlessItIsToldNotTo(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	w := begin(t, func(c *service.Config) { c.Bucket = storage.Config })
	fence := w.grant(t, "july", "a7")
	storage.Put(t, "reports/july/"+fence+"/unknown", "12345")
	storage.Put(t, "reports/readme.txt", "1234567")
	if run := w.finished(t, w.Do(t, "POST", "/v1/gc/runs", doc{"scan": false}).Want(t, 202).Int(t, "run_id")); run["scan"] != nil {
		t.Errorf("a run without a scan tells %v", run["scan"])
	}
	for i, body := range []any{doc{"dry_run": true}, nil, doc{"scan": true}} {
		id := w.Do(t, "POST", "/v1/gc/runs", body).Want(t, 202).Int(t, "run_id")
		want := doc{
			"keys": json.Number("2"), "unknown": []any{json.Number("1"), json.Number("1"), json.Number("0")}[i],
			"returned": json.Number("0"), "completed": true,
			"foreign": doc{"objects": json.Number("1"), "bytes": json.Number("7"), "sample": []any{"reports/readme.txt"}},
		}
		run := w.finished(t, id)
		if diff := cmp.Diff(want, run["scan"]); diff != "" || run["phase"] != "done" {
			t.Errorf("%v: the scan (-want +got):\n%s", body, diff)
		}
		entries, _ := w.Do(t, "GET", "/v1/gc/runs/"+strconv.FormatInt(id, 10)+"/objects", nil).Want(t, 200).JSON(t)["items"].([]any)
		if (len(entries) == 1) != (i < 2) {
			t.Errorf("%v: the entries are %v", body, entries)
		}
		for _, entry := range entries {
			if e, _ := entry.(doc); e["action"] != "found" || e["reason"] != "unknown" || e["object_id"] != "unknown" {
				t.Errorf("%v: the entry is %v", body, entry)
			}
		}
	}

	found := w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "unknown"), nil).Want(t, 200)
	equal(t, found, doc{"state": "reserved", "kept_because": "within_retention"})
	if found.JSON(t)["found_at"] == nil {
		t.Errorf("what was found does not say since when: %s", found.Body)
	}
	w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "unknown"), doc{}).Refused(t, 409, "object_exists")
	w.DoAs(t, w.Worker, "POST", objectPath("july", fence, "unknown")+"/seal", nil).Refused(t, 404, "object_not_found")
	w.DoAs(t, w.Worker, "DELETE", objectPath("july", fence, "unknown"), nil).Refused(t, 404, "object_not_found")
}
