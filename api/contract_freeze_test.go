package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/testservice"
)

// freeze makes the reports of a pattern resolve only.
func (w *world) freeze(t *testing.T, pattern string) {
	t.Helper()
	got := w.Do(t, "POST", "/v1/freeze", doc{"pattern": pattern}).Want(t, 200)
	members(t, got, "result", "pattern")
	equal(t, got, doc{"result": "frozen", "pattern": pattern})
}

// unfreeze lifts the freeze of a pattern.
func (w *world) unfreeze(t *testing.T, pattern string) {
	t.Helper()
	equal(t, w.Do(t, "POST", "/v1/unfreeze", doc{"pattern": pattern}).Want(t, 200), doc{"result": "unfrozen", "pattern": pattern})
}

// change is a request that changes something of a report, and how it is answered when nothing stands against it.
type change struct {
	route, path string
	body        any
	status      int
}

func (w *world) apply(t *testing.T, c change) testservice.Answer {
	t.Helper()
	method, _, _ := strings.Cut(c.route, " ")
	return w.Do(t, method, c.path, c.body, "Idempotency-Key", "new")
}

// changes prepares July for one change by every route that is refused while it is frozen. They succeed in this order.
func (w *world) changes(t *testing.T) []change {
	t.Helper()
	fence := w.history(t, "july", 3) // of the lease a7
	for _, object := range []string{"sealed", "next"} {
		w.stage(t, "july", fence, object, "hello", nil)
	}
	w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "discarded"), nil).Want(t, 201)
	return []change{
		{"PUT /v1/reports/:report/objects/:fence/:object_id", objectPath("july", fence, "new"), nil, 201},
		{"POST /v1/reports/:report/objects/:fence/:object_id/seal", objectPath("july", fence, "sealed") + "/seal", nil, 200},
		{"DELETE /v1/reports/:report/objects/:fence/:object_id", objectPath("july", fence, "discarded"), nil, 200},
		{"POST /v1/reports/:report/publications", july + "/publications", doc{"fence": fence, "object_id": "next", "expected_version": 3}, 201},
		{"PUT /v1/reports/:report/publications/:version/hold", version(1, "/hold"), nil, 200},
		{"DELETE /v1/reports/:report/publications/:version/hold", version(1, "/hold"), nil, 200},
		{"POST /v1/reports/:report/publications/:version/erase", version(1, "/erase"), doc{"reason": "x"}, 200},
		{"PATCH /v1/reports/:report/settings", july + "/settings", doc{"keep_versions": 1}, 200},
		{"PUT /v1/reports/:report/leases/:lease_id", july + "/leases/b9", doc{"holder": "w", "ttl_ms": 30000}, 201},
		{"POST /v1/reports/:report/lease/revoke", july + "/lease/revoke", doc{"reason": "x"}, 200},
	}
}

