package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/api"
)

func TestTheDocumentIsAPageThatLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t, api.Config{})
	page := ask(t, s, http.MethodGet, "/docs", "")
	if page.Status != 200 || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d, %s", page.Status, page.Header.Get("Content-Type"))
	}
	if !strings.Contains(page.Body, "/openapi.yaml") {
		t.Error("it does not show the document that the service serves")
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") {
		t.Errorf("its policy is %q", policy)
	}
	if other := regexp.MustCompile(`(?:src|href)="(?:https?:)?//[^"]*"`).FindString(page.Body); other != "" {
		t.Errorf("it loads %s", other)
	}
	parts := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page.Body, -1)
	if len(parts) < 3 {
		t.Fatalf("only %d parts were found", len(parts))
	}
	for _, part := range parts {
		got := ask(t, s, http.MethodGet, part[1], "")
		if got.Status != 200 || got.Body == "" || got.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d, %d bytes", part[1], got.Status, len(got.Body))
		}
	}
}

func TestAPartThatThePageDoesNotHaveIsNotFound(t *testing.T) {
	t.Parallel()
	s := start(t, api.Config{})
	for _, path := range []string{"/docs/nothing.js", "/docs/..%2fgo.mod", "/docs/"} {
		if got := ask(t, s, http.MethodGet, path, ""); got.Status != 404 || !strings.Contains(got.Body, `"code":"not_found"`) {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}
