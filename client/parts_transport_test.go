package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/testservice"
)

const (
	testPartSize = 8 << 20
	testAtOnce   = 3
)

// partsWire is a transport that sees what goes to the service and its storage, and does what networks do: faults
// say what becomes of the first request with such a name.
type partsWire struct {
	mu       sync.Mutex
	faults   map[string]func(*http.Request) (*http.Response, error)
	seen     []string          // names of the requests, in their order
	bodies   map[string][]byte // of the requests to the service: the last one's
	arrived  int64             // bytes of parts that the storage has acknowledged
	underWay int
}

// nameOf is "part 3" for its upload, "whole" for one as a whole, "seal" for a seal, and "reserve 1001-1500" for a
// reservation with its ?parts=.
func nameOf(in *http.Request) string {
	query := in.URL.Query()
	switch {
	case query.Has("partNumber"):
		return "part " + query.Get("partNumber")
	case query.Has("X-Amz-Signature"):
		return "whole"
	case strings.HasSuffix(in.URL.Path, "/seal"):
		return "seal"
	case in.Method == http.MethodPut && strings.Contains(in.URL.Path, "/objects/"):
		return "reserve " + query.Get("parts")
	}
	return in.Method
}

// RoundTrip implements [http.RoundTripper].
func (w *partsWire) RoundTrip(in *http.Request) (*http.Response, error) {
	name := nameOf(in)
	var body []byte
	if strings.HasPrefix(in.URL.Path, "/v1/") && in.Body != nil {
		body, _ = io.ReadAll(in.Body)
		in.Body = io.NopCloser(bytes.NewReader(body))
	}
	w.mu.Lock()
	w.seen = append(w.seen, name)
	if w.bodies == nil {
		w.bodies = map[string][]byte{}
	}
	w.bodies[name] = body
	fault := w.faults[name]
	delete(w.faults, name)
	if fault == nil {
		fault = w.faults[strings.Fields(name)[0]] // of all such requests, for good
	}
	w.underWay++
	w.mu.Unlock()
	if fault == nil {
		fault = http.DefaultTransport.RoundTrip
	}
	answer, err := fault(in)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.underWay--
	if err == nil && answer.StatusCode == http.StatusOK && in.URL.Query().Has("partNumber") {
		w.arrived += in.ContentLength
	}
	return answer, err
}

// count is how many requests of a name were sent.
func (w *partsWire) count(name string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seen := range w.seen {
		if seen == name {
			n++
		}
	}
	return n
}

// refused answers without anything having arrived.
func refused(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(in *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Request: in, Header: http.Header{"Content-Type": {"application/problem+json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// lost has a request arrive whose answer does not.
func lost(in *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(in)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return nil, errors.New("the answer is lost")
}

// partsWorker holds a lease, and uploads more than one part in parts through a wire.
func partsWorker(t *testing.T, s *testservice.Service, wire *partsWire) *client.Capability {
	t.Helper()
	return grant(t, client.New(client.Config{
		URL: s.URL, Key: s.Worker, Backoff: time.Millisecond, HTTPClient: &http.Client{Transport: wire},
		PartsAbove: testPartSize, PartSize: testPartSize, PartsAtOnce: testAtOnce,
	}), "A")
}
