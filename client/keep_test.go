package client_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

// authority plays the service's side of the leases of the report july, without a network.
// Its answers may be replaced; each takes no time.
type authority struct {
	acquire, renew, release, publish, discard http.HandlerFunc

	mu    sync.Mutex
	asked []string    // the method and the end of the path of each request
	times []time.Time // of the renewals
}

func newAuthority() *authority {
	return &authority{
		acquire: success(http.StatusCreated, `{"result":"acquired","fence":"1.1","remaining_ms":30000}`),
		renew:   success(http.StatusOK, `{"result":"renewed","fence":"1.1","remaining_ms":30000}`),
		release: success(http.StatusOK, `{"result":"released"}`),
		publish: success(http.StatusCreated, receipt),
		discard: success(http.StatusOK, `{"state":"condemned"}`),
	}
}

func (a *authority) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	path, _ := strings.CutPrefix(in.URL.Path, "/v1/reports/july/")
	a.mu.Lock()
	a.asked = append(a.asked, in.Method+" "+path)
	if strings.HasSuffix(path, "/renew") {
		a.times = append(a.times, time.Now())
	}
	a.mu.Unlock()
	switch object := strings.HasPrefix(path, "objects/"); {
	case strings.HasSuffix(path, "/renew"):
		a.renew(out, in)
	case path == "publications":
		a.publish(out, in)
	case in.Method == http.MethodDelete && object:
		a.discard(out, in)
	case in.Method == http.MethodDelete:
		a.release(out, in)
	case object:
		success(http.StatusCreated, `{"fence":"1.1","state":"reserved","upload":{}}`)(out, in)
	default:
		a.acquire(out, in)
	}
}

// requests is what was asked so far.
func (a *authority) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.asked...)
}

// renewals is when renewals were asked for so far.
func (a *authority) renewals() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Time(nil), a.times...)
}

func (a *authority) client() *client.Client {
	return client.New(client.Config{URL: "http://service", HTTPClient: &http.Client{Transport: inProcess{a}}})
}

// keep keeps a lease until the returned function is called, which gives what Keep did.
func keep(k *client.Capability) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Keep(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func TestALeaseIsRenewedAtAThirdOfItsTimeAndBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, start := newAuthority(), time.Now()
		k := acquire(t, a.client())
		stop := keep(k)
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil || !k.Valid() {
			t.Errorf("kept until stopped: %v, valid: %v", err, k.Valid())
		}
		last, different := start, map[time.Duration]bool{}
		for _, at := range a.renewals() {
			wait := at.Sub(last)
			if wait > 10*time.Second || wait < 9*time.Second {
				t.Errorf("renewed after %v", wait)
			}
			last, different[wait.Round(10*time.Millisecond)] = at, true
		}
		if len(different) < 10 {
			t.Errorf("there is no jitter: %v", different)
		}
	})
}

func TestAcquiredUnderOneSecondALeaseIsHeldForTen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request := july()
		request.TTL = 2 * time.Second
		a.acquire = success(http.StatusCreated, `{"fence":"1.1","remaining_ms":2000}`)
		a.renew = success(http.StatusOK, `{"fence":"1.1","remaining_ms":2000}`)
		k, err := a.client().Acquire(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		stop := keep(k)
		time.Sleep(10 * time.Second)
		if !k.Valid() || k.Context().Err() != nil {
			t.Errorf("lost after: %v", context.Cause(k.Context()))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestARenewerThatHangsDoesNotKeepTheContextAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		hang := make(chan struct{})
		a.renew = func(http.ResponseWriter, *http.Request) { <-hang } // deaf even for the end of its context
		start := time.Now()
		k := acquire(t, a.client())
		stop := keep(k)
		<-k.Context().Done()
		if passed := time.Since(start); passed != 29500*time.Millisecond {
			t.Errorf("it ended after %v", passed)
		}
		if cause := context.Cause(k.Context()); !errors.Is(cause, client.ErrLeaseLost) || !strings.Contains(cause.Error(), "deadline") {
			t.Errorf("the cause is %v", cause)
		}
		close(hang)
		if err := stop(); !errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("Keep returned %v", err)
		}
	})
}

func TestAnAttemptToRenewThatHangsIsFollowedByAnotherInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		answer, n := a.renew, 0
		a.renew = func(out http.ResponseWriter, in *http.Request) {
			if n++; n == 1 {
				<-in.Context().Done()
				return
			}
			answer(out, in)
		}
		k := acquire(t, a.client())
		stop := keep(k)
		time.Sleep(time.Minute)
		if err := stop(); err != nil || !k.Valid() {
			t.Errorf("lost: %v", err)
		}
	})
}

