package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/testservice"
)

// version is the path of one version of July, with what is behind it.
func version(n int, more string) string { return fmt.Sprintf("%s/publications/%d%s", july, n, more) }

// erase asks for a version of July to be erased.
func (w *world) erase(t *testing.T, n int) testservice.Answer {
	t.Helper()
	return w.Do(t, "POST", version(n, "/erase"), doc{"reason": "it named a customer"})
}

func TestAHeldVersionIsKeptUntilTheHoldIsLifted(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 3)
	for range 2 { // repeated
		got := w.Do(t, "PUT", version(1, "/hold"), nil).Want(t, 200)
		members(t, got, "result", "report", "version")
		equal(t, got, doc{"result": "held", "report": "july", "version": 1})
	}
	w.kept(t, "july", fence, "held", "within_retention", "visible")
	first := w.get(t, version(1, "")).Want(t, 200)
	members(t, first, "report", "version", "object", "fence", "published_at", "metadata", "visible", "idempotency_key", "held_at")
	since := first.String(t, "held_at")

	w.pass(t, 15*day)
	w.readable(t, "july", true, false, true)
	w.Do(t, "PUT", version(1, "/hold"), raw("{}")).Want(t, 200)
	equal(t, w.get(t, version(1, "")).Want(t, 200), doc{"held_at": since}) // since the first time
	if items := w.pages(t, w.Reader, july+"/publications", 1); items[2]["held_at"] != since || items[1]["held_at"] != nil {
		t.Errorf("the history does not tell what is held: %v", items)
	}

	for range 2 {
		equal(t, w.Do(t, "DELETE", version(1, "/hold"), nil).Want(t, 200), doc{"result": "not_held", "report": "july", "version": 1})
	}
	if got := w.get(t, version(1, "")).Want(t, 200); got.JSON(t)["held_at"] != nil {
		t.Errorf("not held: %s", got.Body)
	}
	w.kept(t, "july", fence, "within_retention", nil, "visible") // which begins with the end of the hold
	w.pass(t, 10*day)
	w.readable(t, "july", true, false, true)
	w.pass(t, 5*day)
	w.readable(t, "july", false, false, true)
	w.Do(t, "PUT", version(1, "/hold"), nil).Refused(t, 410, "object_gone")
	w.Do(t, "DELETE", version(1, "/hold"), nil).Want(t, 200)
}

func TestTheVisibleVersionMayBeHeldAndIsKeptAfterIt(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 1)
	w.Do(t, "PUT", version(1, "/hold"), nil).Want(t, 200)
	w.kept(t, "july", fence, "visible")
	w.withdraw(t, "july", fence, "w", 1).Want(t, 201)
	w.kept(t, "july", fence, "held")
	w.pass(t, 30*day)
	w.readable(t, "july", true)

	// A version that shows the same object again: each hold is its own.
	fence = w.grant(t, "july", "b9")
	w.publish(t, "july", "back", doc{"fence": fence, "from_version": 1}).Want(t, 201)
	w.Do(t, "PUT", version(3, "/hold"), nil).Want(t, 200)
	w.Do(t, "DELETE", version(1, "/hold"), nil).Want(t, 200)
	w.withdraw(t, "july", fence, "w2", 3).Want(t, 201)
	w.kept(t, "july", "1.1", "held")
}

func TestWhatCannotBeHeldOrErasedSaysWhy(t *testing.T) {
	t.Parallel()
	w := begin(t)
	type act struct {
		method, path string
		body         any
	}
	acts := func(report string, n any) []act {
		path := fmt.Sprintf("/v1/reports/%s/publications/%v", report, n)
		return []act{
			{"PUT", path + "/hold", nil},
			{"DELETE", path + "/hold", nil},
			{"POST", path + "/erase", doc{"reason": "x"}},
		}
	}
	w.withdraw(t, "july", w.grant(t, "july", "a7"), "w").Want(t, 201)
	for _, c := range []struct {
		report, code string
		version      any
	}{{"never", "report_not_found", 1}, {"july", "version_not_found", 2}, {"july", "object_not_found", 1}} {
		for _, a := range acts(c.report, c.version) {
			equal(t, w.Do(t, a.method, a.path, a.body).Refused(t, 404, c.code), doc{"outcome": "not_applied"})
			w.DoAs(t, w.Worker, a.method, a.path, a.body).Refused(t, 403, "forbidden")
		}
	}
	for _, bad := range []any{0, -1, "x", "9223372036854775808"} {
		for _, a := range acts("july", bad) {
			equal(t, w.Do(t, a.method, a.path, a.body).Refused(t, 400, "invalid_request"), doc{"field": "version"})
		}
	}
	for _, reason := range []any{nil, "", strings.Repeat("x", 1001), 7} {
		equal(t, w.Do(t, "POST", version(1, "/erase"), doc{"reason": reason}).Refused(t, 400, "invalid_request"), doc{"field": "reason"})
	}
	equal(t, w.Do(t, "POST", version(1, "/erase"), nil).Refused(t, 415, "unsupported_media_type"), doc{"outcome": "not_applied"})
}

