package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testservice"
)

func TestAPublishIsAppliedOnceAndRepeatedWithItsReceipt(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "july.csv", "hello", doc{"content_type": "text/csv", "filename": "july.csv"})
	asked := doc{"fence": fence, "object_id": "july.csv", "metadata": doc{"rows": "8113"}}

	first := w.publish(t, "july", "k1", asked).Want(t, 201)
	members(t, first, "result", "report", "version", "object", "fence", "published_at")
	receipt := doc{
		"object_id": "july.csv", "fence": "1.1", "key": "reports/july/1.1/july.csv", "size": 5,
		"sha256": hexDigest("hello"), "content_type": "text/csv", "filename": "july.csv",
	}
	equal(t, first, doc{"result": "applied", "report": "july", "version": 1, "fence": "1.1", "object": receipt})

	repeated := func(visible bool) {
		t.Helper()
		again := w.publish(t, "july", "k1", asked).Want(t, 200)
		want := first.JSON(t)
		want["result"], want["visible"] = "duplicate", visible
		if diff := cmp.Diff(want, again.JSON(t)); diff != "" {
			t.Errorf("a repeat gets another receipt (-first +again):\n%s", diff)
		}
	}
	repeated(true)
	second := w.overtake(t, "july", "b9")
	w.publish(t, "july", "k2", doc{"fence": second, "withdraw": true}).Want(t, 201)
	repeated(false) // although its fence is stale by now
}

func TestEachCheckOfAPublishComesBeforeTheNextOne(t *testing.T) {
	t.Parallel()
	w := begin(t)
	checks := []struct {
		code   string
		status int
		meet   func(p *attempt) // makes the attempt meet this check, and leaves the others as they are
	}{
		{"missing_fence", 400, func(p *attempt) { delete(p.body, "fence") }},
		{"invalid_fence", 400, func(p *attempt) { p.body["fence"] = "01.1" }},
		{"report_not_found", 404, func(p *attempt) { p.report = "never" }},
		{"idempotency_key_reused", 422, func(p *attempt) { p.key = "used" }},
		{"stale_fence", 409, func(p *attempt) { p.body["fence"] = p.stale }},
		{"fence_not_granted", 409, func(p *attempt) { p.body["fence"] = "1.99" }},
		{"lease_not_live", 409, func(p *attempt) { p.settings["fencing"] = "live" }},
		{"grant_already_used", 409, func(p *attempt) { p.settings["publishes_per_grant"] = "one"; p.used(w, t) }},
		{"expected_version_required", 428, func(p *attempt) { p.used(w, t); delete(p.body, "expected_version") }},
		{"version_conflict", 412, func(p *attempt) {
			if _, set := p.body["expected_version"]; set {
				p.body["expected_version"] = 99
			}
		}},
		{"object_not_found", 404, func(p *attempt) { p.body["object_id"] = "never" }},
	}
	for i, check := range checks {
		p := w.attempt(t, "alone-"+check.code)
		check.meet(p)
		w.try(t, p).Refused(t, check.status, check.code)
		if i+1 == len(checks) {
			continue
		}
		next := checks[i+1]
		both := w.attempt(t, "both-"+check.code)
		next.meet(both)
		check.meet(both)
		if check.code == "expected_version_required" {
			// Without an expected version none can conflict; that it is demanded before the object is
			// looked at is what can be seen.
			both.body["object_id"] = "never"
		}
		if check.code == "stale_fence" {
			// One fence cannot be below and above: the bar is looked at first where a revoked fence is
			// the highest of all.
			both.body["fence"] = both.stale
		}
		got := w.try(t, both)
		if got.Refused(t, check.status, check.code); got.String(t, "outcome") != "not_applied" {
			t.Errorf("%s before %s: %s", check.code, next.code, got.Body)
		}
	}
}

// attempt is a publish that would succeed, and the report that it is for.
type attempt struct {
	report, key string
	stale       string
	body        doc
	settings    map[string]string
	usedAlready bool
}

