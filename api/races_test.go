package api_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

func TestAWorkerThatWasPausedBeforeItsPublishCannotUndoItsSuccessor(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	a := s.work(t, "a7")
	barrier, paused := make(chan struct{}), make(chan sent)
	go func() {
		<-barrier // A is stopped here, with all but the publish done
		paused <- s.send("from a", publication(a, "a7"))
	}()

	s.DB.Advance(t, 2*leaseTime)
	b := s.work(t, "b9")
	s.publish(t, "from b", publication(b, "b9")).Want(t, 201)
	s.shows(t, "b9", 1)

	close(barrier)
	wantStale(t, <-paused, a, b, "superseded")
	s.shows(t, "b9", 1)
	wantStale(t, s.send("from a", publication(a, "a7")), a, b, "superseded") // however often it tries
	s.shows(t, "b9", 1)
}

func TestAPublishThatTheNetworkHeldBackCannotUndoItsSuccessor(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	slow, network := s.through(t)
	a := s.work(t, "a7")
	network.Hold("from-a")
	delayed := slow.sending("from-a", publication(a, "a7"))
	network.AwaitHeld(t)

	s.DB.Advance(t, 2*leaseTime)
	b := s.work(t, "b9")
	s.publish(t, "from-b", publication(b, "b9")).Want(t, 201)

	network.LetGo()
	wantStale(t, delayed(), a, b, "superseded")
	s.shows(t, "b9", 1)
}

func TestAPublishIsRefusedAsSoonAsASuccessorIsGrantedThoughItHasPublishedNothing(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	slow, network := s.through(t)
	a := s.work(t, "a7")
	network.Hold("from-a")
	delayed := slow.sending("from-a", publication(a, "a7"))
	network.AwaitHeld(t)
	s.DB.Advance(t, 2*leaseTime)
	b := s.acquire(t, "b9").Want(t, 201).String(t, "fence")
	network.LetGo()
	wantStale(t, delayed(), a, b, "superseded")
	s.DoAs(t, s.Reader, "GET", "/v1/reports/july", nil).Refused(t, 404, "not_published")
}

func TestAPublishThatWaitsAtTheReportsRowIsRefusedIfASuccessorWasGrantedBeforeIt(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	a := s.work(t, "a7")
	s.DB.Advance(t, 2*leaseTime)
	letGo := s.DB.HoldReport(t, "july")
	granted := make(chan testservice.Answer, 1)
	go func() { granted <- s.acquire(t, "b9") }()
	s.DB.AwaitWaiting(t, 1)
	delayed := s.sending("from-a", publication(a, "a7"))
	s.DB.AwaitWaiting(t, 2)
	letGo()
	b := (<-granted).Want(t, 201).String(t, "fence")
	wantStale(t, delayed(), a, b, "superseded")
}

func TestADelayedAcquireOfALeaseThatWasReleasedMeanwhileIsNotGranted(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	slow, network := s.through(t)
	network.Hold("/leases/a7")
	delayed := make(chan testservice.Answer, 1)
	go func() { delayed <- slow.acquire(t, "a7") }()
	network.AwaitHeld(t)
	released := s.DoAs(t, s.Worker, "DELETE", "/v1/reports/july/leases/a7", nil).Want(t, 200)
	wantMembers(t, released, map[string]string{"result": "already_released"})
	network.LetGo()
	wantMembers(t, (<-delayed).Refused(t, 410, "lease_lost"), map[string]string{"reason": "released", "outcome": "not_applied"})
	s.acquire(t, "b9").Want(t, 201)
}

func TestARenewalAndAReleaseThatComeLateLeaveTheSuccessorAlone(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	slow, network := s.through(t)
	s.acquire(t, "a7").Want(t, 201)
	network.Hold("/leases/a7")
	renewed, released := make(chan testservice.Answer, 1), make(chan testservice.Answer, 1)
	go func() { renewed <- slow.DoAs(t, s.Worker, "POST", "/v1/reports/july/leases/a7/renew", nil) }()
	network.AwaitHeld(t)
	s.DB.Advance(t, 2*leaseTime)
	b := s.acquire(t, "b9").Want(t, 201).String(t, "fence")
	network.LetGo()
	go func() { released <- slow.DoAs(t, s.Worker, "DELETE", "/v1/reports/july/leases/a7", nil) }()
	for _, answer := range []testservice.Answer{<-renewed, <-released} {
		wantMembers(t, answer.Refused(t, 410, "lease_lost"), map[string]string{"reason": "superseded"})
	}
	live := s.DoAs(t, s.Worker, "GET", "/v1/reports/july/lease", nil).Want(t, 200)
	wantMembers(t, live, map[string]string{"lease_id": "b9", "fence": b})
}

