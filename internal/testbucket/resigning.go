package testbucket

import (
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Resigning is Proxy that lets a test edit the query of what is sent on, and signs it anew: as if the client had asked so.
func (b *Bucket) Resigning(t testing.TB, edit func(query url.Values)) *httputil.ReverseProxy {
	t.Helper()
	server := &url.URL{Scheme: "http", Host: b.Address(t)}
	credentials := aws.Credentials{AccessKeyID: required(t, "AWS_ACCESS_KEY_ID"), SecretAccessKey: required(t, "AWS_SECRET_ACCESS_KEY")}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(server)
		query := r.Out.URL.Query()
		edit(query)
		r.Out.URL.RawQuery = query.Encode()
		r.Out.Header.Del("Authorization")
		err := v4.NewSigner().SignHTTP(r.In.Context(), credentials, r.Out, r.Out.Header.Get("X-Amz-Content-Sha256"), "s3", b.Config.Region, time.Now())
		if err != nil {
			t.Errorf("sign: %v", err)
		}
	}}
}

// PagesOf has every listing come in pages of at most n.
func PagesOf(n string) func(url.Values) {
	return func(query url.Values) {
		for of, limit := range map[string]string{"list-type": "max-keys", "versions": "max-keys", "uploads": "max-uploads"} {
			if query.Has(of) {
				query.Set(limit, n)
			}
		}
	}
}
