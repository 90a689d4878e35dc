package staging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

// requests is a server before the storage that writes down what comes, and answers some of it by itself.
type requests struct {
	mu     sync.Mutex
	seen   []string
	answer func(w http.ResponseWriter, r *http.Request) bool // whether it has answered; nil: never
	next   http.Handler
}

func (s *requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := r.Method
	if r.URL.Query().Has("delete") {
		line += " ?delete"
	}
	s.mu.Lock()
	s.seen = append(s.seen, line)
	s.mu.Unlock()
	if s.answer == nil || !s.answer(w, r) {
		s.next.ServeHTTP(w, r)
	}
}

// take tells the requests since the last call.
func (s *requests) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// refuse answers as storages do, with an error's code.
func refuse(t testing.TB, w http.ResponseWriter, status int, code string) bool {
	t.Helper()
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if _, err := fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said by the test</Message></Error>", code); err != nil {
		t.Errorf("answer: %v", err)
	}
	return true
}

// isDelete tells a request for the deletion of many objects.
func isDelete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("delete")
}

// openWith opens a bucket behind a server that notes its requests, with a way to delete.
func openWith(t testing.TB, b *testbucket.Bucket, way staging.DeleteWay, log *slog.Logger,
	answer func(http.ResponseWriter, *http.Request) bool,
) (*staging.Bucket, *requests) {
	t.Helper()
	s := &requests{answer: answer, next: b.Proxy(t)}
	through := b.Behind(t, s)
	through.Config.Deletes, through.Config.Log = way, log
	return through.Open(t), s
}

func TestAStorageThatKnowsNoBatchesIsServedOneByOneFromThenOn(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]struct {
		status int
		code   string
	}{
		"not implemented":          {http.StatusNotImplemented, "NotImplemented"},
		"not allowed":              {http.StatusMethodNotAllowed, "MethodNotAllowed"},
		"wants Content-MD5":        {http.StatusBadRequest, "MissingContentMD5"},
		"wants Content-MD5, older": {http.StatusBadRequest, "InvalidRequest"},
		"knows no such body":       {http.StatusBadRequest, "MalformedXML"},
		"knows no CRC32":           {http.StatusBadRequest, "InvalidArgument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbucket.New(t)
			var log bytes.Buffer
			bucket, seen := openWith(t, b, staging.DeleteAuto, slog.New(slog.NewTextHandler(&log, nil)),
				func(w http.ResponseWriter, r *http.Request) bool {
					return isDelete(r) && refuse(t, w, refusal.status, refusal.code)
				})
			for _, key := range []string{"a", "b", "stays"} {
				b.Put(t, key, "x")
			}
			for _, r := range remove(t, bucket, staging.ObjectRef{Key: "a"}, staging.ObjectRef{Key: "missing"}) {
				if r.Err != nil {
					t.Errorf("%s: %v", r.Key, r.Err)
				}
			}
			if got, want := seen.take(), []string{"POST ?delete", "DELETE", "DELETE"}; !slices.Equal(got, want) {
				t.Errorf("requests %v, want %v", got, want)
			}
			remove(t, bucket, staging.ObjectRef{Key: "b"})
			if got, want := seen.take(), []string{"DELETE"}; !slices.Equal(got, want) {
				t.Errorf("later requests %v, want %v", got, want)
			}
			if diff := cmp.Diff([]string{"stays"}, b.Keys(t)); diff != "" {
				t.Errorf("keys left (-want +got):\n%s", diff)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "--s3-delete") {
				t.Errorf("%d lines were logged, want one that names the setting: %s", lines, log.String())
			}
		})
	}
}

func TestARefusalOfTheObjectsIsNoReasonToDeleteThemOneByOne(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Put(t, "a", "x")
	for name, refusal := range map[string]struct {
		status int
		code   string
	}{
		"denied":    {http.StatusForbidden, "AccessDenied"},
		"no bucket": {http.StatusNotFound, "NoSuchBucket"},
		"a fault":   {http.StatusInternalServerError, "InternalError"},
		"throttled": {http.StatusServiceUnavailable, "SlowDown"},
	} {
		bucket, seen := openWith(t, b, staging.DeleteAuto, slog.New(slog.DiscardHandler), func(w http.ResponseWriter, r *http.Request) bool {
			return isDelete(r) && refuse(t, w, refusal.status, refusal.code)
		})
		if _, err := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: "a"}}, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := seen.take(); slices.Contains(got, "DELETE") {
			t.Errorf("%s: requests %v", name, got)
		}
	}
	if diff := cmp.Diff([]string{"a"}, b.Keys(t)); diff != "" {
		t.Errorf("keys left (-want +got):\n%s", diff)
	}
}

