package staging_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

// onePart begins an upload of key and uploads its only part.
func onePart(t *testing.T, b *staging.Bucket, key, body string) (uploadID string, parts []staging.Part) {
	t.Helper()
	uploadID, err := b.CreateUpload(t.Context(), key, "text/csv")
	must(t, "create upload", err)
	signed, err := b.PresignPart(t.Context(), key, uploadID, 1, int64(len(body)), life)
	must(t, "presign part", err)
	r, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, strings.NewReader(body))
	must(t, "make the request", err)
	answer, err := http.DefaultClient.Do(r)
	must(t, "upload part", err)
	must(t, "close", answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the part was answered %d", answer.StatusCode)
	}
	return uploadID, []staging.Part{{Number: 1, ETag: answer.Header.Get("ETag")}}
}

func TestASecondUploadOfAKeyDoesNotOverwriteTheFirst(t *testing.T) {
	t.Parallel()
	for kind, make := range map[string]func(testing.TB) *testbucket.Bucket{"plain": testbucket.New, "versioned": testbucket.NewVersioned} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			storage := make(t)
			b := storage.Open(t)
			const key = "reports/july/1.1/july.csv"
			first, firstParts := onePart(t, b, key, "first")
			second, secondParts := onePart(t, b, key, "second")
			must(t, "complete the first", b.CompleteUpload(t.Context(), key, first, firstParts))
			written, err := b.Head(t.Context(), key, "")
			must(t, "head", err)
			wantError(t, b.CompleteUpload(t.Context(), key, second, secondParts), staging.ErrBytesChanged)
			// Some servers answer a repeated completion as they did the first time.
			if err := b.CompleteUpload(t.Context(), key, first, firstParts); err != nil && !errors.Is(err, staging.ErrNoBytes) && !errors.Is(err, staging.ErrBytesChanged) {
				t.Errorf("completing the first again ended in %v", err)
			}
			if now, err := b.Head(t.Context(), key, ""); err != nil || now != written || storage.Get(t, key) != "first" {
				t.Errorf("under the key is %+v (%v), want %+v, which was completed first", now, err, written)
			}
			must(t, "abort what is left", b.AbortUploads(t.Context(), key, nil))
			must(t, "abort what has ended", b.AbortUpload(t.Context(), key, second))
			if left := storage.Uploads(t); len(left) > 0 {
				t.Errorf("uploads are left: %q", left)
			}
		})
	}
}

func TestAbortUploadsSparesOtherKeysAndWhatItsCallerStops(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	b := storage.Open(t)
	const key = "reports/july/1.1/july"
	for range 3 {
		storage.BeginUpload(t, key)
	}
	other := key + ".csv " + storage.BeginUpload(t, key+".csv")
	stopped := errors.New("not now")
	wantError(t, b.AbortUploads(t.Context(), key, func(context.Context) error { return stopped }), stopped)
	if left := storage.Uploads(t); len(left) != 4 {
		t.Errorf("%d uploads are left of what was stopped, want all 4", len(left))
	}
	must(t, "abort", b.AbortUploads(t.Context(), key, nil))
	if left := storage.Uploads(t); len(left) != 1 || left[0] != other {
		t.Errorf("left are %q, want %q", left, other)
	}
}
