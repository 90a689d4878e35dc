package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline/fenceline/client"
)

// slowGrant is a service whose first attempt is lost after a second, and whose second is
// answered after two.
func slowGrant() *http.Client {
	attempts := 0
	return &http.Client{Transport: inProcess{http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if attempts++; attempts == 1 {
			time.Sleep(time.Second)
			proxyError(http.StatusBadGateway)(out, in)
			return
		}
		time.Sleep(2 * time.Second)
		success(http.StatusCreated, granted)(out, in)
	})}}
}

func TestWorkStopsByTheSendingOfTheAnsweredAttemptAndItsTimeLessTheMargin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := acquire(t, client.New(client.Config{URL: "http://service", HTTPClient: slowGrant(), Margin: time.Second}))
		// 2 s waited + 30 s remaining − 1 s margin − 2 s since the second attempt was sent.
		if left := k.Left(); left > 29*time.Second || left < 28900*time.Millisecond {
			t.Errorf("%v are left", left)
		}
		time.Sleep(28900 * time.Millisecond)
		if !k.Valid() || k.Context().Err() != nil {
			t.Errorf("it is over with %v left", k.Left())
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if k.Context().Err() == nil {
			t.Error("its context goes on")
		}
		if k.Valid() || k.Left() != 0 {
			t.Errorf("it is valid with %v left", k.Left())
		}
		cause := context.Cause(k.Context())
		if !errors.Is(cause, client.ErrLeaseLost) || !strings.Contains(cause.Error(), "deadline passed without an acknowledged renewal") {
			t.Errorf("the cause is %v", cause)
		}
	})
}

func TestACapabilityIsOverOnceEitherClockSaysSo(t *testing.T) {
	t.Parallel()
	for name, elapsed := range map[string]struct{ mono, boot time.Duration }{
		"suspended: the monotonic clock stood still": {0, 32 * time.Second},
		"no boot clock": {32 * time.Second, 0},
		"both clocks":   {32 * time.Second, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var passed atomic.Bool
				c := client.New(client.Config{
					URL: "http://service", Margin: time.Nanosecond,
					HTTPClient: &http.Client{Transport: inProcess{success(http.StatusCreated, granted)}},
				})
				c.SetClocks(func() time.Time {
					if passed.Load() {
						return start.Add(elapsed.mono)
					}
					return start
				}, func() time.Duration {
					if passed.Load() {
						return elapsed.boot
					}
					return 0
				})
				k := acquire(t, c)
				if !k.Valid() {
					t.Fatal("not valid at once")
				}
				time.Sleep(2500 * time.Millisecond) // of the timers' time; the clocks stand still
				passed.Store(true)
				select {
				case <-k.Context().Done():
				case <-time.After(1001 * time.Millisecond): // the machine has just woken up
					t.Error("its context goes on")
				}
				if cause := context.Cause(k.Context()); !errors.Is(cause, client.ErrLeaseLost) {
					t.Errorf("the cause is %v", cause)
				}
				if passed.Store(false); k.Valid() {
					t.Errorf("valid again with %v left", k.Left())
				}
			})
		})
	}
}

func TestEnoughSaysHowMuchIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := acquire(t, client.New(client.Config{
			URL: "http://service", HTTPClient: &http.Client{Transport: inProcess{success(http.StatusCreated, granted)}},
		}))
		if err := k.Enough(31 * time.Second); err != nil {
			t.Error(err)
		}
		err := k.Enough(time.Minute)
		if err == nil || errors.Is(err, client.ErrLeaseLost) || !strings.Contains(err.Error(), "31.5s") {
			t.Errorf("got %v", err)
		}
		time.Sleep(31500 * time.Millisecond)
		if err := k.Enough(0); !errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("got %v", err)
		}
	})
}

// deaf is an inProcess that does not notice when nobody waits for its answer any more.
type deaf struct{ http.Handler }

func (d deaf) RoundTrip(in *http.Request) (*http.Response, error) {
	return inProcess{d}.RoundTrip(in.WithContext(context.WithoutCancel(in.Context())))
}

