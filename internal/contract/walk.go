package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Role is whose key a request shows.
type Role string

// The roles, and none.
const (
	Nobody   Role = ""
	Reader   Role = "reader"
	Worker   Role = "worker"
	Operator Role = "operator"
)

// body is a JSON object that is sent.
type body = map[string]any

// raw is a body that is sent as it stands.
type raw string

// Walk is one case under way. Its report is its own. What goes wrong is noted, and the case goes on, unless a step
// was needed for the next.
type Walk struct {
	*Server
	client  *http.Client
	request func(method, url string, content io.Reader) (*http.Request, error)
	report  string

	mu       sync.Mutex
	seen     []Answer
	failures []string
}

// Fail notes what is not as the contract says.
func (w *Walk) Fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

// Stop notes what is wrong and ends the case: what would follow depends on it. Like a test's, a case runs in a
// goroutine of its own.
func (w *Walk) Stop(format string, args ...any) {
	w.Fail(format, args...)
	runtime.Goexit()
}

// Check notes a failure unless ok.
func (w *Walk) Check(ok bool, format string, args ...any) {
	if !ok {
		w.Fail(format, args...)
	}
}

// Must ends the case over an error of what it needs to go on.
func (w *Walk) Must(err error) {
	if err != nil {
		w.Stop("the fault could not be brought about: %v", err)
	}
}

// See takes an answer for what the row is about: it is compared with the row.
func (w *Walk) See(a Answer) Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, a)
	return a
}

// Want ends the case unless the answer has the status.
func (w *Walk) Want(a Answer, status int) Answer {
	if a.Status != status {
		w.Stop("%s %s: %s, not %d: %s", a.Method, a.Path, a, status, bytes.TrimSpace(a.Body))
	}
	return a
}

// Do sends one request with a role's key. A path that does not begin with a slash is below the case's own report. A
// pair of strings in headers is a header; one with an empty value is left away.
func (w *Walk) Do(role Role, method, path string, content any, headers ...string) Answer {
	return w.DoWith(w.Server.Keys[role], method, path, content, headers...)
}

// DoWith is Do with any key.
func (w *Walk) DoWith(key, method, path string, content any, headers ...string) Answer {
	a, err := w.send(key, method, path, content, headers...)
	if err != nil {
		w.Stop("%s %s: %v", method, path, err)
	}
	for _, fault := range a.faults() {
		w.Fail("%s", fault)
	}
	return a
}

func (w *Walk) send(key, method, path string, content any, headers ...string) (Answer, error) {
	if !strings.HasPrefix(path, "/") {
		path = w.below(w.report, path)
	}
	a := Answer{Method: method, Path: path}
	sent, err := encode(content)
	if err != nil {
		return a, err
	}
	request, err := w.request(method, w.URL+path, sent)
	if err != nil {
		return a, err
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Del(headers[i])
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := w.client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.Status, a.Header = response.StatusCode, response.Header
	a.Body, err = io.ReadAll(response.Body)
	return a, err
}

// below is an address below a report's own; of the report itself with an empty path.
func (w *Walk) below(report, path string) string {
	if path == "" || strings.HasPrefix(path, "?") {
		return "/v1/reports/" + report + path
	}
	return "/v1/reports/" + report + "/" + path
}

// encode makes a body as it goes over the wire.
func encode(content any) (io.Reader, error) {
	switch content := content.(type) {
	case nil:
		return nil, nil
	case raw:
		return strings.NewReader(string(content)), nil
	case io.Reader:
		return content, nil
	}
	text, err := json.Marshal(content)
	return bytes.NewReader(text), err
}

// Reader is Do with the reader's key.
func (w *Walk) Reader(method, path string, content any, headers ...string) Answer {
	return w.Do(Reader, method, path, content, headers...)
}

// Worker is Do with the worker's key.
func (w *Walk) Worker(method, path string, content any, headers ...string) Answer {
	return w.Do(Worker, method, path, content, headers...)
}

// Operator is Do with the operator's key.
func (w *Walk) Operator(method, path string, content any, headers ...string) Answer {
	return w.Do(Operator, method, path, content, headers...)
}

// Await returns once it holds, and ends the case if that takes too long.
func (w *Walk) Await(what string, holds func() bool) {
	const patience, interval = 40 * time.Second, 20 * time.Millisecond
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-deadline:
			w.Stop("waited %v in vain until %s", patience, what)
		case <-time.After(interval):
		}
	}
}
