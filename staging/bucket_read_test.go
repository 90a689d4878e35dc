package staging_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestHeadVouchesOnlyForADigestOfTheWhole(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket := b.Open(t)
	if status := send(t, presignPut(t, bucket, staging.PutDeclaration{SHA256: sum("whole")}), "whole"); status != http.StatusOK {
		t.Fatalf("got status %d, want 200", status)
	}
	plain, _ := b.Put(t, "plain", "plain")
	composite := b.PutMultipart(t, "composite", "composite")
	for name, want := range map[string]staging.Stat{
		key:         {Size: 5, SHA256: sum("whole")},
		"plain":     {Size: 5, ETag: plain},
		"composite": {Size: 9, ETag: composite},
	} {
		got, err := bucket.Head(t.Context(), name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want.ETag == "" {
			want.ETag = got.ETag
		}
		if !b.TypesChecksums(t, name) { // then it vouches for none
			want.SHA256 = ""
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(staging.Stat{}, "LastModified")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.LastModified.IsZero() {
			t.Errorf("%s: no time", name)
		}
	}
}

func TestHeadTrustsOnlyAChecksumThatIsSaidToBeOfTheWhole(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	if status := send(t, presignPut(t, b.Open(t), staging.PutDeclaration{SHA256: sum("whole")}), "whole"); status != http.StatusOK {
		t.Fatalf("got status %d, want 200", status)
	}
	for _, kind := range []string{"COMPOSITE", ""} {
		proxy := b.Proxy(t)
		proxy.ModifyResponse = func(r *http.Response) error {
			r.Header.Set("X-Amz-Checksum-Type", kind)
			return nil
		}
		stat, err := b.Behind(t, proxy).Open(t).Head(t.Context(), key, "")
		if err != nil || stat.SHA256 != "" {
			t.Errorf("type %q: got digest %q, error %v; want none", kind, stat.SHA256, err)
		}
	}
}

func TestWhatIsNotThereHasNoBytes(t *testing.T) {
	t.Parallel()
	bucket := testbucket.New(t).Open(t)
	_, headErr := bucket.Head(t.Context(), key, "")
	_, _, openErr := bucket.Open(t.Context(), key, "", `"e"`, staging.Range{})
	_, _, digestErr := bucket.Digest(t.Context(), key, "", `"e"`)
	for what, err := range map[string]error{"head": headErr, "open": openErr, "digest": digestErr} {
		if !errors.Is(err, staging.ErrNoBytes) {
			t.Errorf("%s: got error %v, want ErrNoBytes", what, err)
		}
	}
}

func TestMissingBucketIsNotAMissingKey(t *testing.T) {
	t.Parallel()
	other := *testbucket.New(t)
	other.Config.Bucket += "-other"
	bucket := other.Open(t)
	_, _, err := bucket.Open(t.Context(), key, "", `"e"`, staging.Range{})
	if errors.Is(err, staging.ErrNoBytes) { // some servers tell it only to who lists it
		err = nil
		for _, broken := range bucket.Keys(t.Context(), "") {
			err = broken
		}
	}
	if err == nil || errors.Is(err, staging.ErrNoBytes) {
		t.Errorf("got error %v, want one other than ErrNoBytes", err)
	}
}

func TestOpenReadsThePartThatWasAskedFor(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	etag, _ := b.Put(t, key, "0123456789")
	bucket := b.Open(t)
	for name, tc := range map[string]struct {
		part staging.Range
		want string
	}{
		"whole":      {staging.Range{}, "0123456789"},
		"first byte": {staging.Range{Length: 1}, "0"},
		"middle":     {staging.Range{Offset: 3, Length: 4}, "3456"},
		"rest":       {staging.Range{Offset: 7}, "789"},
		"past end":   {staging.Range{Offset: 7, Length: 100}, "789"},
	} {
		body, stat, err := bucket.Open(t.Context(), key, "", etag, tc.part)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != tc.want || stat.Size != 10 || stat.ETag != etag {
			t.Errorf("%s: got %q of %+v, error %v; want %q of 10 bytes", name, got, stat, err, tc.want)
		}
		if err := body.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

func TestChangedBytesAreNeverStreamed(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	sealed, _ := b.Put(t, key, "sealed")
	b.Put(t, key, "changed")
	bucket := b.Open(t)
	_, _, openErr := bucket.Open(t.Context(), key, "", sealed, staging.Range{})
	_, _, partErr := bucket.Open(t.Context(), key, "", sealed, staging.Range{Length: 1})
	_, _, digestErr := bucket.Digest(t.Context(), key, "", sealed)
	_, _, blankErr := bucket.Open(t.Context(), key, "", "", staging.Range{})
	for what, err := range map[string]error{"open": openErr, "part": partErr, "digest": digestErr, "no ETag": blankErr} {
		if !errors.Is(err, staging.ErrBytesChanged) {
			t.Errorf("%s: got error %v, want ErrBytesChanged", what, err)
		}
	}
}

func TestChangedBytesAreNeverStreamedByAServerThatIgnoresIfMatch(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	etag, _ := b.Put(t, key, "sealed")
	proxy := b.Proxy(t)
	proxy.ModifyResponse = func(r *http.Response) error {
		if got := r.Request.Header.Get("If-Match"); got != etag {
			t.Errorf("got If-Match: %s, want %s", got, etag)
		}
		r.Header.Set("ETag", `"of other bytes"`)
		return nil
	}
	_, _, err := b.Behind(t, proxy).Open(t).Open(t.Context(), key, "", etag, staging.Range{})
	if !errors.Is(err, staging.ErrBytesChanged) {
		t.Errorf("got error %v, want ErrBytesChanged", err)
	}
}

func TestAVersionStaysReadableWhenItsKeyIsOverwritten(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	etag, version := b.Put(t, key, "sealed")
	b.Put(t, key, "changed")
	b.Delete(t, key)
	bucket := b.Open(t)

	stat, err := bucket.Head(t.Context(), key, version)
	if err != nil {
		t.Fatal(err)
	}
	if stat.VersionID != version || stat.ETag != etag {
		t.Errorf("got %+v, want version %s with ETag %s", stat, version, etag)
	}
	got, size, err := bucket.Digest(t.Context(), key, version, etag)
	if err != nil || got != sum("sealed") || size != 6 {
		t.Errorf("got digest %s of %d bytes, error %v; want that of the version", got, size, err)
	}
	if _, err := bucket.Head(t.Context(), key, ""); !errors.Is(err, staging.ErrNoBytes) {
		t.Errorf("got error %v for the deleted key, want ErrNoBytes", err)
	}
}

func TestDigestReadsAllBytes(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket := b.Open(t)
	for _, body := range []string{"", "a,b\n", strings.Repeat("0123456789", 1<<20)} {
		etag, _ := b.Put(t, key, body)
		got, size, err := bucket.Digest(t.Context(), key, "", etag)
		if err != nil || got != sum(body) || size != int64(len(body)) {
			t.Errorf("got digest %s of %d bytes, error %v; want %s of %d", got, size, err, sum(body), len(body))
		}
	}
}

func TestAStreamThatBreaksOffIsNotTheEnd(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	etag, _ := b.Put(t, key, strings.Repeat("x", 1<<20))
	proxy := b.Proxy(t)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Body = io.NopCloser(io.LimitReader(r.Body, 1<<19))
		return nil
	}
	_, _, err := b.Behind(t, proxy).Open(t).Digest(t.Context(), key, "", etag)
	if !errors.Is(err, staging.ErrStorageUnavailable) {
		t.Errorf("got error %v, want ErrStorageUnavailable", err)
	}
}
