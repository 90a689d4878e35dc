package main_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testservice"
)

func TestALeaseIsAcquiredRenewedAndReleased(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	w := workerSettings(s)
	acquire := []string{"lease", "acquire", "july", "--lease-id=a7", "--holder=A"}
	got := fenceline(t, w, acquire...).ends(t, 0)
	for _, line := range []string{"lease_id", "a7", "fence", "1.1", "remaining"} {
		if !strings.Contains(got.Out, line) {
			t.Errorf("%q does not tell %q", got.Out, line)
		}
	}
	var lease map[string]any
	again := fenceline(t, w, append(acquire, "--json")...).ends(t, 0)
	if err := json.Unmarshal([]byte(again.Out), &lease); err != nil || lease["fence"] != "1.1" || lease["lease_id"] != "a7" {
		t.Errorf("as JSON it is %v, %v", again.Out, err)
	}
	fenceline(t, w, "lease", "acquire", "july", "--lease-id=b9").ends(t, 4, "busy")
	fenceline(t, w, "lease", "acquire", "july", "--lease-id=a7", "--holder=B").ends(t, 5)
	fenceline(t, w, "lease", "renew", "july", "a7", "--ttl=1m").ends(t, 0, "1.1")
	fenceline(t, w, "lease", "renew", "july", "b9").ends(t, 6)
	fenceline(t, w, "lease", "release", "july", "a7").ends(t, 0, "released a7 of july")
	fenceline(t, w, "lease", "release", "july", "a7").ends(t, 0)
	fenceline(t, w, "lease", "renew", "july", "a7").ends(t, 8, "released")
	fenceline(t, w, acquire...).ends(t, 8)

	fenceline(t, w, "lease", "acquire", "july", "--lease-id=c1").ends(t, 0, "1.2")
	s.DB.Advance(t, time.Minute)
	fenceline(t, w, "lease", "renew", "july", "c1").ends(t, 8, "expired")
	fenceline(t, w, "lease", "release", "july", "c1").ends(t, 8, "expired")
}

func TestAFileGoesInAndComesOutTheSame(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	w := workerSettings(s)
	reader := []string{"FENCELINE_URL=" + s.URL, "FENCELINE_KEY=" + s.Reader}
	fenceline(t, reader, "get", "july").ends(t, 6)
	for version, content := range []string{"region,total\nnorth,1\n", "", strings.Repeat("0123456789abcdef", 1<<16)} {
		path := write(t, "july.csv", content)
		fenceline(t, w, "publish", "july", path, "-m", "job=nightly").ends(t, 0, "published july version", "july.csv")
		if got := fenceline(t, reader, "get", "july").ends(t, 0); got.Out != content {
			t.Errorf("version %d: %d bytes came out, want %d", version+1, len(got.Out), len(content))
		}
		saved := filepath.Join(t.TempDir(), "saved.csv")
		fenceline(t, reader, "get", "july", "-o", saved).ends(t, 0)
		if got, err := os.ReadFile(saved); err != nil || string(got) != content {
			t.Errorf("version %d: saved %d bytes, %v", version+1, len(got), err)
		}
	}
	if got := fenceline(t, reader, "get", "july", "--version=1").ends(t, 0); got.Out != "region,total\nnorth,1\n" {
		t.Errorf("version 1 came out as %q", got.Out)
	}
	var receipt map[string]any
	as := fenceline(t, w, "publish", "july", write(t, "july.pdf", "%PDF-1.7"), "--json", "--expected-version=3").ends(t, 0)
	if err := json.Unmarshal([]byte(as.Out), &receipt); err != nil || receipt["version"] != 4.0 {
		t.Errorf("the receipt is %s, %v", as.Out, err)
	}
}

func TestEachRefusalHasItsExitCode(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	w := workerSettings(s)
	path := write(t, "july.csv", "region,total\n")
	fenceline(t, w, "get", "august").ends(t, 6)
	fenceline(t, w, "publish", "july", path).ends(t, 0)
	fenceline(t, w, "publish", "july", path, "--expected-version=7").ends(t, 5)
	fenceline(t, w, "get", "july", "--version=9").ends(t, 6)
	fenceline(t, w, "lease", "acquire", "july", "--lease-id=x").ends(t, 0)
	fenceline(t, w, "publish", "july", path).ends(t, 4)
	fenceline(t, []string{w[0], "FENCELINE_KEY=fl_nobody_nothing"}, "get", "july").ends(t, 1)
	fenceline(t, []string{w[0], "FENCELINE_KEY=" + s.Reader}, "publish", "july", path).ends(t, 1)

	s.Storage.Put(t, "reports/july/1.1/july.csv", "tampered with")
	saved := filepath.Join(t.TempDir(), "saved.csv")
	if got := fenceline(t, w, "get", "july", "-o", saved); got.Code == 0 {
		t.Error("bytes that are not those that were published came out")
	}
	if left := names(t, filepath.Dir(saved)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAPublishThatWasOvertakenDuringItsUploadIsStale(t *testing.T) {
	t.Parallel()
	// The storage as the worker sees it: as its bytes arrive there, the lease is revoked.
	var s *testservice.Service
	storage := httptest.NewUnstartedServer(nil)
	t.Cleanup(storage.Close)
	storage.Start()
	s = testservice.Start(t, func(c *service.Config) { c.Bucket.PublicEndpoint = storage.URL })
	server, err := url.Parse(s.Storage.Config.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server)
		r.Out.Host = r.In.Host
	}}
	storage.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Do(t, "POST", "/v1/reports/july/lease/revoke", map[string]any{"reason": "it hangs"})
		forward.ServeHTTP(w, r)
	})
	got := fenceline(t, workerSettings(s), "publish", "july", write(t, "july.csv", "late"))
	got.ends(t, 3, "1.1")
	s.Do(t, "GET", "/v1/reports/july", nil).Refused(t, 404, "not_published")
}
