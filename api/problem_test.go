package api_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/api"
)

func TestAnUnknownAddressIsAProblemDocument(t *testing.T) {
	t.Parallel()
	got := ask(t, start(t, api.Config{}), http.MethodGet, "/v1/nothing", "")
	want := map[string]any{
		"type": "urn:fenceline:problem:not_found", "title": "Not found", "status": 404.0,
		"detail": "There is nothing at this address.", "code": "not_found",
	}
	if diff := cmp.Diff(want, got.JSON); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if got.Status != 404 || got.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, content type %q", got.Status, got.Header.Get("Content-Type"))
	}
}

func TestAWrongMethodIsToldTheRightOnes(t *testing.T) {
	t.Parallel()
	got := ask(t, start(t, api.Config{}), http.MethodPost, "/livez", "")
	if got.Status != 405 || got.JSON["code"] != "method_not_allowed" || got.JSON["outcome"] != "not_applied" {
		t.Errorf("answer: %d %v", got.Status, got.JSON)
	}
	if allow := got.Header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "HEAD") {
		t.Errorf("Allow: %q", allow)
	}
}

func TestAPanicIsA500WhoseReasonShowsInTheLogAlone(t *testing.T) {
	t.Parallel()
	log := newLogBuffer()
	server := start(t, api.Config{Log: log.logger()}, api.Route{
		Method: http.MethodPost, Path: "/panics", Mutates: true,
		Handler: func(echo.Context) error { panic("secret thought") },
	})
	got := ask(t, server, http.MethodPost, "/panics", "")
	if got.Status != 500 || got.JSON["code"] != "internal" || got.JSON["outcome"] != "unknown" {
		t.Errorf("answer: %d %v", got.Status, got.JSON)
	}
	if strings.Contains(got.Body, "secret thought") || strings.Contains(got.Body, ".go") {
		t.Errorf("the answer shows the inside: %s", got.Body)
	}
	if text := log.String(); !strings.Contains(text, "secret thought") || !strings.Contains(text, "problem_test.go") {
		t.Errorf("the log does not show the panic and its stack: %s", text)
	}
	if next := ask(t, server, http.MethodGet, "/livez", ""); next.Status != 200 {
		t.Errorf("the request after a panic: %d", next.Status)
	}
}

func TestAnUnlistedErrorIsLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	log := newLogBuffer()
	server := start(t, api.Config{Log: log.logger()}, api.Route{
		Method: http.MethodGet, Path: "/fails",
		Handler: func(echo.Context) error { return errors.New("relation object does not exist") },
	})
	got := ask(t, server, http.MethodGet, "/fails", "")
	if got.Status != 500 || strings.Contains(got.Body, "relation") {
		t.Errorf("answer: %d %s", got.Status, got.Body)
	}
	if _, shown := got.JSON["outcome"]; shown {
		t.Errorf("a route that changes nothing tells an outcome: %s", got.Body)
	}
	if !strings.Contains(log.String(), "relation object does not exist") {
		t.Errorf("log: %s", log)
	}
}

func TestAnErrorInTheMiddleOfAnAnswerBreaksTheConnection(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, api.Route{
		Method: http.MethodGet, Path: "/half", Streams: true,
		Handler: func(c echo.Context) error {
			_, _ = c.Response().Write([]byte("half"))
			c.Response().Flush()
			return errors.New("the storage went away")
		},
	})
	if body, err := get(server.URL + "/half"); err == nil {
		t.Errorf("half an answer passes for a whole one: %q", body)
	}
}

func TestOnlyARouteThatChangesSomethingTellsAnOutcome(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{},
		api.Route{Method: http.MethodPost, Path: "/ask", Handler: noContent},
		api.Route{Method: http.MethodPost, Path: "/change", Mutates: true, Handler: noContent})
	for path, want := range map[string]any{"/ask": nil, "/change": "not_applied", "/nowhere": "not_applied"} {
		got := ask(t, server, http.MethodPost, path+"?x=1", "")
		if got.JSON["code"] == nil || got.JSON["outcome"] != want {
			t.Errorf("%s: %d %s, want outcome %v", path, got.Status, got.Body, want)
		}
	}
}

func TestEveryAnswerCarriesARequestID(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{})
	fresh := regexp.MustCompile(`^[A-Z2-7]{20,}$`)
	for _, sent := range []string{"", strings.Repeat("a", 129), "two words", "naïve", "<script>"} {
		got := ask(t, server, http.MethodGet, "/livez", "", "X-Request-Id", sent).Header.Get("X-Request-Id")
		if !fresh.MatchString(got) {
			t.Errorf("sent %q, got %q, want a new one", sent, got)
		}
	}
	for _, sent := range []string{"a", "0af7-65.1_x", strings.Repeat("Z", 128)} {
		for _, path := range []string{"/livez", "/nothing"} {
			if got := ask(t, server, http.MethodGet, path, "", "X-Request-Id", sent).Header.Get("X-Request-Id"); got != sent {
				t.Errorf("%s: sent %q, got %q", path, sent, got)
			}
		}
	}
}

func TestReadyzNamesWhatFailsAndNotWhy(t *testing.T) {
	t.Parallel()
	log := newLogBuffer()
	server := start(t, api.Config{Log: log.logger(), Ready: []api.Check{
		{Name: "schema", Works: works},
		{Name: "database", Works: failsWith("dial tcp 10.0.0.7:5432")},
	}})
	got := ask(t, server, http.MethodGet, "/readyz", "")
	want := []any{
		map[string]any{"name": "process", "status": "ok"},
		map[string]any{"name": "schema", "status": "ok"},
		map[string]any{"name": "database", "status": "failing"},
	}
	if diff := cmp.Diff(want, got.JSON["checks"]); diff != "" || got.Status != 503 {
		t.Errorf("status %d, checks (-want +got):\n%s", got.Status, diff)
	}
	if got.Header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	if strings.Contains(got.Body, "10.0.0.7") || !strings.Contains(log.String(), "10.0.0.7") {
		t.Errorf("body %s, log %s", got.Body, log)
	}

	ready := ask(t, start(t, api.Config{Ready: []api.Check{{Name: "database", Works: works}}}), http.MethodGet, "/readyz", "")
	if ready.Status != 200 || ready.JSON["status"] != "ready" {
		t.Errorf("ready: %d %s", ready.Status, ready.Body)
	}
}
