package staging_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

// life is that of the URLs in these tests, unless they are about it.
const life = 10 * time.Minute

const key = "reports/july/1.42/july.csv"

func TestUploadWorksAsHandedOut(t *testing.T) {
	t.Parallel()
	megabyte := strings.Repeat("0123456789abcdef", 1<<16)
	for name, tc := range map[string]struct {
		body     string
		declared staging.PutDeclaration
	}{
		"nothing declared":       {megabyte, staging.PutDeclaration{}},
		"csv with type":          {"a,b\n1,2\n", staging.PutDeclaration{ContentType: "text/csv; charset=utf-8"}},
		"pdf with size":          {"%PDF-1.7", staging.PutDeclaration{ContentType: "application/pdf", Size: new(int64(8))}},
		"digest":                 {megabyte, staging.PutDeclaration{SHA256: sum(megabyte)}},
		"all declared":           {"x", staging.PutDeclaration{ContentType: "text/plain", Size: new(int64(1)), SHA256: sum("x")}},
		"empty":                  {"", staging.PutDeclaration{}},
		"empty, declared":        {"", staging.PutDeclaration{Size: new(int64(0))}},
		"empty, digest declared": {"", staging.PutDeclaration{Size: new(int64(0)), SHA256: sum("")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbucket.New(t)
			upload := presignPut(t, b.Open(t), tc.declared)
			if status := send(t, upload, tc.body); status != http.StatusOK {
				t.Fatalf("got status %d, want 200", status)
			}
			if got := b.Get(t, key); got != tc.body {
				t.Errorf("%d bytes came out, want the %d that went in", len(got), len(tc.body))
			}
		})
	}
}

func TestCurlUploadsAMebibyteToTheURLAsHandedOut(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	body := strings.Repeat("0123456789abcdef", 1<<16)
	file := filepath.Join(t.TempDir(), "july.csv")
	must(t, "write a file", os.WriteFile(file, []byte(body), 0o600))
	digest := sha256.Sum256([]byte(body))
	for name, declared := range map[string]staging.PutDeclaration{
		"nothing": {}, "size": {Size: new(int64(len(body)))},
		"all": {Size: new(int64(len(body))), SHA256: hex.EncodeToString(digest[:]), ContentType: "text/csv"},
	} {
		u, err := b.Open(t).PresignPut(t.Context(), name, declared, life)
		must(t, "presign", err)
		args := []string{"-sS", "--fail-with-body", "-T", file, u.URL}
		for header, value := range u.Headers {
			args = append(args, "-H", header+": "+value)
		}
		if said, err := exec.CommandContext(t.Context(), "curl", args...).CombinedOutput(); err != nil {
			t.Errorf("declared %s: curl ended in %v: %s", name, err, said)
			continue
		}
		if b.Get(t, name) != body {
			t.Errorf("declared %s: other bytes are there than were uploaded", name)
		}
	}
}

func TestStorageRefusesWhatWasNotSigned(t *testing.T) {
	t.Parallel()
	declared := staging.PutDeclaration{ContentType: "text/csv", Size: new(int64(4)), SHA256: sum("a,b\n")}
	for name, tc := range map[string]struct {
		declared staging.PutDeclaration
		body     string
		change   func(headers map[string]string)
	}{
		"another length":           {staging.PutDeclaration{Size: new(int64(4))}, "a,b,c\n", nil},
		"bytes where none were":    {staging.PutDeclaration{Size: new(int64(0))}, "a,b\n", nil},
		"other bytes":              {declared, "x,y\n", nil},
		"another digest":           {declared, "x,y\n", func(h map[string]string) { h["X-Amz-Checksum-Sha256"] = checksum("x,y\n") }},
		"no digest":                {declared, "a,b\n", func(h map[string]string) { delete(h, "X-Amz-Checksum-Sha256") }},
		"another type":             {declared, "a,b\n", func(h map[string]string) { h["Content-Type"] = "text/html" }},
		"leave to overwrite":       {declared, "a,b\n", func(h map[string]string) { delete(h, "If-None-Match") }},
		"leave to overwrite a tag": {declared, "a,b\n", func(h map[string]string) { h["If-None-Match"] = `"x"` }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbucket.New(t)
			upload := presignPut(t, b.Open(t), tc.declared)
			if tc.change != nil {
				tc.change(upload.Headers)
			}
			if status := send(t, upload, tc.body); status/100 != 4 {
				t.Errorf("got status %d, want a refusal", status)
			}
			if keys := b.Keys(t); len(keys) > 0 {
				t.Errorf("the storage took it: %v", keys)
			}
		})
	}
}

func TestBytesOfAKeyAreWrittenOnce(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket := b.Open(t)
	first, second := presignPut(t, bucket, staging.PutDeclaration{}), presignPut(t, bucket, staging.PutDeclaration{})
	if status := send(t, first, "first"); status != http.StatusOK {
		t.Fatalf("got status %d, want 200", status)
	}
	for name, upload := range map[string]staging.Upload{"same URL": first, "another URL": second} {
		if status := send(t, upload, "later"); status != http.StatusPreconditionFailed {
			t.Errorf("%s: got status %d, want 412", name, status)
		}
	}
	if got := b.Get(t, key); got != "first" {
		t.Errorf("got bytes %q, want the first ones", got)
	}
}

