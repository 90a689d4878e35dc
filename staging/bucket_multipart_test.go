package staging_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			must(t, "abort what has ended", b.AbortUpload(t.Context(), key, second, nil))
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
	for page, err := range b.Uploads(t.Context(), key) {
		must(t, "list uploads", err)
		for _, u := range page {
			wantError(t, b.AbortUpload(t.Context(), u.Key, u.UploadID, func(context.Context) error { return stopped }), stopped)
		}
	}
	if left := storage.Uploads(t); len(left) != 4 {
		t.Errorf("%d uploads are left of what was stopped, want all 4", len(left))
	}
	must(t, "abort", b.AbortUploads(t.Context(), key, nil))
	if left := storage.Uploads(t); len(left) != 1 || left[0] != other {
		t.Errorf("left are %q, want %q", left, other)
	}
}

func TestUploadsAreListedInPagesOfOne(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	b := storage.Behind(t, storage.InPagesOf(t, "1")).Open(t)
	want := map[staging.UploadRef]bool{}
	for _, key := range []string{"reports/a/1.1/x", "reports/a.b/1.1/x", "reports/b/1.1/x"} {
		want[staging.UploadRef{Key: key, UploadID: storage.BeginUpload(t, key)}] = true
	}
	storage.BeginUpload(t, "elsewhere/x")
	got, pages := map[staging.UploadRef]bool{}, 0
	for page, err := range b.Uploads(t.Context(), "reports/") {
		must(t, "list uploads", err)
		pages++
		for _, u := range page {
			got[u] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || pages < 3 {
		t.Errorf("in %d pages (-want +got):\n%s", pages, diff)
	}
}

// A key whose uploads lie on two pages, on a server that does not take the marker between them.
func TestTheUploadsOfOneKeyAreListedAcrossPages(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	b := storage.Behind(t, storage.InPagesOf(t, "3")).Open(t)
	want := map[staging.UploadRef]int{}
	for _, key := range []string{"reports/a/1.1/x", "reports/b/1.1/x", "reports/b/1.1/x", "reports/b/1.1/x", "reports/c/1.1/x"} {
		want[staging.UploadRef{Key: key, UploadID: storage.BeginUpload(t, key)}] = 1
	}
	got := map[staging.UploadRef]int{}
	for page, err := range b.Uploads(t.Context(), "reports/") {
		must(t, "list uploads", err)
		for _, u := range page {
			got[u]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// answering is a bucket whose storage answers everything with a list of uploads.
func answering(t *testing.T, list string) *staging.Bucket {
	t.Helper()
	return testbucket.New(t).Behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "<ListMultipartUploadsResult>"+list+"</ListMultipartUploadsResult>"); err != nil {
			t.Errorf("answer: %v", err)
		}
	})).Open(t)
}

func TestUploadsAreListedUnderTheKeysThatTheyHave(t *testing.T) {
	t.Parallel()
	const list = "<EncodingType>url</EncodingType><Upload><Key>reports/a%2Bb+c%01</Key><UploadId>1</UploadId></Upload>"
	for page, err := range answering(t, list).Uploads(t.Context(), "reports/") {
		must(t, "list uploads", err)
		if diff := cmp.Diff([]staging.UploadRef{{Key: "reports/a+b c\x01", UploadID: "1"}}, page); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAListOfUploadsThatDoesNotGoOnIsAnError(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]string{
		"no marker":       "<IsTruncated>true</IsTruncated>",
		"the same marker": "<IsTruncated>true</IsTruncated><NextKeyMarker>reports/a</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker>",
		"backwards":       "<Upload><Key>reports/b</Key><UploadId>1</UploadId></Upload><Upload><Key>reports/a</Key><UploadId>2</UploadId></Upload>",
		"of elsewhere":    "<Upload><Key>elsewhere/b</Key><UploadId>1</UploadId></Upload>",
	} {
		b := answering(t, list)
		var last error
		for _, err := range b.Uploads(t.Context(), "reports/") {
			last = err
		}
		if !errors.Is(last, staging.ErrListingBroken) {
			t.Errorf("%s: ended in %v, want ErrListingBroken", name, last)
		}
	}
}
