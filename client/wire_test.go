package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/client"
)

// wire plays the service's side of the wire: it gives its answers one after the other,
// and keeps what it was asked.
type wire struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

// request is what one attempt sent.
type request struct {
	Method string
	Path   string
	Header http.Header
	Body   string
}

// play starts a wire that gives these answers, and fails the test if it is asked more often.
func play(t *testing.T, answers ...http.HandlerFunc) *wire {
	t.Helper()
	w := &wire{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		w.mu.Lock()
		w.requests = append(w.requests, request{in.Method, in.URL.Path, in.Header, string(body)})
		n := len(w.requests)
		w.mu.Unlock()
		if n > len(answers) {
			t.Errorf("request %d (%s %s) is one more than expected", n, in.Method, in.URL.Path)
			out.WriteHeader(http.StatusTeapot)
			return
		}
		answers[n-1](out, in)
	}))
	t.Cleanup(w.Close)
	return w
}

// asked is what has been sent so far.
func (w *wire) asked() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]request(nil), w.requests...)
}

// client is a client of the wire that does not dawdle between attempts.
func (w *wire) client() *client.Client {
	return client.New(client.Config{
		URL: w.URL, Key: "fl_k1_secret",
		Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, MaxAttempts: 3,
	})
}

// success answers with a status and JSON.
func success(status int, body string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(status)
		io.WriteString(out, body)
	}
}

// problem answers with a problem document.
func problem(status int, code string, members map[string]any) http.HandlerFunc {
	document := map[string]any{"type": "about:blank", "title": code, "status": status, "code": code, "outcome": "not_applied"}
	for name, value := range members {
		document[name] = value
	}
	body, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/problem+json")
		out.Header().Set("X-Request-Id", "r-1")
		out.WriteHeader(status)
		out.Write(body)
	}
}

// proxyError answers as a proxy does that has lost the service.
func proxyError(status int) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		out.WriteHeader(status)
		fmt.Fprintf(out, "<h1>%d</h1>", status)
	}
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// cutAfter begins to answer with a success, and ends the connection within the body.
func cutAfter(header http.Header, size int, part string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			out.Header()[name] = values
		}
		out.Header().Set("Content-Length", fmt.Sprint(size))
		out.WriteHeader(http.StatusOK)
		io.WriteString(out, part)
		out.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}
