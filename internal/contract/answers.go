package contract

import (
	"io"
	"strings"
)

func answerCases() []Case {
	const table = "Every answer"
	return []Case{
		{Table: table, Row: "X-Request-Id", Steps: everyAnswerHasAnID},
		{Table: table, Row: "application/problem+json", Steps: everyErrorIsAProblem},
		{Table: table, Row: "outcome", Steps: everyErrorTellsTheOutcome},
		{Table: table, Row: "Retry-After", Steps: busyTellsWhenToRetry},
		{Table: table, Row: "400 invalid_request {field} | the body", Steps: unknownMember},
		{Table: table, Row: "400 invalid_request {field} | the query", Steps: unknownParameter},
		{Table: table, Row: `400 invalid_request {"field":"report"}`, Steps: badReport},
		{Table: table, Row: "401 unauthenticated", Steps: noKey},
		{Table: table, Row: "403 forbidden | the key's role", Steps: lowRole},
		{Table: table, Row: "403 forbidden | the key's pattern", Steps: otherPattern},
		{Table: table, Row: "404 not_found", Steps: nowhere},
		{Table: table, Row: "404 report_not_found", Steps: noReport},
		{Table: table, Row: "405 method_not_allowed", Steps: otherMethod},
		{Table: table, Row: "409 frozen", Steps: frozen},
		{Table: table, Row: "413 body_too_large", Steps: largeBody},
		{Table: table, Row: "415 unsupported_media_type", Steps: otherMediaType},
	}
}

// What holds for every answer is checked on each that the walker gets; these four look at it once more.

func everyAnswerHasAnID(w *Walk) {
	for _, path := range []string{"/livez", "/nowhere", "/v1/reports", ""} {
		id := "walk-" + w.report
		got := w.Reader("GET", path, nil, "X-Request-Id", id)
		w.Check(got.Header.Get("X-Request-Id") == id, "%s: the request's id is %q", path, got.Header.Get("X-Request-Id"))
	}
}

func everyErrorIsAProblem(w *Walk) {
	for _, got := range []Answer{
		w.Do(Nobody, "GET", "", nil), w.Reader("GET", "/nowhere", nil), w.Reader("GET", "", nil), w.Worker("PUT", "leases/a7", body{}),
	} {
		w.Check(got.Header.Get("Content-Type") == "application/problem+json", "%s: Content-Type %q", got, got.Header.Get("Content-Type"))
	}
}

func everyErrorTellsTheOutcome(w *Walk) {
	got := w.Worker("PUT", "leases/a7", body{})
	w.Check(got.Text("outcome") == "not_applied", "%s: outcome %q", got, got.Text("outcome"))
	_, told := w.Reader("GET", "", nil).Raw("outcome")
	w.Check(!told, "an error of a read tells an outcome")
}

func busyTellsWhenToRetry(w *Walk) {
	w.grant("a7")
	got := w.Want(w.Worker("PUT", "leases/b9", longLease()), 409)
	w.Check(got.Header.Get("Retry-After") == "60", "Retry-After %q of a lease of 60 s", got.Header.Get("Retry-After"))
}

func unknownMember(w *Walk) {
	for field, content := range map[string]any{
		"ttl":     body{"holder": "w", "ttl_ms": 1000, "ttl": 1},
		"ttl_ms":  body{"holder": "w", "ttl_ms": "1s"},
		"holder":  raw(`{"holder":"w","holder":"v","ttl_ms":1000}`),
		"wait_ms": body{"holder": "w", "ttl_ms": 1000, "wait_ms": 0.5},
	} {
		got := w.See(w.Worker("PUT", "leases/a7", content))
		w.Check(got.Text("field") == field, "the field is %q, not %q", got.Text("field"), field)
	}
}

func unknownParameter(w *Walk) {
	for query, field := range map[string]string{"?limt=1": "limt", "?limit=1&limit=2": "limit"} {
		got := w.See(w.Reader("GET", "/v1/reports"+query, nil))
		w.Check(got.Text("field") == field, "the field is %q, not %q", got.Text("field"), field)
	}
}

func badReport(w *Walk) { w.See(w.Reader("GET", "/v1/reports/-july", nil)) }