// The worker sends the publish of object one and then that of object two; the second arrives first.
func TestTwoPublishesOfOneGrantThatTheNetworkReordersNeverMoveThePointerBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second map[string]any
		status        int // of the first, which arrives second
		code          string
	}{
		{"neither expects a version", nil, nil, 428, "expected_version_required"},
		{"both expect the same", map[string]any{"expected_version": 0}, map[string]any{"expected_version": 0}, 412, "version_conflict"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newArena(t)
			slow, network := s.through(t)
			fence := s.acquire(t, "a7").Want(t, 201).String(t, "fence")
			s.stage(t, fence, "one")
			s.stage(t, fence, "two")
			one, two := publication(fence, "one", c.first), publication(fence, "two", c.second)

			network.Hold("first-key")
			first := slow.sending("first-key", one)
			network.AwaitHeld(t)
			s.publish(t, "second-key", two).Want(t, 201)
			network.LetGo()
			got := first()
			if got.err != nil {
				t.Fatal(got.err)
			}
			wantMembers(t, got.Refused(t, c.status, c.code), map[string]string{"outcome": "not_applied"})
			for range 3 { // and both are repeated
				s.publish(t, "first-key", one).Refused(t, c.status, c.code)
				s.publish(t, "second-key", two).Want(t, 200)
			}
			s.shows(t, "two", 1)
			// Told what it follows, the other is a version like any.
			one["expected_version"] = 1
			s.publish(t, "first-key", one).Want(t, 201)
			s.shows(t, "one", 2)
		})
	}
}

func TestManyConcurrentSendsOfOnePublishMakeOneVersion(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	fence := s.work(t, "a7")
	const sends = 32
	answers := make([]sent, sends)
	var all sync.WaitGroup
	for i := range sends {
		all.Go(func() { answers[i] = s.send("the-key", publication(fence, "a7")) })
	}
	all.Wait()
	count := map[int]int{}
	var receipt map[string]any
	for i, a := range answers {
		if a.err != nil {
			t.Fatalf("send %d: %v", i, a.err)
		}
		count[a.Status]++
		got := a.JSON(t)
		delete(got, "result")
		delete(got, "visible")
		if i == 0 {
			receipt = got
		}
		if diff := cmp.Diff(receipt, got); diff != "" {
			t.Errorf("send %d got another receipt (-first +this):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff(map[int]int{201: 1, 200: sends - 1}, count); diff != "" {
		t.Errorf("answers by status (-want +got):\n%s", diff)
	}
	s.shows(t, "a7", 1)
}

func TestOneOfManyConcurrentAcquiresIsGrantedOverHTTP(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	const clients = 40
	answers := make([]testservice.Answer, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { answers[i] = s.acquire(t, fmt.Sprintf("l%d", i)) })
	}
	all.Wait()
	granted := 0
	for _, a := range answers {
		if a.Status == 201 {
			granted++
			continue
		}
		a.Refused(t, 409, "busy")
		if a.Header.Get("Retry-After") == "" || a.Int(t, "retry_after_ms") <= 0 || a.String(t, "holder") == "" {
			t.Errorf("busy without holder or time: %s", a.Body)
		}
	}
	if granted != 1 {
		t.Errorf("%d were granted", granted)
	}
}

func TestFencesBeyondTheReachOfAFloatingPointNumberStayExact(t *testing.T) {
	t.Parallel()
	s := newArena(t)
	s.DoAs(t, s.Worker, "DELETE", "/v1/reports/july/leases/seen", nil).Want(t, 200)
	s.DB.Exec(t, "UPDATE report SET granted_epoch = 1, granted_counter = 9007199254740992")
	acquired := s.acquire(t, "a7").Want(t, 201)
	const fence = "1.9007199254740993"
	if want := `"fence":"` + fence + `"`; !strings.Contains(string(acquired.Body), want) {
		t.Errorf("%s does not hold %s", acquired.Body, want)
	}
	s.stage(t, fence, "a7")
	published := s.publish(t, "k1", publication(fence, "a7")).Want(t, 201)
	if got := published.String(t, "fence"); got != fence {
		t.Errorf("published under %s", got)
	}
	s.publish(t, "k2", publication("1.9007199254740992", "a7")).Refused(t, 409, "stale_fence")
	s.publish(t, "k2", publication("1.9007199254740994", "a7")).Refused(t, 409, "fence_not_granted")
	s.shows(t, "a7", 1)
}

func TestCyclesOfLeasesOverHTTPLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	labels := pprof.Labels("test", t.Name())
	pprof.Do(t.Context(), labels, func(context.Context) {
		s := newArena(t) // whose goroutines inherit the label
		cycle := func(n int) {
			lease := fmt.Sprintf("/v1/reports/july/leases/l%d", n)
			s.acquire(t, fmt.Sprintf("l%d", n)).Want(t, 201)
			s.DoAs(t, s.Worker, "POST", lease+"/renew", nil).Want(t, 200)
			s.DoAs(t, s.Worker, "DELETE", lease, nil).Want(t, 200)
		}
		cycle(0)
		before := labelled(t)
		const cycles = 200
		for n := range cycles {
			cycle(n + 1)
		}
		// The pools keep some of their own.
		if after := labelled(t); after > before+cycles/4 {
			t.Errorf("%d goroutines before %d cycles, %d after", before, cycles, after)
		}
		if n := testdb.Value[int](t, s.DB, "SELECT count(*)::int FROM lease WHERE ended_at IS NULL"); n != 0 {
			t.Errorf("%d open leases are left", n)
		}
	})
}

// labelled counts the goroutines that carry the label of this test.
func labelled(t *testing.T) (total int) {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`(?m)^(\d+) @.*\n# labels: .*"` + regexp.QuoteMeta(t.Name()) + `"`)
	for _, match := range ours.FindAllStringSubmatch(profile.String(), -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}
