package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
	"github.com/fenceline/fenceline/lease"
)

// until returns when n requests wait, or fails the test.
func until(t *testing.T, n int, waiting func() int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for got := waiting(); got != n; got = waiting() {
		select {
		case <-deadline:
			t.Fatalf("%d requests wait, want %d", got, n)
		case <-tick.C:
		}
	}
}

// waits is the body of a worker that has a minute.
var waits = doc{"holder": "worker-7", "ttl_ms": 30000, "wait_ms": 60000}

// later sends a request and gives its answer when it comes.
func (w *world) later(t *testing.T, method, path string, body any, headers ...string) <-chan testservice.Answer {
	t.Helper()
	answer := make(chan testservice.Answer, 1)
	go func() {
		defer close(answer) // also when the request has failed the test
		answer <- w.Do(t, method, path, body, headers...)
	}()
	return answer
}

// line lets requests wait for the lease of July, one behind the other.
func (w *world) line(t *testing.T, ids ...string) []<-chan testservice.Answer {
	t.Helper()
	var answers []<-chan testservice.Answer
	before := w.Leases.Waiting()
	for i, id := range ids {
		answers = append(answers, w.later(t, "PUT", july+"/leases/"+id, waits))
		until(t, before+i+1, w.Leases.Waiting)
	}
	return answers
}

func (w *world) release(t *testing.T, id string) {
	t.Helper()
	w.DoAs(t, w.Worker, "DELETE", july+"/leases/"+id, nil).Want(t, 200)
}

func TestThoseWhoWaitForALeaseGetItInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	ids := []string{"w1", "w2", "w3", "w4", "w5"}
	answers := w.line(t, ids...)
	inLine := time.Now()
	w.DB.Advance(t, 20*time.Second) // their time to live begins with the grant

	began := time.Now()
	least := began.Sub(inLine).Milliseconds()
	w.release(t, "a7")
	for i, answer := range answers {
		got := (<-answer).Want(t, 201)
		members(t, got, "result", "report", "lease_id", "holder", "fence", "remaining_ms", "waited_ms", "version")
		equal(t, got, doc{"lease_id": ids[i], "fence": fmt.Sprintf("1.%d", i+2), "remaining_ms": 30000, "version": 0})
		if waited := got.Int(t, "waited_ms"); waited < least || waited > 60000 {
			t.Errorf("%s waited %d ms, and for at least %d", ids[i], waited, least)
		}
		equal(t, w.DoAs(t, w.Worker, "GET", july+"/lease", nil).Want(t, 200), doc{"lease_id": ids[i]})
		until(t, len(ids)-i-1, w.Leases.Waiting)
		w.release(t, ids[i])
	}
	// Without being woken, each would have asked again after a second at the soonest.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("five hand-overs took %v", took)
	}
}

func TestAFreeLeaseIsGrantedAtOnceToOneWhoWouldWait(t *testing.T) {
	t.Parallel()
	w := begin(t)
	got := w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", waits).Want(t, 201)
	equal(t, got, doc{"fence": "1.1", "remaining_ms": 30000})
	if waited := got.Int(t, "waited_ms"); waited < 0 || waited > 1000 {
		t.Errorf("it waited %d ms", waited)
	}
}

func TestWhoHasWaitedInVainIsToldWhoHoldsTheLease(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	const wait = 50 * time.Millisecond
	short := doc{"holder": "worker-8", "ttl_ms": 30000, "wait_ms": wait.Milliseconds()}
	began := time.Now()
	alone := w.DoAs(t, w.Worker, "PUT", july+"/leases/b9", short).Refused(t, 409, "busy")
	if took := time.Since(began); took < wait {
		t.Errorf("it was told after %v", took)
	}
	equal(t, alone, doc{"holder": "worker-7", "outcome": "not_applied"})
	if left := alone.Int(t, "retry_after_ms"); left <= 0 || left > 30000 || alone.Header.Get("Retry-After") == "" {
		t.Errorf("retry_after_ms %d, Retry-After %q", left, alone.Header.Get("Retry-After"))
	}

	first := w.line(t, "w1")[0]
	w.DoAs(t, w.Worker, "PUT", july+"/leases/c1", short).Refused(t, 409, "busy") // behind another
	w.DoAs(t, w.Worker, "PUT", july+"/leases/c2", doc{"holder": "w", "ttl_ms": 30000}).Refused(t, 409, "busy")
	until(t, 1, w.Leases.Waiting)
	w.release(t, "a7")
	(<-first).Want(t, 201)
	for _, id := range []string{"b9", "c1", "c2"} { // none of them has got anything
		w.DoAs(t, w.Worker, "GET", july+"/leases/"+id, nil).Refused(t, 404, "lease_not_found")
	}
}

