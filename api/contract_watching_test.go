package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

func TestAReaderIsAnsweredAsSoonAsTheReportChanges(t *testing.T) {
	t.Parallel()
	w := begin(t)
	wait := func(headers ...string) <-chan testservice.Answer {
		t.Helper()
		before := w.Catalog.Watching()
		answer := w.later(t, "GET", july+"?wait_ms=60000", nil, headers...)
		until(t, before+1, w.Catalog.Watching)
		return answer
	}
	// From an unknown report, and from one that was never published.
	unknown := wait()
	fence := w.grant(t, "july", "a7")
	unpublished, tagged := wait(), wait("If-None-Match", `"7-1.1"`)
	w.stage(t, "july", fence, "o", "hello", nil)
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Want(t, 201)
	for _, answer := range []<-chan testservice.Answer{unknown, unpublished, tagged} {
		got := (<-answer).Want(t, 200)
		equal(t, got, doc{"version": 1})
		if etag := got.Header.Get("ETag"); etag != `"1-1.1"` {
			t.Errorf("ETag %q", etag)
		}
	}
	// From a version, to its withdrawal, and to the next version.
	known, weak := wait("If-None-Match", `"1-1.1"`), wait("If-None-Match", `"x", W/"1-1.1"`)
	w.withdraw(t, "july", fence, "w", 1).Want(t, 201)
	for _, answer := range []<-chan testservice.Answer{known, weak} {
		got := (<-answer).Refused(t, 410, "withdrawn")
		equal(t, got, doc{"version": 2})
		if etag := got.Header.Get("ETag"); etag != `"2-1.1"` {
			t.Errorf("ETag %q", etag)
		}
	}
	withdrawn, untagged := wait("If-None-Match", `"2-1.1"`), wait()
	w.publish(t, "july", "back", doc{"fence": fence, "from_version": 1, "expected_version": 2}).Want(t, 201)
	for _, answer := range []<-chan testservice.Answer{withdrawn, untagged} {
		equal(t, (<-answer).Want(t, 200), doc{"version": 3})
	}
	until(t, 0, w.Catalog.Watching)
}

func TestAReaderThatHasWaitedInVainGetsWhatItWouldHaveGotAtOnce(t *testing.T) {
	t.Parallel()
	w := begin(t)
	const wait = 50 * time.Millisecond
	ask := func(path string, headers ...string) testservice.Answer {
		t.Helper()
		began := time.Now()
		got := w.get(t, path+fmt.Sprintf("?wait_ms=%d", wait.Milliseconds()), headers...)
		if took := time.Since(began); took < wait {
			t.Errorf("%s was answered after %v", path, took)
		}
		return got
	}
	ask("/v1/reports/never").Refused(t, 404, "report_not_found")
	w.grant(t, "august", "a7")
	ask("/v1/reports/august").Refused(t, 404, "not_published")
	w.withdraw(t, "august", "1.1", "w").Want(t, 201)
	for _, headers := range [][]string{nil, {"If-None-Match", `"1-1.1"`}} {
		got := ask("/v1/reports/august", headers...).Refused(t, 410, "withdrawn")
		equal(t, got, doc{"version": 1})
		if etag := got.Header.Get("ETag"); etag != `"1-1.1"` {
			t.Errorf("ETag %q", etag)
		}
	}
	w.published(t, "july", "hello", nil)
	for _, tags := range []string{`"1-1.1"`, `W/"1-1.1"`, `"x", "1-1.1"`, "*"} {
		got := ask(july, "If-None-Match", tags).Want(t, 304)
		if got.Header.Get("ETag") != `"1-1.1"` || len(got.Body) > 0 {
			t.Errorf("304: %v %q", got.Header, got.Body)
		}
	}
	w.DoAs(t, w.Reader, "HEAD", july+"?wait_ms=50", nil, "If-None-Match", `"1-1.1"`).Want(t, 304)
}

func TestAReaderThatHasNothingToWaitForIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "hello", nil)
	began := time.Now()
	for _, query := range []string{"?wait_ms=60000", "?wait_ms=60000&presign=true", "?wait_ms=0", "?wait_ms=0&presign=false"} {
		w.get(t, july+query).Want(t, 200)
	}
	w.get(t, july+"?wait_ms=60000", "If-None-Match", `"0-1.1"`).Want(t, 200)
	presigned := w.get(t, july+"?wait_ms=60000&presign=true", "If-None-Match", `"1-1.1"`).Want(t, 200)
	if presigned.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("presigned: %v", presigned.Header)
	}
	w.withdraw(t, "july", "1.1", "w", 1).Want(t, 201)
	w.get(t, july+"?wait_ms=60000", "If-None-Match", `"1-1.1"`).Refused(t, 410, "withdrawn")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("they were answered after %v", took)
	}
	for _, bad := range []string{"60001", "-1", "x", "0.0", "1e3", "99999999999999999999", "%201"} {
		equal(t, w.get(t, july+"?wait_ms="+bad).Refused(t, 400, "invalid_request"), doc{"field": "wait_ms"})
	}
}

func TestAReaderSeesWhatAnotherInstancePublishes(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	here := beginOn(t, db)
	there := beginOn(t, db, func(c *service.Config) { c.Bucket = here.Storage.Config })
	fence := here.grant(t, "july", "a7")
	here.withdraw(t, "july", fence, "w1").Want(t, 201)
	answer := there.later(t, "GET", july+"?wait_ms=60000", nil, "If-None-Match", `"1-1.1"`)
	until(t, 1, there.Catalog.Watching)
	began := time.Now()
	here.withdraw(t, "july", fence, "w2", 1).Want(t, 201)
	equal(t, (<-answer).Refused(t, 410, "withdrawn"), doc{"version": 2})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it was seen after %v", took)
	}
}

func TestAReaderThatGoesAwayLeavesNothing(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "hello", nil)
	w.leave(t, "GET", july+"?wait_ms=60000", nil, w.Catalog.Watching, "If-None-Match", `"1-1.1"`)
	w.leave(t, "GET", "/v1/reports/never?wait_ms=60000", nil, w.Catalog.Watching)
}