func TestAFrozenReportTakesNoChangeButTheEndOrRenewalOfALease(t *testing.T) {
	t.Parallel()
	w := begin(t)
	changes := w.changes(t)
	w.freeze(t, "july")

	refused := map[string]bool{}
	for _, c := range changes {
		equal(t, w.apply(t, c).Refused(t, 409, "frozen"), doc{"outcome": "not_applied"})
		refused[c.route] = true
	}
	const renew, release = "POST /v1/reports/:report/leases/:lease_id/renew", "DELETE /v1/reports/:report/leases/:lease_id"
	for _, r := range api.Routes() {
		name := r.Method + " " + r.Path
		if free := name == renew || name == release; r.Mutates && strings.Contains(r.Path, ":report") && refused[name] == free {
			t.Errorf("%s: refused while frozen: %t", name, refused[name])
		}
	}

	// What has happened already is told again.
	equal(t, w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", doc{"holder": "worker-7", "ttl_ms": 30000}).Want(t, 200), doc{"replayed": true})
	w.publish(t, "july", "v1", doc{"fence": "1.1", "object_id": "v1", "expected_version": 0}).Want(t, 200)
	w.publish(t, "july", "v1", doc{"fence": "1.1", "withdraw": true}).Refused(t, 422, "idempotency_key_reused")

	w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", nil).Want(t, 200)
	w.DoAs(t, w.Worker, "DELETE", july+"/leases/a7", nil).Want(t, 200)
	w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", nil).Refused(t, 410, "lease_lost")

	w.unfreeze(t, "july")
	for _, c := range changes {
		w.apply(t, c).Want(t, c.status)
	}
}

func TestAFrozenReportIsReadAsBefore(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.changes(t)
	read := func() map[string]testservice.Answer {
		answers := map[string]testservice.Answer{}
		for _, r := range api.Routes() {
			if r.Role == "" || r.Mutates || r.Path == "/v1/status" {
				continue
			}
			answers[r.Path] = w.Do(t, r.Method, address(r, "july"), nil)
		}
		answers["304"] = w.get(t, july, "If-None-Match", answers["/v1/reports/:report"].Header.Get("ETag"))
		return answers
	}
	before := read()
	w.freeze(t, "july")
	for what, after := range read() {
		if after.Status != before[what].Status || after.Header.Get("ETag") != before[what].Header.Get("ETag") {
			t.Errorf("%s: %d, before it was frozen %d: %s", what, after.Status, before[what].Status, after.Body)
		}
	}
	for what, want := range map[string]int{"/v1/reports/:report": 200, "/v1/reports/:report/content": 200, "304": 304} {
		before[what].Want(t, want)
	}
}

func TestAFreezeIsOfItsPatternAlone(t *testing.T) {
	t.Parallel()
	w := begin(t)
	frozen := func(report string) bool {
		t.Helper()
		got := w.Do(t, "PATCH", "/v1/reports/"+report+"/settings", doc{})
		if got.Status == 409 {
			got.Refused(t, 409, "frozen")
		} else {
			got.Want(t, 200)
		}
		return got.Status == 409
	}
	reports := []string{"sales", "sales.a", "sales.a.b", "sales.b", "sales_x", "salesx", "Sales.a", "other"}
	for pattern, covered := range map[string]string{
		"sales.*":   "sales.a sales.a.b sales.b",
		"sales.a":   "sales.a",
		"sales.a*":  "sales.a sales.a.b",
		"sales*":    "sales sales.a sales.a.b sales.b sales_x salesx",
		"*":         strings.Join(reports, " "),
		"sales.a.*": "sales.a.b",
		"none":      "",
	} {
		for range 2 { // repeated
			w.freeze(t, pattern)
		}
		equal(t, w.Do(t, "GET", "/v1/status", nil).Want(t, 200), doc{"frozen": []string{pattern}})
		var got []string
		for _, report := range reports {
			if frozen(report) {
				got = append(got, report)
			}
		}
		if strings.Join(got, " ") != covered {
			t.Errorf("%s freezes %q, want %q", pattern, got, covered)
		}
		for range 2 {
			w.unfreeze(t, pattern)
		}
	}

	w.freeze(t, "*")
	w.freeze(t, "july")
	w.DoAs(t, w.Worker, "PUT", "/v1/reports/new/leases/a7", doc{"holder": "w", "ttl_ms": 1000}).Refused(t, 409, "frozen")
	w.unfreeze(t, "*")
	if !frozen("july") || frozen("new") {
		t.Error("the end of one freeze is the end of another, or of none")
	}
	w.unfreeze(t, "jul*")
	if !frozen("july") {
		t.Error("a freeze is lifted by a pattern that is not its own")
	}
	equal(t, w.Do(t, "GET", "/v1/status", nil).Want(t, 200), doc{"frozen": []string{"july"}})
}

func TestAFreezeTakesAPatternWithinTheKeysOwn(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, path := range []string{"/v1/freeze", "/v1/unfreeze"} {
		for _, bad := range []any{"", nil, "**", "*a", "a*b", "-", "-*", ".", "a b", "a/b", "ü", strings.Repeat("a", 201), 7, "a\x00"} {
			got := w.Do(t, "POST", path, doc{"pattern": bad}).Refused(t, 400, "invalid_request")
			equal(t, got, doc{"field": "pattern", "outcome": "not_applied"})
		}
		equal(t, w.Do(t, "POST", path, doc{}).Refused(t, 400, "invalid_request"), doc{"field": "pattern"})
		equal(t, w.Do(t, "POST", path, doc{"pattern": "a", "report": "a"}).Refused(t, 400, "invalid_request"), doc{"field": "report"})
		for pattern, want := range map[api.Pattern]map[string]int{
			"sales.*": {
				"sales.*": 200, "sales.a": 200, "sales.a*": 200, "sales.a.*": 200,
				"*": 403, "sales*": 403, "sales": 403, "sales_x": 403, "Sales.a": 403, "july": 403,
			},
			"july": {"july": 200, "july*": 403, "jul*": 403, "*": 403, "july.a": 403},
			"*":    {"*": 200, "july": 200, "sales.*": 200},
		} {
			key := w.NewKey(t, api.RoleOperator, pattern)
			for asked, status := range want {
				got := w.DoAs(t, key, "POST", path, doc{"pattern": asked}).Want(t, status)
				if status == 403 {
					equal(t, got.Refused(t, 403, "forbidden"), doc{"outcome": "not_applied"})
				}
			}
		}
		w.DoAs(t, w.Worker, "POST", path, doc{"pattern": "july"}).Refused(t, 403, "forbidden")
	}
}

func TestTheCollectorLeavesWhatIsFrozen(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 2)
	w.stage(t, "july", fence, "never", "hello", nil)
	w.Do(t, "DELETE", objectPath("july", fence, "never"), nil).Want(t, 200) // condemned before the freeze
	w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "staged"), nil).Want(t, 201)
	w.freeze(t, "july")
	w.pass(t, 30*day)
	w.readable(t, "july", true, true)
	w.kept(t, "july", fence, "frozen", "visible")
	equal(t, w.Do(t, "GET", objectPath("july", fence, "staged"), nil).Want(t, 200), doc{"state": "reserved", "kept_because": "frozen"})
	equal(t, w.Do(t, "GET", objectPath("july", fence, "never"), nil).Want(t, 200), doc{"state": "condemned"})

	w.unfreeze(t, "july")
	w.kept(t, "july", fence, nil, "visible")
	w.pass(t, 0)
	w.readable(t, "july", false, true)
	equal(t, w.Do(t, "GET", objectPath("july", fence, "never"), nil).Want(t, 200), doc{"state": "deleted"})
}