func TestWhatNeedsNoWaitingIsToldThoughOthersWait(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "z0")
	w.overtake(t, "july", "a7")
	answers := w.line(t, "w1", "w2")
	put := func(id string, changed doc) testservice.Answer {
		body := doc{"holder": "worker-7", "ttl_ms": 30000, "wait_ms": 60000}
		maps.Copy(body, changed)
		return w.DoAs(t, w.Worker, "PUT", july+"/leases/"+id, body)
	}
	equal(t, put("a7", nil).Want(t, 200), doc{"replayed": true, "fence": "1.2"})
	put("a7", doc{"holder": "worker-8"}).Refused(t, 422, "lease_id_reused")
	equal(t, put("z0", nil).Refused(t, 410, "lease_lost"), doc{"reason": "superseded"})
	for _, bad := range []any{-1, 60001, "1", 0.5} {
		equal(t, put("b9", doc{"wait_ms": bad}).Refused(t, 400, "invalid_request"), doc{"field": "wait_ms"})
	}
	w.Do(t, "PUT", "/v1/reports/august/leases/a7", waits).Want(t, 201) // another report's
	until(t, 2, w.Leases.Waiting)
	w.release(t, "a7")
	(<-answers[0]).Want(t, 201)
	w.release(t, "w1")
	(<-answers[1]).Want(t, 201)
}

func TestAWaitEndsWithARevocationAnExpiryOrAFreeze(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	answers := w.line(t, "w1", "w2", "w3")
	w.Do(t, "POST", july+"/lease/revoke", doc{"reason": "it hangs"}).Want(t, 200)
	equal(t, (<-answers[0]).Want(t, 201), doc{"lease_id": "w1", "fence": "1.2"})
	until(t, 2, w.Leases.Waiting)

	w.DB.Advance(t, 31*time.Second) // w1 is not heard of any more
	equal(t, (<-answers[1]).Want(t, 201), doc{"lease_id": "w2", "fence": "1.3"})

	w.freeze(t, "july")
	w.release(t, "w2")
	equal(t, (<-answers[2]).Refused(t, 409, "frozen"), doc{"outcome": "not_applied"})
	until(t, 0, w.Leases.Waiting)
}

func TestAReleaseAtOneInstanceWakesWhoWaitsAtAnother(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	here := beginOn(t, db)
	there := beginOn(t, db, func(c *service.Config) { c.Bucket = here.Storage.Config })
	here.grant(t, "july", "h0")
	began := time.Now()
	for i := range 5 {
		answer := there.line(t, fmt.Sprint("t", i))[0]
		here.release(t, fmt.Sprint("h", i))
		(<-answer).Want(t, 201)
		answer = here.line(t, fmt.Sprint("h", i+1))[0]
		there.release(t, fmt.Sprint("t", i))
		(<-answer).Want(t, 201)
	}
	if took := time.Since(began); took > 8*time.Second { // ten times a second at the soonest, by itself
		t.Errorf("ten hand-overs took %v", took)
	}
}

// leave sends a request and hangs up once it waits.
func (w *world) leave(t *testing.T, method, path string, body any, waiting func() int, headers ...string) {
	t.Helper()
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	ended := make(chan error, 1)
	request := w.request(t, w.Operator, method, path, body, headers...).WithContext(ctx)
	go func() {
		response, err := http.DefaultTransport.RoundTrip(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		ended <- err
	}()
	before := waiting()
	until(t, before+1, waiting)
	hangUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it was answered: %v", err)
	}
	until(t, before, waiting)
}

func TestACallerThatGoesAwayLeavesNobodyInTheLine(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	w.leave(t, "PUT", july+"/leases/gone1", waits, w.Leases.Waiting) // the first
	answers := w.line(t, "w1")
	w.leave(t, "PUT", july+"/leases/gone2", waits, w.Leases.Waiting) // one behind it
	answers = append(answers, w.line(t, "w2")...)
	w.release(t, "a7")
	equal(t, (<-answers[0]).Want(t, 201), doc{"lease_id": "w1", "fence": "1.2"})
	w.release(t, "w1")
	equal(t, (<-answers[1]).Want(t, 201), doc{"lease_id": "w2", "fence": "1.3"})
	for _, id := range []string{"gone1", "gone2"} {
		w.DoAs(t, w.Worker, "GET", july+"/leases/"+id, nil).Refused(t, 404, "lease_not_found")
	}
}