func noKey(w *Walk) {
	w.See(w.Do(Nobody, "GET", "", nil))
	w.See(w.DoWith("fl_aaaaaaaaaaaaaaaa_nonsense", "GET", "", nil))
	w.See(w.DoWith("", "GET", "", nil, "Authorization", "Basic bm9uZTpub25l"))
}

func lowRole(w *Walk) {
	w.See(w.Reader("PUT", "leases/a7", longLease()))
	w.See(w.Worker("PATCH", "settings", body{}))
	w.See(w.Worker("POST", "/v1/gc/runs", nil))
}

func otherPattern(w *Walk) {
	key, err := w.NewKey(Operator, w.report+".*")
	w.Must(err)
	w.grant("a7")
	for _, report := range []string{w.report, w.report + "x"} { // one that is there, and one that is not
		w.See(w.DoWith(key, "GET", w.below(report, "lease"), nil))
		w.See(w.DoWith(key, "PUT", w.below(report, "leases/b9"), longLease()))
	}
	w.Want(w.DoWith(key, "PUT", w.below(w.report+".x", "leases/a7"), longLease()), 201)
}

func nowhere(w *Walk) {
	for _, path := range []string{"/", "/v1", "/v1/report", "/v2/reports", "/v1/reports/"} {
		w.See(w.Reader("GET", path, nil))
	}
}

func noReport(w *Walk) {
	for _, path := range []string{"", "content", "publications", "publications/1"} {
		w.See(w.Reader("GET", path, nil))
	}
	w.See(w.Worker("GET", "leases", nil))
	w.See(w.Worker("GET", "objects", nil))
	w.See(w.Operator("GET", "settings", nil))
}

func otherMethod(w *Walk) {
	for path, method := range map[string]string{"/v1/reports": "POST", "leases/a7": "POST", "/livez": "PUT", "settings": "DELETE"} {
		got := w.See(w.Operator(method, path, nil))
		w.Check(strings.Contains(got.Header.Get("Allow"), "GET"), "%s: Allow %q", path, got.Header.Get("Allow"))
	}
}

func frozen(w *Walk) {
	fence := w.superseded()
	w.stage(fence, "o3", "third")
	w.Want(w.Operator("POST", "/v1/freeze", body{"pattern": w.report}), 200)
	w.See(w.Worker("PUT", "leases/b9", longLease()))
	w.See(w.reserve(fence, "o4", nil))
	w.See(w.Worker("POST", object(fence, "o3")+"/seal", nil))
	w.See(w.Worker("DELETE", object(fence, "o3"), nil))
	w.See(w.publish("k3", body{"fence": fence, "withdraw": true, "expected_version": 2}))
	w.See(w.Operator("PATCH", "settings", body{"fencing": "live"}))
	w.See(w.revoke(fence))
	w.See(w.Operator("PUT", "publications/1/hold", nil))
	w.See(w.Operator("DELETE", "publications/1/hold", nil))
	w.See(w.Operator("POST", "publications/1/erase", body{"reason": "x"}))
	w.Want(w.Operator("POST", "/v1/unfreeze", body{"pattern": w.report}), 200)
}

func largeBody(w *Walk) {
	large := strings.Repeat(" ", 64<<10) + "{"
	w.See(w.Worker("PUT", "leases/a7", raw(large)))
	w.See(w.Worker("PUT", "leases/a7", struct{ io.Reader }{strings.NewReader(large)})) // of unknown length
	w.See(w.Worker("POST", object("1.1", "o1")+"/seal", raw(strings.Repeat(" ", 2<<20)+"{")))
	exactly := `{"nonsense":"` + strings.Repeat("x", 64<<10-15) + `"}`
	w.Want(w.Worker("PUT", "leases/a7", raw(exactly)), 400)
	w.Want(w.Worker("POST", object("1.1", "o1")+"/seal", raw(large+"}")), 404) // it is read, and there is no such object
}

func otherMediaType(w *Walk) {
	for _, header := range [][2]string{
		{"Content-Type", ""}, {"Content-Type", "text/json"}, {"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Encoding", "gzip"},
	} {
		w.See(w.Worker("PUT", "leases/a7", longLease(), header[0], header[1]))
	}
}
