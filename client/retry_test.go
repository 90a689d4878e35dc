package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fenceline/fenceline/client"
)

const receipt = `{"result":"applied","report":"july","version":1,"object":null,"fence":"1.1","published_at":"2026-07-31T12:00:00Z"}`

// held is a capability of the service that c speaks to.
func held(c *client.Client) *client.Capability { return c.Granted(client.Fence{Epoch: 1, Counter: 1}) }

// publication is a request that means the same each time.
func publication() client.PublishRequest {
	return client.PublishRequest{ObjectID: "july.csv"}
}

func TestRepeatsOfAPublishKeepItsKeyAndBody(t *testing.T) {
	t.Parallel()
	w := play(t, proxyError(http.StatusBadGateway), cut, success(http.StatusCreated, receipt))
	if _, err := held(w.client()).Publish(t.Context(), publication()); err != nil {
		t.Fatal(err)
	}
	first := w.asked()[0]
	if first.Header.Get("Idempotency-Key") == "" {
		t.Error("the first attempt has no key")
	}
	for _, repeat := range w.asked()[1:] {
		if repeat.Body != first.Body || repeat.Header.Get("Idempotency-Key") != first.Header.Get("Idempotency-Key") {
			t.Errorf("%v is not a repeat of %v", repeat, first)
		}
	}
}

func TestTwoPublishesHaveTwoKeys(t *testing.T) {
	t.Parallel()
	w := play(t, success(http.StatusCreated, receipt), success(http.StatusCreated, receipt))
	for range 2 {
		if _, err := held(w.client()).Publish(t.Context(), publication()); err != nil {
			t.Fatal(err)
		}
	}
	if asked := w.asked(); asked[0].Header.Get("Idempotency-Key") == asked[1].Header.Get("Idempotency-Key") {
		t.Error("they share one")
	}
}

func TestAChangeThatNobodyAnsweredForHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"502 of a proxy":      proxyError(http.StatusBadGateway),
		"503 of a proxy":      proxyError(http.StatusServiceUnavailable),
		"504 of a proxy":      proxyError(http.StatusGatewayTimeout),
		"cut before":          cut,
		"cut within":          cutAfter(nil, 500, `{"result":"app`),
		"a page, not JSON":    success(http.StatusOK, "<h1>Please log in</h1>"),
		"503 with unknown":    problem(http.StatusServiceUnavailable, "unavailable", map[string]any{"outcome": "unknown"}),
		"503 without outcome": problem(http.StatusServiceUnavailable, "unavailable", map[string]any{"outcome": nil}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, answer, answer, answer)
			_, err := held(w.client()).Publish(t.Context(), publication())
			e := asError(t, err)
			if !errors.Is(err, client.ErrOutcomeUnknown) || !errors.Is(err, client.ErrUnavailable) || e.Attempts != 3 {
				t.Errorf("%v, after %d attempts", err, e.Attempts)
			}
			if e.IdempotencyKey == "" || e.IdempotencyKey != w.asked()[0].Header.Get("Idempotency-Key") {
				t.Errorf("the error names key %q, the requests had %q", e.IdempotencyKey, w.asked()[0].Header.Get("Idempotency-Key"))
			}
		})
	}
}

func TestAReadHasNoOutcome(t *testing.T) {
	t.Parallel()
	w := play(t, cut, cut, proxyError(http.StatusBadGateway))
	_, err := w.client().Report(t.Context(), "july")
	if e := asError(t, err); e.Outcome != "" || !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("%v with outcome %q", err, e.Outcome)
	}
}

func TestALaterRefusalDoesNotMakeAnUnknownOutcomeKnown(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]client.Outcome{
		"unavailable":     client.Unknown, // it was not looked whether the first had been applied
		"unauthenticated": client.Unknown,
		"frozen":          client.Unknown,
		"stale_fence":     client.NotApplied, // it was: a duplicate is looked for first
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := play(t, cut, problem(http.StatusServiceUnavailable, code, nil), problem(http.StatusServiceUnavailable, code, nil))
			_, err := held(w.client()).Publish(t.Context(), publication())
			if e := asError(t, err); e.Outcome != want {
				t.Errorf("%v has outcome %q, want %q", err, e.Outcome, want)
			}
		})
	}
}

