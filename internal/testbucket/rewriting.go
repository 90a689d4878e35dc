package testbucket

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Rewriting is a server before the storage that changes requests on the way, and signs them anew: what the client
// signed is not what is sent.
func (b *Bucket) Rewriting(t testing.TB, change func(*http.Request)) http.Handler {
	t.Helper()
	next := b.Proxy(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change(r)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a request: %v", err)
		}
		digest := sha256.Sum256(body)
		hash := hex.EncodeToString(digest[:])
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Del("Authorization")
		for name := range r.Header {
			if strings.HasPrefix(name, "Amz-Sdk-") || name == "Accept-Encoding" {
				r.Header.Del(name) // proxies may change them
			}
		}
		r.Header.Set("X-Amz-Content-Sha256", hash)
		credentials, err := b.client.Options().Credentials.Retrieve(r.Context())
		if err != nil {
			t.Errorf("credentials: %v", err)
		}
		r.URL.Scheme, r.URL.Host = "http", r.Host
		err = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(
			r.Context(), credentials, r, hash, "s3", b.Config.Region, time.Now())
		if err != nil {
			t.Errorf("sign a request: %v", err)
		}
		next.ServeHTTP(w, r)
	})
}

// InPagesOf is the storage as one whose lists come in pages of n at most.
func (b *Bucket) InPagesOf(t testing.TB, n string) http.Handler {
	t.Helper()
	return b.Rewriting(t, func(r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.Method != http.MethodGet:
			return
		case query.Has("list-type"), query.Has("versions"):
			query.Set("max-keys", n)
		case query.Has("uploads"):
			query.Set("max-uploads", n)
		default:
			return
		}
		r.URL.RawQuery = query.Encode()
	})
}