func TestAWayThatIsSetIsKeptTo(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket, seen := openWith(t, b, staging.DeleteBatch, slog.New(slog.DiscardHandler), func(w http.ResponseWriter, r *http.Request) bool {
		return isDelete(r) && refuse(t, w, http.StatusNotImplemented, "NotImplemented")
	})
	if _, err := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: "a"}}, nil); err == nil {
		t.Error("no error")
	}
	if got := seen.take(); slices.Contains(got, "DELETE") {
		t.Errorf("requests %v", got)
	}
	b.Config.Deletes = "gently"
	if _, err := staging.OpenBucket(t.Context(), b.Config); err == nil || !strings.Contains(err.Error(), "gently") {
		t.Errorf("a way that does not exist: %v", err)
	}
}

func TestDeleteWithMD5SendsItAndNoNewerChecksum(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	demanding := func(w http.ResponseWriter, r *http.Request) bool {
		if !isDelete(r) {
			return false
		}
		if r.Header.Get("Content-Md5") == "" {
			return refuse(t, w, http.StatusBadRequest, "MissingContentMD5")
		}
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Amz-Checksum-") || strings.HasPrefix(name, "X-Amz-Sdk-Checksum") || name == "X-Amz-Trailer" {
				t.Errorf("the header %s was sent", name)
				return refuse(t, w, http.StatusNotImplemented, "NotImplemented")
			}
		}
		return false
	}
	bucket, seen := openWith(t, b, staging.DeleteMD5, nil, demanding)
	for i := range 3 {
		b.Put(t, fmt.Sprint(i), "x")
	}
	for _, r := range remove(t, bucket, staging.ObjectRef{Key: "0"}, staging.ObjectRef{Key: "1"}, staging.ObjectRef{Key: "2"}) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Key, r.Err)
		}
	}
	if got, want := seen.take(), []string{"POST ?delete"}; !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
	if keys := b.Keys(t); len(keys) > 0 {
		t.Errorf("keys left: %v", keys)
	}
	plain, _ := openWith(t, b, staging.DeleteBatch, nil, demanding)
	if _, err := plain.Delete(t.Context(), []staging.ObjectRef{{Key: "0"}}, nil); err == nil {
		t.Error("a storage that demands Content-MD5 took a request without it")
	}
}

func TestNoRequestButABatchOfDeletesCarriesAChecksumThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket, _ := openWith(t, b, staging.DeleteSingle, nil, func(_ http.ResponseWriter, r *http.Request) bool {
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Amz-Checksum-") && name != "X-Amz-Checksum-Mode" || strings.HasPrefix(name, "X-Amz-Sdk-Checksum") || name == "X-Amz-Trailer" {
				t.Errorf("%s %s carries %s", r.Method, r.URL.Path, name)
			}
		}
		return false
	})
	must(t, "probe", bucket.ProbeConditionalCreate(t.Context()))
	b.Put(t, "a", "x")
	_, err := bucket.Head(t.Context(), "a", "")
	must(t, "head", err)
	remove(t, bucket, staging.ObjectRef{Key: "a"})
	upload, err := bucket.CreateUpload(t.Context(), "parts", "")
	must(t, "create upload", err)
	must(t, "abort", bucket.AbortUpload(t.Context(), "parts", upload, nil))
}

func TestSingleDeletesAnswerForEveryKey(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket, _ := openWith(t, b, staging.DeleteSingle, nil, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/denied"):
			return refuse(t, w, http.StatusForbidden, "AccessDenied")
		case strings.HasSuffix(r.URL.Path, "/throttled"):
			return refuse(t, w, http.StatusServiceUnavailable, "SlowDown")
		case strings.HasSuffix(r.URL.Path, "/unknown"):
			return refuse(t, w, http.StatusNotFound, "NoSuchKey")
		}
		return false
	})
	b.Put(t, "there", "x")
	results := remove(t, bucket, staging.ObjectRef{Key: "there"}, staging.ObjectRef{Key: "denied"},
		staging.ObjectRef{Key: "throttled"}, staging.ObjectRef{Key: "unknown"}, staging.ObjectRef{Key: "missing"})
	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%s %t %t", r.Key, r.Err == nil, errors.Is(r.Err, staging.ErrThrottled)))
	}
	want := []string{"there true false", "denied false false", "throttled false true", "unknown true false", "missing true false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("key, gone, throttled (-want +got):\n%s", diff)
	}
}