func TestAnErasedVersionIsGoneAndItsReceiptStays(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 2)
	w.publish(t, "july", "back", doc{"fence": fence, "from_version": 1, "expected_version": 2}).Want(t, 201)
	w.withdraw(t, "july", fence, "w", 3).Want(t, 201)
	receipt := w.get(t, version(1, "")).Want(t, 200)

	var since string
	for range 2 { // repeated
		got := w.erase(t, 1).Want(t, 200)
		members(t, got, "result", "report", "version")
		equal(t, got, doc{"result": "erased", "report": "july", "version": 1})
		again := w.get(t, version(1, "")).Want(t, 200)
		if at := again.String(t, "erased_at"); at == "" || since != "" && at != since {
			t.Errorf("erased at %q, then at %q", since, at)
		} else {
			since = at
		}
		w.DB.Advance(t, time.Second)
	}
	equal(t, w.erase(t, 3).Want(t, 200), doc{"version": 3}) // it shows the same object
	for _, n := range []int{1, 3} {
		w.get(t, version(n, "/content")).Refused(t, 410, "erased")
		w.get(t, version(n, "/content"), "If-None-Match", "*").Refused(t, 410, "erased")
		w.get(t, version(n, "/content"), "Range", "bytes=0-0").Refused(t, 410, "erased")
		w.DoAs(t, w.Reader, "HEAD", version(n, "/content"), nil).Want(t, 410)
		got := w.get(t, version(n, "")).Want(t, 200)
		equal(t, got, doc{"object": receipt.JSON(t)["object"], "erased_at": since})
		w.Do(t, "PUT", version(n, "/hold"), nil).Refused(t, 410, "object_gone")
		equal(t, w.publish(t, "july", "again", doc{"fence": fence, "from_version": n, "expected_version": 4}).Refused(t, 410, "object_gone"),
			doc{"outcome": "not_applied"})
	}
	equal(t, w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "v1"), nil).Want(t, 200),
		doc{"state": "condemned", "condemned_because": "erased", "kept_because": nil})
	if got := w.get(t, version(2, "/content")).Want(t, 200); string(got.Body) != "v2" {
		t.Errorf("another version went with it: %q", got.Body)
	}

	w.pass(t, 25*time.Hour) // the bytes go, and that is what is said of it still
	if keys := w.Storage.Keys(t); slices.Contains(keys, "reports/july/1.1/v1") {
		t.Errorf("the bytes are still there: %q", keys)
	}
	w.get(t, version(1, "/content")).Refused(t, 410, "erased")
	w.erase(t, 1).Want(t, 200)
	equal(t, w.publish(t, "july", "v1", doc{"fence": fence, "object_id": "v1", "expected_version": 0}).Want(t, 200),
		doc{"result": "duplicate", "object": receipt.JSON(t)["object"]})
}

func TestWhatIsVisibleOrHeldIsNotErased(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 2)
	equal(t, w.erase(t, 2).Refused(t, 409, "object_in_use"), doc{"outcome": "not_applied"})

	w.publish(t, "july", "back", doc{"fence": fence, "from_version": 1, "expected_version": 2}).Want(t, 201)
	w.erase(t, 1).Refused(t, 409, "object_in_use") // version 3 shows the same object
	w.withdraw(t, "july", fence, "w", 3).Want(t, 201)
	w.Do(t, "PUT", version(3, "/hold"), nil).Want(t, 200)
	w.erase(t, 1).Refused(t, 409, "object_in_use")
	w.readable(t, "july", true, true)
	w.Do(t, "DELETE", version(3, "/hold"), nil).Want(t, 200)

	w.set(t, "july", doc{"keep_versions": 5})
	w.kept(t, "july", fence, "kept_version", "kept_version")
	w.erase(t, 1).Want(t, 200) // what is only kept may go
	w.get(t, version(1, "/content")).Refused(t, 410, "erased")
}

func TestWhatWasCollectedIsNotErasedAnyMore(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.history(t, "july", 2)
	w.pass(t, 15*day)
	equal(t, w.erase(t, 1).Refused(t, 410, "object_gone"), doc{"outcome": "not_applied"})
	w.get(t, version(1, "/content")).Refused(t, 410, "object_gone")
}

func TestARollBackAndTheErasureOfItsVersionExcludeEachOther(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 2)
	letGo := w.DB.HoldReport(t, "july")
	erased, published := make(chan testservice.Answer, 1), make(chan testservice.Answer, 1)
	go func() { erased <- w.erase(t, 1) }()
	w.DB.AwaitWaiting(t, 1)
	go func() {
		published <- w.publish(t, "july", "back", doc{"fence": fence, "from_version": 1, "expected_version": 2})
	}()
	w.DB.AwaitWaiting(t, 2)
	letGo()
	first, second := <-erased, <-published
	switch {
	case first.Status == 200:
		second.Refused(t, 410, "object_gone")
		w.get(t, version(1, "/content")).Refused(t, 410, "erased")
	default:
		first.Refused(t, 409, "object_in_use")
		second.Want(t, 201)
		w.get(t, july+"/content").Want(t, 200)
	}
}