func TestACapabilityThatWasGivenUpNeverBecomesValidAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, k *client.Capability){
		"released": func(t *testing.T, k *client.Capability) {
			if err := k.Release(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"past its deadline": func(_ *testing.T, _ *client.Capability) { time.Sleep(time.Minute) },
		"stale": func(t *testing.T, k *client.Capability) {
			if _, err := k.Publish(t.Context(), publication()); !errors.Is(err, client.ErrStaleFence) {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mux := http.NewServeMux()
				mux.HandleFunc("PUT /v1/reports/july/leases/a7", success(http.StatusCreated, granted))
				mux.HandleFunc("DELETE /v1/reports/july/leases/a7", success(http.StatusOK, `{"result":"released"}`))
				mux.HandleFunc("POST /v1/reports/july/publications", problem(http.StatusConflict, "stale_fence", nil))
				var renewals atomic.Int64
				mux.HandleFunc("POST /v1/reports/july/leases/a7/renew", func(out http.ResponseWriter, in *http.Request) {
					renewals.Add(1)
					time.Sleep(2 * time.Minute) // the answer is late, and was not waited for
					success(http.StatusOK, `{"fence":"1.1","remaining_ms":900000}`)(out, in)
				})
				k := acquire(t, client.New(client.Config{URL: "http://service", HTTPClient: &http.Client{Transport: deaf{mux}}}))
				renewed := make(chan error)
				go func() { renewed <- k.Renew(context.Background()) }()
				synctest.Wait()
				end(t, k)
				if err := <-renewed; !errors.Is(err, client.ErrLeaseLost) {
					t.Errorf("the renewal under way: %v", err)
				}
				before := renewals.Load()
				if err := k.Renew(t.Context()); !errors.Is(err, client.ErrLeaseLost) || renewals.Load() != before {
					t.Errorf("a renewal afterwards: %v, and %d were sent", err, renewals.Load()-before)
				}
				if k.Valid() || k.Left() != 0 || !errors.Is(context.Cause(k.Context()), client.ErrLeaseLost) {
					t.Errorf("valid: %v, %v left, cause %v", k.Valid(), k.Left(), context.Cause(k.Context()))
				}
			})
		})
	}
}

func TestALateAnswerDoesNotMoveTheDeadlineBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int64
		mux := http.NewServeMux()
		mux.HandleFunc("PUT /v1/reports/july/leases/a7", success(http.StatusCreated, granted))
		mux.HandleFunc("POST /v1/reports/july/leases/a7/renew", func(out http.ResponseWriter, in *http.Request) {
			if renewals.Add(1) == 1 {
				time.Sleep(8 * time.Second)
			}
			success(http.StatusOK, `{"fence":"1.1","remaining_ms":30000}`)(out, in)
		})
		k := acquire(t, client.New(client.Config{
			URL: "http://service", HTTPClient: &http.Client{Transport: inProcess{mux}}, Margin: time.Nanosecond,
		}))
		time.Sleep(10 * time.Second)
		late := make(chan error)
		go func() { late <- k.Renew(context.Background()) }()
		time.Sleep(5 * time.Second)
		if err := k.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := k.Left()
		if err := <-late; err != nil {
			t.Fatal(err)
		}
		// 3 s have passed since, by both deadlines; the late answer's was 5 s earlier.
		if left := k.Left(); left != before-3*time.Second {
			t.Errorf("%v were left, and 3 s later %v", before, left)
		}
	})
}

func TestARenewalThatSpeaksOfAnotherFenceIsNone(t *testing.T) {
	t.Parallel()
	w := play(t, success(http.StatusCreated, granted), success(http.StatusOK, `{"fence":"1.2","remaining_ms":900000}`))
	k := acquire(t, w.client())
	if err := k.Renew(t.Context()); err == nil {
		t.Error("it was acknowledged")
	}
	if left := k.Left(); left > 33*time.Second {
		t.Errorf("it moved the deadline: %v are left", left)
	}
}
