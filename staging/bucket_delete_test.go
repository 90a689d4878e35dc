package staging_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestDeleteAnswersForEveryKey(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Put(t, "there", "x")
	b.Put(t, "stays", "x")
	// No file system takes a name that long, so this one fails by itself; elsewhere it is a key that is not there.
	bad := strings.Repeat("n", 900)

	results := remove(t, b.Open(t), staging.ObjectRef{Key: "missing"}, staging.ObjectRef{Key: bad}, staging.ObjectRef{Key: "there"})

	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%.10s %v", r.Key, r.Err == nil))
	}
	second := fmt.Sprintf("nnnnnnnnnn %v", results[1].Err == nil)
	if diff := cmp.Diff([]string{"missing true", second, "there true"}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if err := results[1].Err; errors.Is(err, staging.ErrStorageUnavailable) {
		t.Errorf("got error %v, want the storage's own", err)
	}
	if diff := cmp.Diff([]string{"stays"}, b.Keys(t)); diff != "" {
		t.Errorf("keys left (-want +got):\n%s", diff)
	}
}

func TestDeleteReadsTheAnswersOfOtherServers(t *testing.T) {
	t.Parallel()
	const answer = `<DeleteResult><Error><Key>missing</Key><Code>NoSuchKey</Code></Error>` +
		`<Error><Key>throttled</Key><Code>SlowDown</Code></Error>` +
		`<Error><Key>denied</Key><Code>AccessDenied</Code></Error></DeleteResult>`
	bucket := testbucket.New(t).Behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Errorf("answer: %v", err)
		}
	})).Open(t)
	results := remove(t, bucket, staging.ObjectRef{Key: "silence"}, staging.ObjectRef{Key: "throttled"},
		staging.ObjectRef{Key: "denied"}, staging.ObjectRef{Key: "missing"})

	var got []string
	for _, r := range results {
		got = append(got, fmt.Sprintf("%s %t %t", r.Key, r.Err == nil, errors.Is(r.Err, staging.ErrStorageUnavailable)))
	}
	want := []string{"silence false true", "throttled false true", "denied false false", "missing true false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("key, gone, unavailable (-want +got):\n%s", diff)
	}
}

func TestDeleteTakesAThousandKeysAndNoMore(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Put(t, "k999", "x")
	refs := make([]staging.ObjectRef, staging.MaxDeletes)
	for i := range refs {
		refs[i].Key = fmt.Sprintf("k%d", i)
	}
	for _, r := range remove(t, b.Open(t), refs...) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Key, r.Err)
		}
	}
	if keys := b.Keys(t); len(keys) > 0 {
		t.Errorf("keys left: %v", keys)
	}
	_, err := b.Open(t).Delete(t.Context(), append(refs, staging.ObjectRef{Key: "one more"}), nil)
	if err == nil {
		t.Error("one more was taken")
	}
}

func TestDeleteRemovesTheVersionThatItNames(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	bucket := b.Open(t)
	_, first := b.Put(t, key, "first")
	_, second := b.Put(t, key, "second")
	b.Put(t, key+".not", "another key that begins alike")

	for _, r := range remove(t, bucket, staging.ObjectRef{Key: key, VersionID: first}) {
		if r.Err != nil || r.Hidden {
			t.Errorf("got %+v, want the version to be gone", r)
		}
	}
	versions, err := bucket.Versions(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]staging.ObjectRef{{Key: key, VersionID: second}}, versions); diff != "" {
		t.Errorf("versions left (-want +got):\n%s", diff)
	}
}

func TestDeleteTellsOfBytesThatAreOnlyHidden(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	bucket := b.Open(t)
	b.Put(t, key, "x")

	if r := remove(t, bucket, staging.ObjectRef{Key: key})[0]; r.Err != nil || !r.Hidden {
		t.Errorf("got %+v, want it hidden", r)
	}
	versions, err := bucket.Versions(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) != 2 {
		t.Errorf("got versions %v, want the bytes and the marker", versions)
	}
	for _, r := range remove(t, bucket, versions...) {
		if r.Err != nil || r.Hidden {
			t.Errorf("got %+v, want it gone", r)
		}
	}
	if left, err := bucket.Versions(t.Context(), key); err != nil || len(left) > 0 {
		t.Errorf("got %v, error %v; want nothing left", left, err)
	}
}

func TestDeleteSendsNothingWhenTheCheckFails(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Put(t, key, "x")
	var requests atomic.Int32
	proxy := b.Proxy(t)
	bucket := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		proxy.ServeHTTP(w, r)
	})).Open(t)
	for name, refusal := range map[string]error{
		"an error of its own":           errors.New("the epoch has moved"),
		"one that invites another try":  &net.DNSError{IsTimeout: true, IsTemporary: true},
		"one that looks like a timeout": context.DeadlineExceeded,
	} {
		checks := 0
		_, err := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: key}}, func(context.Context) error {
			checks++
			return refusal
		})
		if !errors.Is(err, refusal) || errors.Is(err, staging.ErrStorageUnavailable) {
			t.Errorf("%s: got error %v, want that of the check alone", name, err)
		}
		if checks != 1 || requests.Load() != 0 {
			t.Errorf("%s: %d checks, %d requests; want one check and no request", name, checks, requests.Load())
		}
	}
	if b.Get(t, key) != "x" {
		t.Error("the bytes are gone")
	}
}

func TestDeleteChecksAfterSigningAndBeforeEachAttempt(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	b.Put(t, key, "x")
	var checkedAt []time.Time
	var attempts atomic.Int32
	proxy := b.Proxy(t)
	bucket := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt := attempts.Add(1)
		signedAt, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || signedAt.After(checkedAt[attempt-1]) {
			t.Errorf("attempt %d was signed at %v, after its check at %v", attempt, signedAt, checkedAt[attempt-1])
		}
		if attempt == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})).Open(t)
	_, err := bucket.Delete(t.Context(), []staging.ObjectRef{{Key: key}}, func(context.Context) error {
		now := time.Now()
		checkedAt = append(checkedAt, now)
		// Signatures carry whole seconds: only one made in a later second than
		// the check shows in its date.
		<-time.After(time.Until(now.Truncate(time.Second).Add(time.Second)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(checkedAt) != 2 || attempts.Load() != 2 {
		t.Errorf("%d checks for %d attempts, want 2 for 2", len(checkedAt), attempts.Load())
	}
	if keys := b.Keys(t); len(keys) > 0 {
		t.Errorf("keys left: %v", keys)
	}
}

func remove(t testing.TB, bucket *staging.Bucket, refs ...staging.ObjectRef) []staging.DeleteResult {
	t.Helper()
	results, err := bucket.Delete(t.Context(), refs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(refs) {
		t.Fatalf("got %d results for %d references", len(results), len(refs))
	}
	return results
}