func TestAServiceThatIsAwayForAWhileCostsNoLease(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]http.HandlerFunc{
		"503":   problem(http.StatusServiceUnavailable, "unavailable", nil),
		"502":   proxyError(http.StatusBadGateway),
		"500":   problem(http.StatusInternalServerError, "internal", nil),
		"later": problem(http.StatusServiceUnavailable, "unavailable", map[string]any{"retry_after_ms": 3600_000}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAuthority()
				answer, away := a.renew, time.Now().Add(25*time.Second)
				a.renew = func(out http.ResponseWriter, in *http.Request) {
					if time.Now().Before(away) {
						fault(out, in)
						return
					}
					answer(out, in)
				}
				k := acquire(t, a.client())
				stop := keep(k)
				time.Sleep(time.Minute)
				if err := stop(); err != nil || !k.Valid() {
					t.Errorf("lost: %v", err)
				}
				if n := len(a.renewals()); n > 40 {
					t.Errorf("%d renewals within a minute", n)
				}
			})
		})
	}
}

func TestNothingIsRenewedPastTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, start := newAuthority(), time.Now()
		a.renew = problem(http.StatusServiceUnavailable, "unavailable", nil)
		k := acquire(t, a.client())
		err := k.Keep(context.Background())
		if !errors.Is(err, client.ErrLeaseLost) || !errors.Is(err, client.ErrUnavailable) || time.Since(start) != 29500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Hour)
		times := a.renewals()
		if last := times[len(times)-1].Sub(start); last > 29500*time.Millisecond {
			t.Errorf("one was sent after %v", last)
		}
	})
}

func TestALeaseThatTheServiceCallsLostEndsTheWorkWithItsReason(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{"lease_lost": http.StatusGone, "lease_not_found": http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			a := newAuthority()
			a.renew = problem(status, code, map[string]any{"reason": "superseded"})
			k := acquire(t, a.client())
			err := k.Keep(context.Background())
			var answered *client.Error
			if cause := context.Cause(k.Context()); !errors.Is(err, client.ErrLeaseLost) || !errors.Is(cause, err) ||
				!errors.As(cause, &answered) || answered.Reason != "superseded" {
				t.Errorf("%s: Keep returned %v, the cause is %v", code, err, cause)
			}
			if n := len(a.renewals()); n != 1 {
				t.Errorf("%s: asked %d times", code, n)
			}
		})
	}
}

func TestAReleaseEndsTheWorkBeforeTheServiceIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		k := acquire(t, a.client())
		answer := a.release
		a.release = func(out http.ResponseWriter, in *http.Request) {
			if k.Valid() || k.Context().Err() == nil {
				t.Error("still valid while it is released")
			}
			answer(out, in)
		}
		stop := keep(k)
		for range 2 {
			if err := k.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := stop(); err != nil {
			t.Errorf("Keep returned %v", err)
		}
		if cause := context.Cause(k.Context()); !errors.Is(cause, client.ErrLeaseLost) || !strings.Contains(cause.Error(), "released") {
			t.Errorf("the cause is %v", cause)
		}
		if diff := cmp.Diff([]string{"PUT leases/a7", "DELETE leases/a7", "DELETE leases/a7"}, a.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestKeepEndsAtOnceWithItsContextOrTheCapability(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(k *client.Capability, cancel func()) error{
		"its context":    func(_ *client.Capability, cancel func()) error { cancel(); return nil },
		"the capability": func(k *client.Capability, _ func()) error { return k.Release(context.Background()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			k, start := acquire(t, newAuthority().client()), time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() { ended <- k.Keep(ctx) }()
			time.Sleep(time.Second)
			if err := end(k, cancel); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil || time.Since(start) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
		})
	}
}

func TestALeaseThatWasResumedIsKeptAtItsOwnPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		k, err := a.client().Resume(t.Context(), "july", "a7", 0)
		if err != nil {
			t.Fatal(err)
		}
		stop := keep(k)
		time.Sleep(time.Minute)
		if err := stop(); err != nil || !k.Valid() {
			t.Errorf("lost: %v", err)
		}
		if n := len(a.renewals()); n < 6 || n > 8 {
			t.Errorf("%d renewals in a minute", n)
		}
	})
}

// No t.Parallel: it counts goroutines.
func TestTenThousandLeasesLeaveNoGoroutine(t *testing.T) {
	c := newAuthority().client()
	before := runtime.NumGoroutine()
	for n := range 10_000 {
		k, err := c.Acquire(t.Context(), client.AcquireRequest{Report: "july", Holder: "h", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		stop := func() error { return nil }
		if n%2 == 0 {
			stop = keep(k)
		}
		if err := errors.Join(k.Release(t.Context()), stop()); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}
