package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/api"
)

// logBuffer keeps the log of a test and tells when a message has come.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen map[string]chan struct{}
}

func newLogBuffer(messages ...string) *logBuffer {
	l := &logBuffer{seen: map[string]chan struct{}{}}
	for _, m := range messages {
		l.seen[m] = make(chan struct{})
	}
	return l
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for message, seen := range l.seen {
		if bytes.Contains(p, []byte(message)) {
			close(seen)
			delete(l.seen, message)
		}
	}
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// answer is a response that has been read.
type answer struct {
	Status int
	Header http.Header
	Body   string
	JSON   map[string]any // nil unless the body is a JSON object
}

// ask sends a request over a real connection and reads the answer.
func ask(t *testing.T, server *httptest.Server, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return send(t, server, r)
}

func send(t *testing.T, server *httptest.Server, r *http.Request) answer {
	t.Helper()
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
	_ = json.Unmarshal(text, &a.JSON)
	return a
}

// start serves a server with the given routes on a real connection.
func start(t *testing.T, cfg api.Config, routes ...api.Route) *httptest.Server {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = newLogBuffer().logger()
	}
	s := api.New(cfg)
	for _, r := range routes {
		s.Handle(r)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server
}

func noContent(c echo.Context) error { return c.NoContent(http.StatusNoContent) }

// running is a server that was started with Serve.
type running struct {
	server *api.Server
	url    string
	stop   context.CancelFunc
	ended  chan error
}

func serve(t *testing.T, cfg api.Config, routes ...api.Route) running {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	r := running{server: api.New(cfg), url: "http://" + listener.Addr().String(), stop: stop, ended: make(chan error, 1)}
	for _, route := range routes {
		r.server.Handle(route)
	}
	go func() { r.ended <- r.server.Serve(ctx, listener) }()
	return r
}

// held is a route that waits at a barrier, from when it says that it is there.
func held(arrived chan<- struct{}, barrier <-chan struct{}) api.Route {
	return api.Route{Method: http.MethodGet, Path: "/held", Handler: func(c echo.Context) error {
		close(arrived)
		<-barrier
		if err := c.Request().Context().Err(); err != nil {
			return err
		}
		return c.String(http.StatusOK, "finished")
	}}
}

func get(url string) (string, error) {
	resp, err := http.Get(url) //nolint:noctx // ends with the server
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestShutdownFinishesTheRequestsInFlightAndSaysSoInReadyz(t *testing.T) {
	t.Parallel()
	log := newLogBuffer("shutting down")
	shuttingDown := log.seen["shutting down"]
	arrived, barrier := make(chan struct{}), make(chan struct{})
	r := serve(t, api.Config{Log: log.logger()}, held(arrived, barrier))

	type result struct {
		body string
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		body, err := get(r.url + "/held")
		answered <- result{body, err}
	}()
	<-arrived
	r.stop()
	<-shuttingDown

	// The listener is closing, so the question comes by a connection of its own.
	w := httptest.NewRecorder()
	r.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"draining"`) {
		t.Errorf("readyz while shutting down: %d %s", w.Code, w.Body)
	}
	select {
	case err := <-r.ended:
		t.Fatalf("Serve returned %v with a request in flight", err)
	default:
	}

	close(barrier)
	if got := <-answered; got.err != nil || got.body != "finished" {
		t.Errorf("request in flight: %q, %v", got.body, got.err)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := get(r.url + "/livez"); err == nil {
		t.Error("the server still answers after the shutdown")
	}
}

func TestShutdownGivesUpOnARequestThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	arrived, barrier := make(chan struct{}), make(chan struct{})
	defer close(barrier)
	r := serve(t, api.Config{Log: newLogBuffer().logger(), ShutdownTimeout: 50 * time.Millisecond}, held(arrived, barrier))
	go func() { _, _ = get(r.url + "/held") }()
	<-arrived
	r.stop()
	if err := <-r.ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Serve: %v, want deadline exceeded", err)
	}
}