func TestTheNumberOfThoseWhoWaitIsLimited(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.Do(t, "PUT", "/v1/reports/full/leases/a7", doc{"holder": "w", "ttl_ms": 3600000}).Want(t, 201)
	w.Do(t, "PUT", "/v1/reports/busy/leases/a7", doc{"holder": "w", "ttl_ms": 3600000}).Want(t, 201)
	w.published(t, "july", "hello", nil)
	ctx, end := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	leave := func() { end(); crowd.Wait() }
	defer leave()

	fill := func(full error, wait func(n int) error) {
		const room = 2000
		refused := make(chan error, room+1)
		for n := range room + 1 {
			crowd.Go(func() { refused <- wait(n) })
		}
		select {
		case err := <-refused:
			if !errors.Is(err, full) {
				t.Fatalf("the last one: %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("all of %d may wait", room+1)
		}
	}
	fill(lease.ErrTooManyWaiting, func(n int) error {
		_, err := w.Leases.Acquire(ctx, lease.Request{
			Report: "full", Lease: fencing.LeaseID(fmt.Sprint("w", n)), Holder: "w", TTL: time.Hour, Wait: time.Hour,
		})
		return err
	})
	fill(catalog.ErrTooManyWatching, func(int) error { return w.Catalog.AwaitChange(ctx, "full", 0) })

	etag := w.get(t, july).Header.Get("ETag")
	got := w.Do(t, "PUT", "/v1/reports/busy/leases/b9", waits).Refused(t, 429, "rate_limited")
	equal(t, got, doc{"outcome": "not_applied"})
	if got.Header.Get("Retry-After") == "" {
		t.Error("a refusal for want of room does not say when to come again")
	}
	w.get(t, july+"?wait_ms=60000", "If-None-Match", etag).Refused(t, 429, "rate_limited")
	w.get(t, july+"?wait_ms=60000").Want(t, 200) // who need not wait is answered
	w.get(t, july+"?wait_ms=60000", "If-None-Match", `"0-1.1"`).Want(t, 200)
	w.get(t, july, "If-None-Match", etag).Want(t, 304)
	w.Do(t, "PUT", "/v1/reports/busy/leases/b9", doc{"holder": "w", "ttl_ms": 1000}).Refused(t, 409, "busy")
	w.Do(t, "PUT", "/v1/reports/free/leases/b9", doc{"holder": "w", "ttl_ms": 1000}).Want(t, 201)
	w.Do(t, "PUT", "/v1/reports/free.too/leases/b9", waits).Want(t, 201) // it need not wait, nor for the answer again
	equal(t, w.Do(t, "PUT", "/v1/reports/free.too/leases/b9", waits).Want(t, 200), doc{"replayed": true})

	leave()
	until(t, 0, w.Leases.Waiting)
	until(t, 0, w.Catalog.Watching)
	w.get(t, july+"?wait_ms=1", "If-None-Match", etag).Want(t, 304)
}

func TestThoseWhoWaitAreLetGoWhenTheServiceShutsDown(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "hello", nil)
	r := serve(t, api.Config{
		Leases: w.Leases, Objects: w.Objects, Catalog: w.Catalog, Collector: w.Collector, Verifier: w.Verifier, Authenticate: w.Keys.Authenticate,
		Log: w.log.logger(),
	})
	stopping := *w.Service
	stopping.URL = r.url
	s := &world{Service: &stopping, client: w.client, log: w.log}

	workers := s.line(t, "b9", "c1") // one that was told that the lease is taken, and one that has asked nothing
	reader := s.later(t, "GET", july+"?wait_ms=60000", nil, "If-None-Match", `"1-1.1"`)
	until(t, 1, w.Catalog.Watching)
	r.stop()
	for _, worker := range workers { // for another instance
		refused := (<-worker).Refused(t, 503, "unavailable")
		equal(t, refused, doc{"outcome": "not_applied"})
		if refused.Header.Get("Retry-After") == "" {
			t.Error("whoever is let go is not told when to come again")
		}
	}
	(<-reader).Want(t, 304)
	if err := <-r.ended; err != nil {
		t.Errorf("serve: %v", err)
	}
	for _, id := range []string{"b9", "c1"} {
		w.DoAs(t, w.Worker, "GET", july+"/leases/"+id, nil).Refused(t, 404, "lease_not_found")
	}
}

func TestAKeyThatIsRevokedWhileItsRequestWaitsGetsNothing(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	worker, reader := w.NewKey(t, api.RoleWorker, "*"), w.NewKey(t, api.RoleReader, "*")
	ask := func(key, method, path string, body any) <-chan testservice.Answer {
		answer := make(chan testservice.Answer, 1)
		go func() {
			defer close(answer)
			answer <- w.DoAs(t, key, method, path, body)
		}()
		return answer
	}
	lease := ask(worker, "PUT", july+"/leases/w1", waits)
	until(t, 1, w.Leases.Waiting)
	change := ask(reader, "GET", july+"?wait_ms=60000", nil)
	until(t, 1, w.Catalog.Watching)
	began := time.Now()
	for _, key := range []string{worker, reader} {
		if _, err := w.OwnerKeys().Revoke(t.Context(), api.KeyID(key)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, 1, func() int { return int(time.Since(began) / (1200 * time.Millisecond)) }) // a shorter wait is as none
	w.release(t, "a7")
	fence := w.grant(t, "july", "b9")
	w.stage(t, "july", fence, "o", "hello", nil)
	w.publish(t, "july", "k1", doc{"fence": fence, "object_id": "o"}).Want(t, 201)
	equal(t, (<-lease).Refused(t, 401, "unauthenticated"), doc{"outcome": "not_applied"})
	(<-change).Refused(t, 401, "unauthenticated")
}