func TestUploadListsExactlyWhatMustBeSent(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Config.PublicEndpoint = "https://files.example.com"
	before := time.Now().Truncate(time.Second)
	upload := presignPut(t, b.Open(t), staging.PutDeclaration{
		ContentType: "text/csv", Size: new(int64(4)), SHA256: sum("a,b\n"),
	})

	want := map[string]string{
		"If-None-Match":         "*",
		"Content-Type":          "text/csv",
		"X-Amz-Checksum-Sha256": checksum("a,b\n"),
	}
	if diff := cmp.Diff(want, upload.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	u, err := url.Parse(upload.URL)
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "files.example.com" || u.Path != "/"+b.Config.Bucket+"/"+key {
		t.Errorf("got URL %s, want one at the public endpoint", upload.URL)
	}
	if signed := u.Query().Get("X-Amz-SignedHeaders"); signed != "content-length;content-type;host;if-none-match;x-amz-checksum-sha256" {
		t.Errorf("signed headers are %s", signed)
	}
	for name := range u.Query() {
		if strings.Contains(strings.ToLower(name), "checksum") {
			t.Errorf("the URL carries %s", name)
		}
	}
	if at := upload.ExpiresAt; at.Before(before.Add(life)) || at.After(time.Now().Add(life)) {
		t.Errorf("got expiry %v, want %v from now", at, life)
	}
}

func TestPresignPutRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	bucket := testbucket.New(t).Open(t)
	for name, tc := range map[string]struct {
		declared staging.PutDeclaration
		life     time.Duration
	}{
		"negative size":     {staging.PutDeclaration{Size: new(int64(-1))}, life},
		"over a single PUT": {staging.PutDeclaration{Size: new(staging.MaxUploadSize + 1)}, life},
		"no digest at all":  {staging.PutDeclaration{SHA256: "abc"}, life},
		"no life":           {staging.PutDeclaration{}, 0},
		"over seven days":   {staging.PutDeclaration{}, 8 * 24 * time.Hour},
	} {
		if _, err := bucket.PresignPut(t.Context(), key, tc.declared, tc.life); err == nil {
			t.Errorf("%s: got a URL", name)
		}
	}
}

func TestURLNeverOutlivesItsCredentials(t *testing.T) {
	b := testbucket.New(t)
	expires := time.Now().Add(3 * time.Minute).Truncate(time.Second).UTC()
	dir := t.TempDir()
	answer := fmt.Sprintf(`{"Version":1,"AccessKeyId":%q,"SecretAccessKey":%q,"Expiration":%q}`,
		os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), expires.Format(time.RFC3339))
	profile := fmt.Sprintf("[default]\ncredential_process = cat %s/answer\n", dir)
	for name, content := range map[string]string{"answer": answer, "config": profile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")

	upload, err := b.Open(t).PresignPut(t.Context(), key, staging.PutDeclaration{}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if upload.ExpiresAt.After(expires) || upload.ExpiresAt.Before(expires.Add(-10*time.Second)) {
		t.Errorf("got expiry %v, want that of the credentials, %v", upload.ExpiresAt, expires)
	}
	if status := send(t, upload, "x"); status != http.StatusOK {
		t.Errorf("got status %d, want 200", status)
	}
}

func TestDownloadCarriesTypeAndName(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Put(t, key, "a,b\n")
	for name, tc := range map[string]struct {
		filename, want string
	}{
		"plain":     {"july.csv", "attachment; filename=july.csv"},
		"quotes":    {`a "b".csv`, `attachment; filename="a \"b\".csv"`},
		"not ASCII": {"Jüli.csv", "attachment; filename*=utf-8''J%C3%BCli.csv"},
		"no name":   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			download, err := b.Open(t).PresignGet(t.Context(), key, "", "text/csv", tc.filename, life)
			if err != nil {
				t.Fatal(err)
			}
			body, header := fetch(t, download.URL)
			got := []string{body, header.Get("Content-Type"), header.Get("Content-Disposition")}
			if diff := cmp.Diff([]string{"a,b\n", "text/csv", tc.want}, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDownloadServesTheVersionThatItNames(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	_, sealed := b.Put(t, key, "sealed")
	b.Put(t, key, "changed")
	download, err := b.Open(t).PresignGet(t.Context(), key, sealed, "", "", life)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := fetch(t, download.URL); body != "sealed" {
		t.Errorf("got bytes %q, want those of the version", body)
	}
}

func presignPut(t testing.TB, bucket *staging.Bucket, declared staging.PutDeclaration) staging.Upload {
	t.Helper()
	upload, err := bucket.PresignPut(t.Context(), key, declared, life)
	if err != nil {
		t.Fatal(err)
	}
	return upload
}

// send uploads body as a client with no knowledge of S3 does, and returns the
// status.
func send(t testing.TB, upload staging.Upload, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), upload.Method, upload.URL, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range upload.Headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func fetch(t testing.TB, from string) (string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("got status %d, error %v, body %s", answer.StatusCode, err, body)
	}
	return string(body), answer.Header
}

// sum is the SHA-256 of body in hex, checksum the same as S3 writes it.
func sum(body string) string {
	digest := sha256.Sum256([]byte(body))
	return hex.EncodeToString(digest[:])
}

func checksum(body string) string {
	digest := sha256.Sum256([]byte(body))
	return base64.StdEncoding.EncodeToString(digest[:])
}
