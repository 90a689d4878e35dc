package contract

import (
	"net/http"
	"strings"
)

func resolveCases() []Case {
	const table = "Resolve"
	return []Case{
		{Table: table, Row: `200 {"report","version","object"`, Steps: resolveVisible},
		{Table: table, Row: "304, ETag | If-None-Match", Steps: resolveKnown},
		{Table: table, Row: `200 {"version"} | wait_ms`, Steps: resolveChange},
		{Table: table, Row: "304, ETag | wait_ms", Steps: resolveNoChange},
		{Table: table, Row: `200 {"version","download"`, Steps: resolvePresigned},
		{Table: table, Row: "404 report_not_found", Steps: resolveNoReport},
		{Table: table, Row: "404 not_published", Steps: resolveUnpublished},
		{Table: table, Row: "410 withdrawn", Steps: resolveWithdrawn},
		{Table: table, Row: "400 invalid_request", Steps: resolveLongWait},
	}
}

func resolveVisible(w *Walk) {
	fence := w.published("hello")
	got := w.See(w.Reader("GET", "", nil))
	w.Check(got.Header.Get("ETag") == `"1-`+fence+`"`, "ETag %s", got.Header.Get("ETag"))
	receipt, _ := got.Raw("object")
	for _, name := range []string{"object_id", "fence", "key", "size", "sha256", "content_type"} {
		_, there := Answer{Body: []byte(receipt)}.Raw(name)
		w.Check(there, "the object has no %s", name)
	}
}

// tag is the present ETag of the report.
func (w *Walk) tag() string { return w.Reader("GET", "", nil).Header.Get("ETag") }

func resolveKnown(w *Walk) {
	w.published("hello")
	for _, known := range []string{w.tag(), `"0-1.1", ` + w.tag(), "*"} {
		w.See(w.Reader("GET", "", nil, "If-None-Match", known))
	}
	w.Want(w.Reader("GET", "", nil, "If-None-Match", `"0-1.1"`), 200)
}

func resolveChange(w *Walk) {
	fence := w.published("hello")
	known := w.tag()
	answered := make(chan Answer, 1)
	go func() {
		defer close(answered)
		answered <- w.Reader("GET", "?wait_ms=30000", nil, "If-None-Match", known)
	}()
	w.stage(fence, "o2", "again")
	w.Want(w.publish("k2", body{"fence": fence, "object_id": "o2", "expected_version": 1}), 201)
	got := w.See(<-answered)
	w.Check(got.Int("version") == 2, "version %d", got.Int("version"))
	w.See(w.Reader("GET", "?wait_ms=30000", nil, "If-None-Match", known)) // it has changed already
}

func resolveNoChange(w *Walk) {
	w.published("hello")
	w.See(w.Reader("GET", "?wait_ms=50", nil, "If-None-Match", w.tag()))
}

func resolvePresigned(w *Walk) {
	w.published("hello")
	got := w.See(w.Reader("GET", "?presign=true", nil, "If-None-Match", w.tag()))
	w.Check(got.Header.Get("Cache-Control") == "no-store", "Cache-Control %q", got.Header.Get("Cache-Control"))
	text, _ := got.Raw("download")
	download := Answer{Body: []byte(text)}
	request, err := w.request(http.MethodGet, download.Text("url"), nil)
	w.Must(err)
	response, err := w.client.Do(request)
	w.Must(err)
	defer response.Body.Close()
	w.Check(response.StatusCode == 200 && response.Header.Get("ETag") == download.Text("etag"), "the download: %d, ETag %s", response.StatusCode, response.Header.Get("ETag"))
}

func resolveNoReport(w *Walk) { w.See(w.Reader("GET", "", nil)) }

func resolveUnpublished(w *Walk) {
	fence := w.grant("a7")
	w.See(w.Reader("GET", "", nil))
	w.See(w.Reader("GET", "?wait_ms=50", nil))
	answered := make(chan Answer, 1)
	go func() {
		defer close(answered)
		answered <- w.Reader("GET", "?wait_ms=30000", nil)
	}()
	w.stage(fence, "o1", "hello")
	w.Want(w.publish("k1", body{"fence": fence, "object_id": "o1"}), 201)
	w.Want(<-answered, 200)
}

func resolveWithdrawn(w *Walk) {
	fence := w.withdrawn()
	got := w.See(w.Reader("GET", "", nil))
	w.Check(got.Header.Get("ETag") == `"1-`+fence+`"` && got.Int("version") == 1, "ETag %s, version %d", got.Header.Get("ETag"), got.Int("version"))
	w.See(w.Reader("GET", "?wait_ms=50", nil, "If-None-Match", got.Header.Get("ETag")))
}

func resolveLongWait(w *Walk) {
	w.published("hello")
	w.See(w.Reader("GET", "?wait_ms=60001", nil))
	w.See(w.Reader("GET", "?wait_ms=-1", nil))
}

func reportCases() []Case {
	const table = "Reports"
	return []Case{
		{Table: table, Row: `200 {"items"}`, Steps: reportsOfPrefix},
		{Table: table, Row: "400 invalid_request", Steps: reportsOfNoPrefix},
	}
}

func reportsOfPrefix(w *Walk) {
	w.superseded()
	for _, id := range []string{w.report + ".b", w.report + ".a"} {
		fence := w.Want(w.Worker("PUT", w.below(id, "leases/a7"), longLease()), 201).Text("fence")
		w.Want(w.Worker("POST", w.below(id, "publications"), body{"fence": fence, "withdraw": true}, "Idempotency-Key", "k1"), 201)
	}
	var got []string
	for _, item := range w.See(w.Reader("GET", "/v1/reports?prefix="+w.report, nil)).Items() {
		version, _ := item.Raw("version")
		got = append(got, item.Text("report")+" "+version)
	}
	want := w.report + " 2, " + w.report + ".a 1, " + w.report + ".b 1"
	w.Check(strings.Join(got, ", ") == want, "the reports are %v, not %s", got, want)
}

func reportsOfNoPrefix(w *Walk) {
	for _, prefix := range []string{"-", "a%2Fb", "%25"} {
		w.See(w.Reader("GET", "/v1/reports?prefix="+prefix, nil))
	}
}
