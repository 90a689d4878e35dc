package staging_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fenceline/fenceline/internal/metrics"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// counted is what the calls of a bucket were counted as: "HeadObject ok", and how often.
type counted struct{ metrics *metrics.Metrics }

// countCalls has a bucket's calls counted.
func countCalls(t testing.TB, b *testbucket.Bucket) counted {
	t.Helper()
	pool := testdb.New(t).Pool
	none := func() int { return 0 }
	m := metrics.New(metrics.Sources{
		Pool: func() *pgxpool.Stat { return pool.Stat() }, WaitingForLeases: none, WaitingForChanges: none,
		State: func(context.Context) (metrics.State, error) { return metrics.State{}, nil },
	})
	b.Config.Metrics = m
	return counted{m}
}

func (c counted) calls(t testing.TB) map[string]float64 {
	t.Helper()
	page := httptest.NewRecorder()
	c.metrics.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	calls, timed := map[string]float64{}, map[string]float64{}
	for _, m := range families["fenceline_storage_calls_total"].Metric {
		if n := m.Counter.GetValue(); n > 0 {
			calls[label(m, "operation")+" "+label(m, "result")] = n
			timed[label(m, "operation")] -= n
		}
	}
	for _, m := range families["fenceline_storage_call_duration_seconds"].GetMetric() {
		timed[label(m, "operation")] += float64(m.Histogram.GetSampleCount())
	}
	for operation, missing := range timed {
		if missing != 0 {
			t.Errorf("%s: %v more are timed than counted", operation, missing)
		}
	}
	return calls
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
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
	if diff := cmp.Diff(want, calls.calls(t)); diff != "" {
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
	if got := calls.calls(t); len(got) > 0 {
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
			if got := slices.Collect(maps.Keys(calls.calls(t))); !slices.Equal(got, []string{want}) {
				t.Errorf("counted as %v, want %s", got, want)
			}
		})
	}
}
