package testbucket

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// Proxy forwards requests to the storage as they came: their signatures are for the host that they name.
func (b *Bucket) Proxy(t testing.TB) *httputil.ReverseProxy {
	t.Helper()
	server := &url.URL{Scheme: "http", Host: b.Address(t)}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server)
		r.Out.Host = r.In.Host
	}}
}

// Behind starts a server before the storage, and returns the bucket as it is seen through it. What the
// returned bucket does by itself goes past the server still.
func (b *Bucket) Behind(t testing.TB, handler http.Handler) *Bucket {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	through := *b
	through.Config.Endpoint = server.URL
	return &through
}

// IgnoringConditions returns the bucket as a storage has it that ignores If-None-Match: *.
func (b *Bucket) IgnoringConditions(t testing.TB) *Bucket {
	t.Helper()
	return b.Behind(t, b.Overwriting(t, 0, 0, http.StatusOK))
}

// Overwriting is a storage that, for the creates from the first to the last (0: for all), writes whatever the
// condition says, and answers with status. It writes with credentials of its own: the condition is part of the
// client's signature.
func (b *Bucket) Overwriting(t testing.TB, first, last int32, status int) http.Handler {
	t.Helper()
	var creates atomic.Int32
	next := b.Proxy(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			next.ServeHTTP(w, r)
			return
		}
		if n := creates.Add(1); n < first || last > 0 && n > last {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read create: %v", err)
		}
		etag, version := b.Put(t, strings.TrimPrefix(r.URL.Path, "/"+b.Config.Bucket+"/"), string(body))
		w.Header().Set("ETag", etag)
		if version != "" {
			w.Header().Set("X-Amz-Version-Id", version)
		}
		w.WriteHeader(status)
	})
}