func TestAFreezeWaitsForThePublishUnderWayAndBarsTheNext(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	letGo := w.DB.HoldReport(t, "july")
	published := w.later(t, http.MethodPost, july+"/publications", doc{"fence": fence, "withdraw": true}, "Idempotency-Key", "k1")
	w.DB.AwaitWaiting(t, 1)
	frozen := w.later(t, http.MethodPost, "/v1/freeze", doc{"pattern": "july"})
	w.DB.AwaitWaiting(t, 2)
	letGo()
	(<-published).Want(t, 201)
	(<-frozen).Want(t, 200)
	w.withdraw(t, "july", fence, "k2", 1).Refused(t, 409, "frozen")
}

func TestAPausedCollectorBeginsNoRunUntilItIsResumed(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.Do(t, "POST", "/v1/gc/resume", nil).Want(t, 200) // of what was not paused
	under, err := w.Collector.Begin(t.Context(), gc.Options{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var since string
	for range 2 { // repeated
		got := w.Do(t, "POST", "/v1/gc/pause", nil).Want(t, 200)
		members(t, got, "result")
		equal(t, got, doc{"result": "paused"})
		status := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
		if at := status.String(t, "gc_paused_since"); at == "" || since != "" && at != since {
			t.Errorf("paused since %q, then since %q", since, at)
		} else {
			since = at
		}
		if !strings.Contains(string(status.Body), "paused, by "+keyID(w.Operator)) {
			t.Errorf("no warning: %s", status.Body)
		}
		w.DB.Advance(t, time.Second)
	}
	if err := under.Run(t.Context()); !errors.Is(err, gc.ErrPaused) {
		t.Errorf("the pass under way ended with %v, want that the collector is paused", err)
	}
	equal(t, w.Do(t, "POST", "/v1/gc/runs", nil).Refused(t, 409, "paused"), doc{"outcome": "not_applied"})
	w.finished(t, w.Do(t, "POST", "/v1/gc/runs", doc{"dry_run": true}).Want(t, 202).Int(t, "run_id"))
	for range 2 {
		equal(t, w.Do(t, "POST", "/v1/gc/resume", nil).Want(t, 200), doc{"result": "resumed"})
	}
	status := w.Do(t, "GET", "/v1/status", nil).Want(t, 200)
	if equal(t, status, doc{"gc_paused_since": nil}); strings.Contains(string(status.Body), "paused, by") {
		t.Errorf("a warning is left: %s", status.Body)
	}
	w.finished(t, w.Do(t, "POST", "/v1/gc/runs", nil).Want(t, 202).Int(t, "run_id"))
}