func TestWhatConcernsAllObjectsEndsSingleDeletes(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	for name, refusal := range map[string]struct {
		status int
		code   string
	}{
		"no bucket":             {http.StatusNotFound, "NoSuchBucket"},
		"a signature too old":   {http.StatusForbidden, "RequestTimeTooSkewed"},
		"credentials that end":  {http.StatusBadRequest, "ExpiredToken"},
		"credentials not known": {http.StatusForbidden, "InvalidAccessKeyId"},
	} {
		bucket, _ := openWith(t, b, staging.DeleteSingle, nil, func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/a") && refuse(t, w, refusal.status, refusal.code)
		})
		if _, err := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: "a"}, {Key: "b"}}, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSingleDeletesCheckBeforeEachRequest(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket, seen := openWith(t, b, staging.DeleteSingle, nil, nil)
	refs := []staging.ObjectRef{{Key: "a"}, {Key: "b"}, {Key: "c"}}
	for _, ref := range refs {
		b.Put(t, ref.Key, "x")
	}
	refusal := errors.New("the epoch has moved")
	_, err := bucket.Delete(t.Context(), refs, func(context.Context) error { return refusal })
	if !errors.Is(err, refusal) {
		t.Errorf("got error %v, want that of the check", err)
	}
	if got := seen.take(); len(got) > 0 {
		t.Errorf("requests %v, want none", got)
	}
	var mu sync.Mutex
	checks := 0
	results, err := bucket.Delete(t.Context(), refs, func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		checks++
		return nil
	})
	must(t, "delete", err)
	if checks != 3 || len(results) != 3 {
		t.Errorf("%d checks for %d objects, want 3 for 3", checks, len(results))
	}
}

func TestSingleDeletesTellOfBytesThatAreOnlyHidden(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	bucket, _ := openWith(t, b, staging.DeleteSingle, nil, nil)
	b.Put(t, key, "x")
	if r := remove(t, bucket, staging.ObjectRef{Key: key})[0]; r.Err != nil || !r.Hidden {
		t.Errorf("got %+v, want it hidden", r)
	}
	versions, err := bucket.Versions(t.Context(), key)
	must(t, "list versions", err)
	for _, r := range remove(t, bucket, versions...) {
		if r.Err != nil || r.Hidden {
			t.Errorf("got %+v, want it gone", r)
		}
	}
	if left := b.Versions(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAThrottledDeleteIsLeftToItsCaller(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	for name, refusal := range map[string]struct {
		status int
		code   string
	}{
		"slow down": {http.StatusServiceUnavailable, "SlowDown"}, "slow down a write": {http.StatusServiceUnavailable, "SlowDownWrite"},
		"too many": {http.StatusTooManyRequests, "TooManyRequests"},
	} {
		bucket, seen := openWith(t, b, staging.DeleteAuto, nil, func(w http.ResponseWriter, _ *http.Request) bool {
			return refuse(t, w, refusal.status, refusal.code)
		})
		_, err := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: "a"}}, nil)
		if !errors.Is(err, staging.ErrThrottled) || !errors.Is(err, staging.ErrStorageUnavailable) {
			t.Errorf("%s: got error %v, want ErrThrottled", name, err)
		}
		if got := seen.take(); len(got) != 1 {
			t.Errorf("%s: %d requests, want one", name, len(got))
		}
	}
}

func TestListsInPagesOfOneAreWhole(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	bucket := b.Behind(t, b.InPagesOf(t, "1")).Open(t)
	var want []string
	for i := range 4 {
		k := fmt.Sprintf("k/%d", i)
		b.Put(t, k, "x")
		want = append(want, k)
	}
	b.Put(t, key, "first")
	b.Put(t, key, "second")
	b.Delete(t, key)
	var got []string
	for k, err := range bucket.Keys(t.Context(), "k/") {
		must(t, "list", err)
		got = append(got, k)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	// The list of one key's versions is whole, or says that it is not, and ends.
	versions, err := bucket.Versions(t.Context(), key)
	if len(versions) != 3 && !(errors.Is(err, staging.ErrListingBroken) && len(versions) > 0) {
		t.Errorf("versions %v (%v), want two and a marker, or some and ErrListingBroken", versions, err)
	}
}