func TestWhatWasNeverSentWasNotApplied(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() // so that its port refuses connections
	c := client.New(client.Config{URL: "http://" + listener.Addr().String(), Backoff: time.Millisecond, MaxAttempts: 3})
	_, err = held(c).Publish(t.Context(), publication())
	if e := asError(t, err); e.Outcome != client.NotApplied || e.Attempts != 3 || !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("%v: outcome %q after %d attempts", err, e.Outcome, e.Attempts)
	}
}

func TestARefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"stale_fence", "busy", "lease_lost", "version_conflict", "forbidden", "internal"} {
		w := play(t, problem(http.StatusInternalServerError, code, nil))
		if _, err := held(w.client()).Publish(t.Context(), publication()); asError(t, err).Attempts != 1 {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// inProcess lets a handler answer without a network, so that a test's clock may be false.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(in *http.Request) (*http.Response, error) {
	if err := in.Context().Err(); err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(in.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	recorder := httptest.NewRecorder()
	p.ServeHTTP(recorder, in)
	if err := in.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

// unavailableFor answers as a service that asks for patience.
func unavailableFor(seconds string) *http.Client {
	return &http.Client{Transport: inProcess{http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Retry-After", seconds)
		problem(http.StatusServiceUnavailable, "unavailable", nil)(out, in)
	})}}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := client.New(client.Config{URL: "http://service", MaxAttempts: 3, HTTPClient: unavailableFor("4")})
		start := time.Now()
		_, err := c.Report(t.Context(), "july")
		if waited := time.Since(start); waited != 8*time.Second || asError(t, err).Attempts != 3 {
			t.Errorf("%v after %v", err, waited)
		}
	})
}

func TestMorePatienceThanAllowedEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := client.New(client.Config{URL: "http://service", HTTPClient: unavailableFor("3600")})
		start := time.Now()
		_, err := c.Report(t.Context(), "july")
		if e := asError(t, err); time.Since(start) != 0 || e.RetryAfter != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestWaitsGrowAndTheContextEndsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		handler := http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			times = append(times, time.Now())
			problem(http.StatusServiceUnavailable, "unavailable", nil)(out, in)
		})
		c := client.New(client.Config{
			URL: "http://service", HTTPClient: &http.Client{Transport: inProcess{handler}},
			MaxAttempts: 1000, Backoff: time.Second, MaxBackoff: 8 * time.Second,
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if _, err := c.Report(ctx, "july"); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(times[0]); waited != time.Minute {
			t.Errorf("it went on for %v", waited)
		}
		for n := 1; n < len(times); n++ {
			most := min(time.Second<<(n-1), 8*time.Second)
			if wait := times[n].Sub(times[n-1]); wait < most/2 || wait > most {
				t.Errorf("wait %d took %v, not %v to %v", n, wait, most/2, most)
			}
		}
	})
}

func TestAnAttemptThatHangsIsGivenUpAndRepeated(t *testing.T) {
	t.Parallel()
	w := play(
		t,
		func(_ http.ResponseWriter, in *http.Request) { <-in.Context().Done() },
		success(http.StatusCreated, receipt),
	)
	c := client.New(client.Config{URL: w.URL, AttemptTimeout: 50 * time.Millisecond, Backoff: time.Millisecond})
	if _, err := held(c).Publish(t.Context(), publication()); err != nil {
		t.Error(err)
	}
}

func TestTheCallersCancellationIsNoUnavailability(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{nil, errors.New("interrupt signal received")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := play(t, func(_ http.ResponseWriter, in *http.Request) {
			cancel(cause)
			<-in.Context().Done()
		})
		_, err := held(w.client()).Publish(ctx, publication())
		if errors.Is(err, client.ErrUnavailable) || !errors.Is(err, context.Canceled) || !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	}
}
