package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/api"
)

func works(context.Context) error { return nil }

func failsWith(text string) func(context.Context) error {
	return func(context.Context) error { return errors.New(text) }
}

// untilInterrupted is a handler that works until its context ends.
func untilInterrupted(c echo.Context) error {
	<-c.Request().Context().Done()
	return c.Request().Context().Err()
}

func TestARequestThatTakesTooLongIsUnavailableWithAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{RequestTimeout: 20 * time.Millisecond}, api.Route{
		Method: http.MethodPost, Path: "/slow", Mutates: true, Handler: untilInterrupted,
	})
	got := ask(t, server, http.MethodPost, "/slow", "")
	if got.Status != 503 || got.JSON["code"] != "unavailable" || got.JSON["outcome"] != "unknown" || got.Header.Get("Retry-After") == "" {
		t.Errorf("answer: %d %v %v", got.Status, got.Header, got.JSON)
	}
}

func TestAClientThatHangsUpInterruptsNoChange(t *testing.T) {
	t.Parallel()
	type connection struct{} // where the context that net/http ends is kept
	begun, interrupted := make(chan struct{}), make(chan error, 1)
	s := api.New(api.Config{Log: newLogBuffer().logger()})
	s.Handle(api.Route{
		Method: http.MethodPost, Path: "/change", Mutates: true,
		Handler: func(c echo.Context) error {
			close(begun)
			<-c.Request().Context().Value(connection{}).(context.Context).Done()
			interrupted <- c.Request().Context().Err()
			return nil
		},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connection{}, r.Context())))
	}))
	t.Cleanup(server.Close)

	ctx, hangUp := context.WithCancel(t.Context())
	go func() { <-begun; hangUp() }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/change", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := server.Client().Do(r); err == nil {
		resp.Body.Close()
		t.Fatal("the request was answered")
	}
	if err := <-interrupted; err != nil {
		t.Errorf("the change was interrupted: %v", err)
	}
}

func TestAStreamMayTakeLongerThanARequestWhileBytesFlow(t *testing.T) {
	t.Parallel()
	const pause = time.Second
	server := start(t, api.Config{RequestTimeout: pause}, api.Route{
		Method: http.MethodGet, Path: "/stream", Streams: true,
		Handler: func(c echo.Context) error {
			ticks := time.NewTicker(pause / 10)
			defer ticks.Stop()
			for range 13 {
				select {
				case <-ticks.C:
				case <-c.Request().Context().Done():
					return c.Request().Context().Err()
				}
				if _, err := c.Response().Write([]byte("x")); err != nil {
					return err
				}
				c.Response().Flush()
			}
			return nil
		},
	})
	if got := ask(t, server, http.MethodGet, "/stream", ""); got.Body != strings.Repeat("x", 13) {
		t.Errorf("body %q", got.Body)
	}
}

func TestAStreamThatStallsIsEnded(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{RequestTimeout: 20 * time.Millisecond}, api.Route{
		Method: http.MethodGet, Path: "/stalls", Streams: true, Handler: untilInterrupted,
	})
	got := ask(t, server, http.MethodGet, "/stalls", "")
	if got.Status != 503 || !strings.Contains(got.Body, "took longer") {
		t.Errorf("answer: %d %s", got.Status, got.Body)
	}
}

func TestTheTimeForReadingABodyIsNotTheTimeForTheWork(t *testing.T) {
	t.Parallel()
	const readTimeout = 100 * time.Millisecond
	outlast := func(c echo.Context) error {
		if c.Request().Method == http.MethodPost {
			if _, err := api.Decode[order](c); err != nil {
				return err
			}
		}
		work := time.NewTimer(3 * readTimeout)
		defer work.Stop()
		select {
		case <-work.C:
			return c.NoContent(http.StatusNoContent)
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		}
	}
	s := api.New(api.Config{Log: newLogBuffer().logger()})
	s.Handle(api.Route{Method: http.MethodGet, Path: "/work", Handler: outlast})
	s.Handle(api.Route{Method: http.MethodPost, Path: "/work", Handler: outlast})
	server := httptest.NewUnstartedServer(s)
	server.Config.ReadTimeout = readTimeout
	server.Start()
	t.Cleanup(server.Close)

	if got := ask(t, server, http.MethodGet, "/work", ""); got.Status != 204 {
		t.Errorf("without a body: %d %s", got.Status, got.Body)
	}
	if got := ask(t, server, http.MethodPost, "/work", `{}`, "Content-Type", "application/json"); got.Status != 204 {
		t.Errorf("with a body: %d %s", got.Status, got.Body)
	}
}
