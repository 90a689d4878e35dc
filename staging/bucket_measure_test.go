package staging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testmetrics"
	"github.com/fenceline/fenceline/staging"
)

// countCalls has a bucket's calls counted, and returns what reads the counts: "HeadObject ok", and how often.
func countCalls(t testing.TB, b *testbucket.Bucket) func() map[string]float64 {
	t.Helper()
	m := testmetrics.New(t)
	b.Config.Metrics = m
	name := regexp.MustCompile(`^fenceline_storage_calls_total{operation="(\w+)",result="(\w+)"}$`)
	return func() map[string]float64 {
		calls, timed := map[string]float64{}, map[string]float64{}
		for series, n := range testmetrics.Counted(t, m, "fenceline_storage_calls_total") {
			found := name.FindStringSubmatch(series)
			calls[found[1]+" "+found[2]] = n
			timed[fmt.Sprintf("fenceline_storage_call_duration_seconds_count{operation=%q}", found[1])] += n
		}
		if diff := cmp.Diff(timed, testmetrics.Counted(t, m, "fenceline_storage_call_duration_seconds_count")); diff != "" {
			t.Errorf("calls that were timed (-counted +timed):\n%s", diff)
		}
		return calls
	}
}

func TestEachCallOfTheStorageIsCountedByHowItEnded(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	etag, _ := b.Put(t, "k", "hello")
	calls := countCalls(t, b)
	bucket := b.Open(t)
	ctx := t.Context()

	_, _ = bucket.Head(ctx, "k", "")
	_, err := bucket.Head(ctx, "missing", "")
	wantError(t, err, staging.ErrNoBytes)
	body, _, err := bucket.Open(ctx, "k", "", etag, staging.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); string(text) != "hello" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
	_ = body.Close()
	_, _, err = bucket.Open(ctx, "k", "", `"other"`, staging.Range{})
	wantError(t, err, staging.ErrBytesChanged)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = bucket.Head(gone, "k", "")
	wantError(t, err, context.Canceled)
	no := errors.New("not now")
	_, err = bucket.Delete(ctx, []staging.ObjectRef{{Key: "k"}}, func(context.Context) error { return no })
	wantError(t, err, no)
	if _, err := bucket.Delete(ctx, []staging.ObjectRef{{Key: "k"}}, nil); err != nil {
		t.Error(err)
	}

	want := map[string]float64{
		"HeadObject ok": 1, "HeadObject not_found": 1, "HeadObject interrupted": 1,
		"GetObject ok": 1, "GetObject precondition_failed": 1,
		"DeleteObjects ok": 1, "DeleteObjects interrupted": 1,
	}
	if diff := cmp.Diff(want, calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestSigningAURLIsNoCallOfTheStorage(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	calls := countCalls(t, b)
	bucket := b.Open(t)
	if _, err := bucket.PresignPut(t.Context(), "k", staging.PutDeclaration{}, life); err != nil {
		t.Error(err)
	}
	if _, err := bucket.PresignGet(t.Context(), "k", "", "", "", life); err != nil {
		t.Error(err)
	}
	if got := calls(); len(got) > 0 {
		t.Errorf("counted: %v", got)
	}
}

// A call that was tried three times is one call.
func TestAStorageThatFailsIsCountedByWhatItLacks(t *testing.T) {
	t.Parallel()
	answering := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `<Error><Code>`+code+`</Code></Error>`) // whoever has gone need not know
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for want, answer := range map[string]http.HandlerFunc{
		"GetObject throttled": answering(http.StatusServiceUnavailable, "SlowDown"),
		"GetObject error":     answering(http.StatusForbidden, "AccessDenied"),
		"GetObject timeout":   silent,
		"GetObject not_found": answering(http.StatusNotFound, "NoSuchKey"),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			b := testbucket.New(t)
			b.Config.Endpoint = server.URL
			calls := countCalls(t, b)
			ctx := t.Context()
			if want == "GetObject timeout" {
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				ctx = short
			}
			if _, _, err := b.Open(t).Open(ctx, "k", "", `"e"`, staging.Range{}); err == nil {
				t.Error("it was opened")
			}
			if got := slices.Collect(maps.Keys(calls())); !slices.Equal(got, []string{want}) {
				t.Errorf("counted as %v, want %s", got, want)
			}
		})
	}
}