// attempt prepares a report with one withdrawn version (of the key "used"), a stale and an expired fence, and
// an object that could be published.
func (w *world) attempt(t *testing.T, report string) *attempt {
	t.Helper()
	report = strings.ReplaceAll(report, "_", "-")
	stale := w.grant(t, report, "a7")
	w.publish(t, report, "used", doc{"fence": stale, "withdraw": true}).Want(t, 201)
	fence := w.overtake(t, report, "b9")
	w.stage(t, report, fence, "o", "hello", nil)
	w.DB.Advance(t, 31*time.Second)
	return &attempt{
		report: report, key: "new", stale: stale, settings: map[string]string{},
		body: doc{"fence": fence, "object_id": "o", "expected_version": 1},
	}
}

// used lets the fence have published before.
func (p *attempt) used(w *world, t *testing.T) {
	t.Helper()
	if p.usedAlready || p.report == "never" {
		return
	}
	p.usedAlready = true
	fence := p.body["fence"]
	if fence == p.stale || fence == nil {
		return
	}
	w.publish(t, p.report, "before", doc{"fence": fence, "withdraw": true}).Want(t, 201)
	if _, set := p.body["expected_version"]; set {
		p.body["expected_version"] = 2
	}
}

func (w *world) try(t *testing.T, p *attempt) testservice.Answer {
	t.Helper()
	for column, value := range p.settings {
		w.DB.Exec(t, "UPDATE report SET "+column+" = $1 WHERE report_id = $2", value, p.report)
	}
	return w.publish(t, p.report, p.key, p.body)
}

func TestADuplicateIsToldBeforeEverythingElse(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	w.DB.Exec(t, "UPDATE report SET fencing = 'live', publishes_per_grant = 'one'")
	w.overtake(t, "july", "b9")
	w.Do(t, "POST", july+"/lease/revoke", doc{"reason": "all"}).Want(t, 200)
	w.closeEpoch(t)
	w.Storage.Delete(t, "reports/july/1.1/july.csv")
	equal(t, w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "july.csv"}).Want(t, 200), doc{"result": "duplicate", "visible": true})
}

func TestARefusedPublishSaysWhatItMet(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.published(t, "july", "hello", nil)
	equal(t, w.publish(t, "july", "x", doc{"fence": fence, "withdraw": true, "expected_version": 0}).Refused(t, 412, "version_conflict"),
		doc{"expected": 0, "actual": 1})
	equal(t, w.publish(t, "july", "x", doc{"fence": fence, "withdraw": true, "expected_version": int64(1)<<53 + 1}).Refused(t, 412, "version_conflict"),
		doc{"expected": int64(1)<<53 + 1, "actual": 1})
	equal(t, w.publish(t, "july", "x", doc{"fence": "1.9", "withdraw": true}).Refused(t, 409, "fence_not_granted"),
		doc{"presented": "1.9", "granted": "1.1"})
	w.overtake(t, "july", "b9")
	equal(t, w.publish(t, "july", "x", doc{"fence": fence, "withdraw": true}).Refused(t, 409, "stale_fence"),
		doc{"presented": "1.1", "highest": "1.2", "reason": "superseded"})
	w.closeEpoch(t)
	equal(t, w.publish(t, "july", "x", doc{"fence": "1.2", "withdraw": true}).Refused(t, 409, "stale_fence"),
		doc{"presented": "1.2", "highest": "1.2", "reason": "epoch_closed"})
}

func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Refused(t, 404, "object_not_found")
	w.publish(t, "july", "k1", doc{"fence": fence, "withdraw": true}).Want(t, 201)
}

