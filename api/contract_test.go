package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// The tests of the contract, a file for each of its sections, ask the whole service over real connections, and
// every answer is held against the conventions and the OpenAPI document (see conformance).

// doc is a JSON object.
type doc = map[string]any

// raw is a body that is sent as it stands.
type raw string

// world is a service of the test's own, and what its log has said.
type world struct {
	*testservice.Service
	client *http.Client
	log    *logBuffer
}

// begin starts a service on a database and a bucket of its own. When the test ends, its log is searched for
// secrets.
func begin(t *testing.T, changes ...func(*service.Config)) *world {
	t.Helper()
	return beginOn(t, testdb.New(t), changes...)
}

func beginOn(t *testing.T, db *testdb.DB, changes ...func(*service.Config)) *world {
	t.Helper()
	w := &world{log: newLogBuffer()}
	w.client = &http.Client{Transport: conformance{t: t, next: &http.Transport{MaxIdleConnsPerHost: 8}}}
	t.Cleanup(func() { w.checkLog(t) })
	w.Service = testservice.StartOn(t, db, append([]func(*service.Config){func(c *service.Config) {
		c.Log = w.log.logger()
	}}, changes...)...)
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// secretKey matches an API key, known or not.
var secretKey = regexp.MustCompile(`(?i)fl_[a-z0-9]{8,16}_[a-z0-9]+`)

// checkLog looks for what no log may hold.
func (w *world) checkLog(t *testing.T) {
	t.Helper()
	text := w.log.String()
	for _, secret := range []string{"X-Amz-Signature", "Authorization", "Bearer ", "Basic "} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if key := secretKey.FindString(text); key != "" {
		t.Errorf("the log holds the key %s…", key[:len(key)/2])
	}
	if t.Failed() {
		t.Logf("log of the service:\n%s", text)
	}
}

// Do sends one request with the operator's key.
func (w *world) Do(t *testing.T, method, path string, body any, headers ...string) testservice.Answer {
	t.Helper()
	return w.DoAs(t, w.Operator, method, path, body, headers...)
}

// DoAs sends one request with a key, or without any. A pair of strings in headers is a header; one with an
// empty value is left away.
func (w *world) DoAs(t *testing.T, key, method, path string, body any, headers ...string) testservice.Answer {
	t.Helper()
	response, err := w.client.Do(w.request(t, key, method, path, body, headers...))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return testservice.Answer{Status: response.StatusCode, Header: response.Header, Body: got}
}

func (w *world) request(t *testing.T, key, method, path string, body any, headers ...string) *http.Request {
	t.Helper()
	var content io.Reader
	switch body := body.(type) {
	case nil:
	case raw:
		content = strings.NewReader(string(body))
	case io.Reader:
		content = body
	default:
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, w.URL+path, content)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	named := map[string]bool{}
	for i := 0; i+1 < len(headers); i += 2 {
		if name := headers[i]; !named[name] { // a second one of the test's own is added
			named[name] = true
			r.Header.Del(name)
		}
		if headers[i+1] != "" {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	return r
}

// grant acquires a lease of 30 s and returns its fence.
func (w *world) grant(t *testing.T, report, leaseID string) string {
	t.Helper()
	return w.DoAs(t, w.Worker, "PUT", "/v1/reports/"+report+"/leases/"+leaseID,
		doc{"holder": "worker-7", "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
}

// overtake lets the present lease expire and grants the next one.
func (w *world) overtake(t *testing.T, report, leaseID string) string {
	t.Helper()
	w.DB.Advance(t, 31*time.Second)
	return w.grant(t, report, leaseID)
}

func objectPath(report, fence, object string) string {
	return "/v1/reports/" + report + "/objects/" + fence + "/" + object
}

// stage reserves an object, uploads its bytes by the presigned URL and returns the reservation.
func (w *world) stage(t *testing.T, report, fence, object, content string, declared doc) testservice.Answer {
	t.Helper()
	if declared == nil {
		declared = doc{}
	}
	reserved := w.DoAs(t, w.Worker, "PUT", objectPath(report, fence, object), declared).Want(t, 201)
	if status, answer := upload(t, reserved, content); status != 200 {
		t.Fatalf("upload: %d %s", status, answer)
	}
	return reserved
}

// upload sends bytes the way a worker does that knows nothing of S3: the method, the URL and exactly the
// headers that it was told.
func upload(t *testing.T, reserved testservice.Answer, content string) (status int, answer string) {
	t.Helper()
	var told struct {
		Upload struct {
			Method, URL string
			Headers     map[string]string
		}
	}
	if err := json.Unmarshal(reserved.Body, &told); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), told.Upload.Method, told.Upload.URL, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range told.Upload.Headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// publish asks for one publish with a worker's key.
func (w *world) publish(t *testing.T, report, idempotencyKey string, body any, headers ...string) testservice.Answer {
	t.Helper()
	return w.DoAs(t, w.Worker, "POST", "/v1/reports/"+report+"/publications", body,
		append([]string{"Idempotency-Key", idempotencyKey}, headers...)...)
}

// published is a report whose first version shows content, staged as july.csv under the fence that it returns.
func (w *world) published(t *testing.T, report, content string, declared doc) (fence string) {
	t.Helper()
	fence = w.grant(t, report, "a7")
	w.stage(t, report, fence, "july.csv", content, declared)
	w.publish(t, report, "k1", doc{"fence": fence, "object_id": "july.csv"}).Want(t, 201)
	return fence
}

// get asks with a reader's key.
func (w *world) get(t *testing.T, path string, headers ...string) testservice.Answer {
	t.Helper()
	return w.DoAs(t, w.Reader, "GET", path, nil, headers...)
}

// members fails the test unless the answer has exactly these members.
func members(t *testing.T, a testservice.Answer, want ...string) {
	t.Helper()
	var got []string
	for name := range a.JSON(t) {
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("members %q, want %q: %s", got, want, a.Body)
	}
}

// equal fails the test unless each member of the answer is what is wanted, as JSON.
func equal(t *testing.T, a testservice.Answer, want doc) {
	t.Helper()
	got := a.JSON(t)
	for name, value := range want {
		w, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		g, err := json.Marshal(got[name])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w, g) {
			t.Errorf("%s is %s, want %s", name, g, w)
		}
	}
}
