package staging_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestOpenBucketNamesTheWrongSetting(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  staging.BucketConfig
		want string
	}{
		"no bucket":                  {staging.BucketConfig{}, "name of the bucket"},
		"endpoint without scheme":    {staging.BucketConfig{Bucket: "b", Endpoint: "localhost:7070"}, "endpoint"},
		"endpoint without host":      {staging.BucketConfig{Bucket: "b", Endpoint: "https:///x"}, "endpoint"},
		"public endpoint with query": {staging.BucketConfig{Bucket: "b", PublicEndpoint: "https://x?y"}, "public endpoint"},
		"prefix with empty segment":  {staging.BucketConfig{Bucket: "b", Prefix: "a//b"}, "prefix"},
		"prefix that begins empty":   {staging.BucketConfig{Bucket: "b", Prefix: "/"}, "prefix"},
		"prefix that climbs":         {staging.BucketConfig{Bucket: "b", Prefix: "a/../b"}, "prefix"},
		"prefix with a space":        {staging.BucketConfig{Bucket: "b", Prefix: "a b"}, "prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := staging.OpenBucket(t.Context(), tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that names the %s", err, tc.want)
			}
		})
	}
}

func TestOpenBucketSendsNothing(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the server was asked: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(server.Close)
	cfg := staging.BucketConfig{Bucket: "b", Prefix: "a/b", Endpoint: server.URL, PublicEndpoint: "https://s3.example.com"}
	if _, err := staging.OpenBucket(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func TestBucketTrustsTheBundleOfTheEnvironment(t *testing.T) {
	b := testbucket.New(t)
	etag, _ := b.Put(t, "reports/july/1.1/july.csv", "a,b\n")
	server := httptest.NewTLSServer(b.Proxy(t))
	t.Cleanup(server.Close)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(bundle, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Config.Endpoint = server.URL
	t.Setenv("AWS_CA_BUNDLE", bundle)

	opened := b.Open(t)
	stat, err := opened.Head(t.Context(), "reports/july/1.1/july.csv", "")
	if err != nil {
		t.Fatal(err)
	}
	if stat.ETag != etag {
		t.Errorf("got ETag %s, want %s", stat.ETag, etag)
	}
	const key = "reports/july/1.1/parts.csv"
	upload, err := opened.CreateUpload(t.Context(), key, "")
	must(t, "create upload", err)
	// Some servers do not know an upload of which nothing has come.
	err = opened.CompleteUpload(t.Context(), key, upload, []staging.Part{{Number: 1, ETag: "x"}})
	if !errors.Is(err, staging.ErrNotCompleted) && !errors.Is(err, staging.ErrNoBytes) {
		t.Errorf("got error %v, want ErrNotCompleted or ErrNoBytes", err)
	}
}

func TestMissingCredentialsAreAnUnavailableStorage(t *testing.T) {
	b := testbucket.New(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	bucket := b.Open(t)

	_, presignErr := bucket.PresignPut(t.Context(), "k", staging.PutDeclaration{}, life)
	_, headErr := bucket.Head(t.Context(), "k", "")
	for what, err := range map[string]error{"presign": presignErr, "head": headErr} {
		if !errors.Is(err, staging.ErrStorageUnavailable) {
			t.Errorf("%s: got error %v, want ErrStorageUnavailable", what, err)
		}
	}
}

func TestStorageThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(refusing.Close)
	for name, endpoint := range map[string]string{"nobody listens": closed.URL, "answers 503": refusing.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbucket.New(t)
			b.Config.Endpoint = endpoint
			bucket := b.Open(t)

			_, headErr := bucket.Head(t.Context(), "k", "")
			_, _, openErr := bucket.Open(t.Context(), "k", "", `"e"`, staging.Range{})
			_, deleteErr := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: "k"}}, nil)
			for what, err := range map[string]error{"head": headErr, "open": openErr, "delete": deleteErr} {
				if !errors.Is(err, staging.ErrStorageUnavailable) {
					t.Errorf("%s: got error %v, want ErrStorageUnavailable", what, err)
				}
			}
		})
	}
}