func TestAnObjectThatCannotBeShownIsRefused(t *testing.T) {
	t.Parallel()
	w := begin(t)
	first := w.published(t, "july", "hello", nil)
	fence := w.overtake(t, "july", "b9")
	ask := func(object string) testservice.Answer {
		return w.publish(t, "july", "x", doc{"fence": fence, "object_id": object})
	}
	ask("july.csv").Refused(t, 404, "object_not_found") // of another grant
	w.publish(t, "july", "x", doc{"fence": fence, "from_version": 7}).Refused(t, 404, "version_not_found")

	w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "late"), nil).Want(t, 201)
	ask("late").Refused(t, 409, "object_incomplete")

	reserved := w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, "other"), doc{"size": 7}).Want(t, 201)
	w.Storage.Put(t, reserved.String(t, "key"), "hello")
	equal(t, ask("other").Refused(t, 422, "object_mismatch"), doc{"expected": doc{"size": 7}, "outcome": "not_applied"})

	w.stage(t, "july", fence, "gone", "hello", nil)
	w.DoAs(t, w.Worker, "DELETE", objectPath("july", fence, "gone"), nil).Want(t, 200)
	ask("gone").Refused(t, 410, "object_gone")

	w.publish(t, "july", "w", doc{"fence": fence, "withdraw": true}).Want(t, 201)
	w.publish(t, "july", "x", doc{"fence": fence, "from_version": 2, "expected_version": 2}).Refused(t, 404, "object_not_found")
	equal(t, w.publish(t, "july", "back", doc{"fence": fence, "from_version": 1, "expected_version": 2}).Want(t, 201),
		doc{"version": 3, "fence": fence})
	got := w.get(t, july).Want(t, 200)
	object, _ := got.JSON(t)["object"].(doc)
	if object["fence"] != first || object["key"] != "reports/july/1.1/july.csv" {
		t.Errorf("rolled back to %v", object)
	}
	equal(t, w.publish(t, "july", "same", doc{"fence": fence, "from_version": 3, "expected_version": 3}).Want(t, 201), doc{"version": 4})
}

func TestAPublishSaysExactlyOneOfThree(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "o", "hello", nil)
	for name, c := range map[string]struct{ field, body string }{
		"none":                 {"object_id", `{"fence":"1.1"}`},
		"false":                {"object_id", `{"fence":"1.1","withdraw":false}`},
		"nulls":                {"object_id", `{"fence":"1.1","withdraw":null,"object_id":null,"from_version":null}`},
		"object and version":   {"object_id", `{"fence":"1.1","object_id":"o","from_version":1}`},
		"object and none":      {"object_id", `{"fence":"1.1","object_id":"o","withdraw":true}`},
		"version and none":     {"object_id", `{"fence":"1.1","from_version":1,"withdraw":true}`},
		"all":                  {"object_id", `{"fence":"1.1","object_id":"o","from_version":1,"withdraw":true}`},
		"version 0":            {"from_version", `{"fence":"1.1","from_version":0}`},
		"version 2^63":         {"from_version", `{"fence":"1.1","from_version":9223372036854775808}`},
		"no id":                {"object_id", `{"fence":"1.1","object_id":""}`},
		"a path":               {"object_id", `{"fence":"1.1","object_id":"a/b"}`},
		"a word":               {"withdraw", `{"fence":"1.1","withdraw":"true"}`},
		"an expected -1":       {"expected_version", `{"fence":"1.1","object_id":"o","expected_version":-1}`},
		"an expected text":     {"expected_version", `{"fence":"1.1","object_id":"o","expected_version":"1"}`},
		"an expected 2^63":     {"expected_version", `{"fence":"1.1","object_id":"o","expected_version":9223372036854775808}`},
		"a half expected":      {"expected_version", `{"fence":"1.1","object_id":"o","expected_version":0.5}`},
		"unknown":              {"object", `{"fence":"1.1","object":"o"}`},
		"twice":                {"object_id", `{"fence":"1.1","object_id":"o","object_id":"o"}`},
		"a number as fence":    {"fence", `{"fence":1.1,"object_id":"o"}`},
		"metadata of numbers":  {"metadata.rows", `{"fence":"1.1","object_id":"o","metadata":{"rows":8113}}`},
		"metadata of nulls":    {"metadata.rows", `{"fence":"1.1","object_id":"o","metadata":{"rows":[]}}`},
		"metadata with a NUL":  {"metadata.rows", `{"fence":"1.1","object_id":"o","metadata":{"rows":"\u0000"}}`},
		"metadata named NUL":   {"metadata.�", `{"fence":"1.1","object_id":"o","metadata":{"\u0000":"x"}}`},
		"metadata over 8 KiB":  {"metadata", `{"fence":"1.1","object_id":"o","metadata":{"m":"` + strings.Repeat("x", 8192-7) + `"}}`},
		"metadata half a pair": {"metadata.m", `{"fence":"1.1","object_id":"o","metadata":{"m":"\ud800"}}`},
		"a list":               {"body", `[]`},
		"nothing":              {"body", ``},
		"two":                  {"body", `{"fence":"1.1","object_id":"o"}{}`},
	} {
		got := w.publish(t, "july", "k", raw(c.body)).Refused(t, 400, "invalid_request")
		if got.String(t, "field") != c.field {
			t.Errorf("%s: field %q, want %q: %s", name, got.String(t, "field"), c.field, got.Body)
		}
	}
	for _, fence := range append(notFences, "", "1.1 ") {
		w.publish(t, "july", "k", doc{"fence": fence, "object_id": "o"}).Refused(t, 400, "invalid_fence")
	}
	w.publish(t, "july", "k", raw(`{"fence":null,"object_id":"o"}`)).Refused(t, 400, "missing_fence")
	w.publish(t, "july", "k", raw(`{}`)).Refused(t, 400, "missing_fence")

	large := doc{"m": strings.Repeat("<", 8192-8)} // 8 KiB with its name and quotes; nothing in it needs an escape
	w.publish(t, "july", "k", doc{"fence": fence, "object_id": "o", "metadata": large}).Want(t, 201)
	equal(t, w.get(t, july).Want(t, 200), doc{"metadata": large})
}

