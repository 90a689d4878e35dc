// Package testservice runs the whole service for a test: on a database and a bucket of its own, real ones, and
// with a client that speaks plain HTTP.
package testservice

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
)

// Service is a running service.
type Service struct {
	*service.Service
	DB      *testdb.DB
	Storage *testbucket.Bucket
	URL     string

	// Keys for every report, by role.
	Operator, Worker, Reader string
}

// Start runs a service until the test ends. Each change edits the configuration, which is the default one, on
// a database and a bucket of the test's own, without a schedule of the collector.
func Start(t testing.TB, changes ...func(*service.Config)) *Service {
	t.Helper()
	return StartOn(t, testdb.New(t), changes...)
}

// StartOn is Start on a database that is there already.
func StartOn(t testing.TB, db *testdb.DB, changes ...func(*service.Config)) *Service {
	t.Helper()
	storage := testbucket.New(t)
	cfg := service.Config{
		Database: database.Config{URL: db.URL, Pool: 20},
		Bucket:   storage.Config,
		Log:      slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, change := range changes {
		change(&cfg)
	}
	s, err := service.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open the service: %v", err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		s.Close()
	})
	running := &Service{Service: s, DB: db, Storage: storage, URL: "http://" + listener.Addr().String()}
	running.DoAs(t, "", http.MethodGet, "/livez", nil).Want(t, http.StatusOK) // it has passed its checks
	running.Operator = running.NewKey(t, api.RoleOperator, "*")
	running.Worker = running.NewKey(t, api.RoleWorker, "*")
	running.Reader = running.NewKey(t, api.RoleReader, "*")
	return running
}

// OwnerKeys makes and ends keys with the owner's rights, as `fenceline key` does.
func (s *Service) OwnerKeys() *api.Keys { return api.NewKeys(s.DB.Owner, nil) }

// NewKey makes a key and returns its secret.
func (s *Service) NewKey(t testing.TB, role api.Role, pattern api.Pattern) string {
	t.Helper()
	_, secret, err := s.OwnerKeys().Create(t.Context(), api.NewKey{Name: t.Name(), Role: role, Pattern: pattern})
	if err != nil {
		t.Fatalf("create a key: %v", err)
	}
	return secret
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request with the operator's key; body is sent as JSON unless it is nil, and a pair of strings
// in headers is a header.
func (s *Service) Do(t testing.TB, method, path string, body any, headers ...string) Answer {
	t.Helper()
	return s.DoAs(t, s.Operator, method, path, body, headers...)
}

// DoAs is Do with another key; an empty one sends none.
func (s *Service) DoAs(t testing.TB, key, method, path string, body any, headers ...string) Answer {
	t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatalf("encode the body: %v", err)
		}
		content = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, content)
	if err != nil {
		t.Fatalf("make the request: %v", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: got}
}

// Want fails the test unless the answer has the status.
func (a Answer) Want(t testing.TB, status int) Answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// Refused fails the test unless the answer is a problem with the status and code.
func (a Answer) Refused(t testing.TB, status int, code string) Answer {
	t.Helper()
	a.Want(t, status)
	if got := a.String(t, "code"); got != code {
		t.Fatalf("code %q, want %q: %s", got, code, a.Body)
	}
	return a
}

// JSON decodes the answer.
func (a Answer) JSON(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	decoder := json.NewDecoder(bytes.NewReader(a.Body))
	decoder.UseNumber()
	if err := decoder.Decode(&m); err != nil {
		t.Fatalf("the answer is no JSON object: %v: %s", err, a.Body)
	}
	return m
}

// String reads a member that is a string; a missing one is empty.
func (a Answer) String(t testing.TB, member string) string {
	t.Helper()
	text, _ := a.JSON(t)[member].(string)
	return text
}

// Int reads a member that is a number; a missing one is -1.
func (a Answer) Int(t testing.TB, member string) int64 {
	t.Helper()
	number, ok := a.JSON(t)[member].(json.Number)
	if !ok {
		return -1
	}
	n, err := number.Int64()
	if err != nil {
		t.Fatalf("member %q: %v", member, err)
	}
	return n
}

// testWriter passes the service's log on to the test's.
type testWriter struct{ t testing.TB }

// Write implements io.Writer.
func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}
