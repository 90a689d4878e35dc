package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/internal/testservice"
)

// leaseTime is the time to live of the leases in the races; their clock is moved by twice of it.
const leaseTime = time.Minute

// arena is a service, and what its racing workers do.
type arena struct{ *testservice.Service }

func newArena(t *testing.T, changes ...func(*service.Config)) arena {
	t.Helper()
	return arena{testservice.Start(t, changes...)}
}

// through is the arena as it is reached through a proxy.
func (a arena) through(t *testing.T) (arena, *testproxy.Proxy) {
	t.Helper()
	proxy := testproxy.New(t, "tcp", strings.TrimPrefix(a.URL, "http://"))
	via := *a.Service
	via.URL = "http://" + proxy.Addr
	return arena{&via}, proxy
}

// acquire asks for a lease of july.
func (a arena) acquire(t *testing.T, lease string) testservice.Answer {
	t.Helper()
	return a.DoAs(t, a.Worker, "PUT", "/v1/reports/july/leases/"+lease,
		map[string]any{"holder": "worker of " + lease, "ttl_ms": leaseTime.Milliseconds()})
}

// work acquires, reserves an object whose content is the lease's id, and uploads it: all but the publish.
func (a arena) work(t *testing.T, lease string) (fence string) {
	t.Helper()
	fence = a.acquire(t, lease).Want(t, 201).String(t, "fence")
	a.stage(t, fence, lease)
	return fence
}

// stage reserves an object of july, and uploads its id as its content, as a worker does.
func (a arena) stage(t *testing.T, fence, object string) {
	t.Helper()
	reserved := a.DoAs(t, a.Worker, "PUT", "/v1/reports/july/objects/"+fence+"/"+object,
		map[string]any{"content_type": "text/csv", "size": len(object)}).Want(t, 201)
	var upload struct {
		Upload struct {
			Method, URL string
			Headers     map[string]string
		}
	}
	if err := json.Unmarshal(reserved.Body, &upload); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), upload.Upload.Method, upload.Upload.URL, strings.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range upload.Upload.Headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(response.Body) // for the message alone
		t.Fatalf("upload: %s: %s", response.Status, answer)
	}
}

// publication is the body of a publish of an object; more is merged into it.
func publication(fence, object string, more ...map[string]any) map[string]any {
	body := map[string]any{"fence": fence, "object_id": object}
	for _, m := range more {
		maps.Copy(body, m)
	}
	return body
}

// sent is what came of a request on a connection of its own.
type sent struct {
	testservice.Answer
	err error
}

// send publishes without judging what comes of it.
func (a arena) send(key string, body map[string]any) sent {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return sent{err: err}
	}
	request, err := http.NewRequestWithContext(ctx, "POST", a.URL+"/v1/reports/july/publications", bytes.NewReader(text))
	if err != nil {
		return sent{err: err}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+a.Worker)
	request.Header.Set("Idempotency-Key", key)
	// No connection is used twice: net/http would repeat the request by itself.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return sent{err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return sent{testservice.Answer{Status: response.StatusCode, Header: response.Header, Body: content}, err}
}

// publish sends a publish whose answer must come.
func (a arena) publish(t *testing.T, key string, body map[string]any) testservice.Answer {
	t.Helper()
	s := a.send(key, body)
	if s.err != nil {
		t.Fatalf("publish %q: %v", key, s.err)
	}
	return s.Answer
}

// sending starts a publish, and returns how to wait for what comes of it.
func (a arena) sending(key string, body map[string]any) (wait func() sent) {
	done := make(chan sent, 1)
	go func() { done <- a.send(key, body) }()
	return func() sent { return <-done }
}

// shows fails the test unless readers get the content, as the version given, and there is no later one.
func (a arena) shows(t *testing.T, content string, version int64) {
	t.Helper()
	resolved := a.DoAs(t, a.Reader, "GET", "/v1/reports/july", nil).Want(t, 200)
	if got := resolved.Int(t, "version"); got != version {
		t.Errorf("readers see version %d, want %d", got, version)
	}
	bytes := a.DoAs(t, a.Reader, "GET", "/v1/reports/july/content", nil).Want(t, 200)
	if got := string(bytes.Body); got != content {
		t.Errorf("readers get %q, want %q", got, content)
	}
	history := a.DoAs(t, a.Reader, "GET", "/v1/reports/july/publications", nil).Want(t, 200)
	if got := len(history.JSON(t)["items"].([]any)); int64(got) != version {
		t.Errorf("the history has %d versions, want %d", got, version)
	}
}

// wantStale fails the test unless an answer refuses a fence as stale and names both.
func wantStale(t *testing.T, s sent, presented, highest, reason string) {
	t.Helper()
	if s.err != nil {
		t.Fatal(s.err)
	}
	s.Refused(t, 409, "stale_fence")
	wantMembers(t, s.Answer, map[string]string{
		"presented": presented, "highest": highest, "reason": reason, "outcome": "not_applied",
	})
}

func wantMembers(t *testing.T, a testservice.Answer, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := a.String(t, name); got != value {
			t.Errorf("%s is %q, want %q: %s", name, got, value, a.Body)
		}
	}
}