func TestTwoRequestsAreTheSameIfTheirValuesAre(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.stage(t, "july", fence, "o", "hello", nil)
	w.publish(t, "july", "k1", raw(`{"fence":"1.1","object_id":"o","metadata":{"a":"1","b":"é"}}`)).Want(t, 201)
	for _, same := range []string{
		`{"metadata":{"b":"\u00e9","a":"1"},  "object_id":"o","fence":"1.1"}`,
		`{"fence":"1.1","object_id":"\u006f","metadata":{"a":"1","b":"é"},"from_version":null,"withdraw":null,"expected_version":null}`,
		`{"fence":"1.1","object_id":"o","metadata":{"a":"1","b":"é"},"withdraw":false}`,
	} {
		w.publish(t, "july", "k1", raw(same)).Want(t, 200)
	}
	for _, other := range []string{
		`{"fence":"1.1","object_id":"p","metadata":{"a":"1","b":"é"}}`,
		`{"fence":"1.1","object_id":"o","metadata":{"a":"1"}}`,
		`{"fence":"1.1","object_id":"o"}`,
		`{"fence":"1.1","object_id":"o","metadata":{"a":"1","b":"é"},"expected_version":0}`,
		`{"fence":"1.2","object_id":"o","metadata":{"a":"1","b":"é"}}`,
		`{"fence":"1.1","withdraw":true,"metadata":{"a":"1","b":"é"}}`,
		`{"fence":"1.1","from_version":1,"metadata":{"a":"1","b":"é"}}`,
	} {
		w.publish(t, "july", "k1", raw(other)).Refused(t, 422, "idempotency_key_reused")
	}
	w.grant(t, "august", "a7")
	w.publish(t, "august", "k1", doc{"fence": "1.1", "withdraw": true}).Want(t, 201) // a key belongs to its report
}

func TestAnIdempotencyKeyIsPrintableAndSentOnce(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	body := doc{"fence": fence, "withdraw": true}
	for _, none := range []string{"", `""`} {
		w.publish(t, "july", none, body).Refused(t, 400, "missing_idempotency_key")
	}
	for name, bad := range map[string]string{
		"256": strings.Repeat("k", 256), "umlaut": "schlüssel", "tab": "a\tb", "quoted 256": `"` + strings.Repeat("k", 256) + `"`,
	} {
		equal(t, w.publish(t, "july", bad, body).Refused(t, 400, "invalid_request"), doc{"field": "Idempotency-Key"})
		_ = name
	}
	equal(t, w.publish(t, "july", "k1", body, "Idempotency-Key", "k2").Refused(t, 400, "invalid_request"), doc{"field": "Idempotency-Key"})

	longest := strings.Repeat("~", 255)
	w.publish(t, "july", longest, body).Want(t, 201)
	w.publish(t, "july", `"`+longest+`"`, body).Want(t, 200)
	for version, key := range []string{`a "quoted" word`, `"`, `half"`, "a, b; c=d"} {
		w.publish(t, "july", key, doc{"fence": fence, "withdraw": true, "expected_version": version + 1}).Want(t, 201)
		equal(t, w.get(t, july+"/publications/"+string(rune('2'+version))).Want(t, 200), doc{"idempotency_key": key})
	}
}
