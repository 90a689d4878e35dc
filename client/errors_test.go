package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

func TestEachCodeOfTheServiceMatchesItsError(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"stale_fence": client.ErrStaleFence, "fence_not_granted": client.ErrFenceNotGranted,
		"busy": client.ErrBusy, "lease_lost": client.ErrLeaseLost, "lease_not_live": client.ErrLeaseLost,
		"version_conflict": client.ErrVersionConflict, "expected_version_required": client.ErrVersionConflict,
		"lease_id_reused": client.ErrConflict, "object_id_reused": client.ErrConflict,
		"idempotency_key_reused": client.ErrConflict, "object_exists": client.ErrConflict,
		"grant_already_used": client.ErrConflict, "frozen": client.ErrConflict,
		"report_not_found": client.ErrNotFound, "not_published": client.ErrNotFound,
		"object_not_found": client.ErrNotFound, "version_not_found": client.ErrNotFound,
		"withdrawn": client.ErrWithdrawn, "erased": client.ErrGone, "object_gone": client.ErrGone,
		"object_incomplete": client.ErrObjectIncomplete, "object_mismatch": client.ErrObjectMismatch,
		"unauthenticated": client.ErrUnauthorized, "forbidden": client.ErrUnauthorized,
		"invalid_request": client.ErrInvalidRequest, "missing_fence": client.ErrInvalidRequest,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			// The status says nothing here: the code alone decides.
			w := play(t, problem(http.StatusConflict, code, nil))
			_, err := held(w.client()).Publish(t.Context(), client.PublishRequest{})
			if !errors.Is(err, want) {
				t.Errorf("%v does not match %q", err, want)
			}
			for _, other := range []error{client.ErrUnavailable, client.ErrOutcomeUnknown} {
				if errors.Is(err, other) {
					t.Errorf("%v matches %q too", err, other)
				}
			}
		})
	}
}

func TestAnErrorCarriesWhatTheProblemDocumentSays(t *testing.T) {
	t.Parallel()
	w := play(
		t,
		problem(http.StatusConflict, "stale_fence", map[string]any{
			"detail": "A newer lease was granted.", "presented": "1.1", "highest": "1.2", "reason": "superseded",
		}),
		problem(http.StatusPreconditionFailed, "version_conflict", map[string]any{"expected": 1, "actual": 2}),
		problem(http.StatusConflict, "busy", map[string]any{"holder": "worker-7", "retry_after_ms": 1500}),
	)
	c := w.client()

	_, err := held(c).Publish(t.Context(), client.PublishRequest{ObjectID: "o"})
	stale := asError(t, err)
	if diff := cmp.Diff(
		[]any{409, client.NotApplied, "r-1", client.Fence{Epoch: 1, Counter: 1}, client.Fence{Epoch: 1, Counter: 2}, "superseded"},
		[]any{stale.Status, stale.Outcome, stale.RequestID, stale.Presented, stale.Highest, stale.Reason},
	); diff != "" {
		t.Errorf("stale fence (-want +got):\n%s", diff)
	}
	for _, part := range []string{"july", "stale_fence", "A newer lease was granted", "presented 1.1", "highest 1.2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not tell of %q", err, part)
		}
	}

	_, err = held(c).Publish(t.Context(), client.PublishRequest{ObjectID: "o"})
	conflict := asError(t, err)
	if string(conflict.Expected) != "1" || string(conflict.Actual) != "2" {
		t.Errorf("expected %s, actual %s", conflict.Expected, conflict.Actual)
	}

	_, err = c.Acquire(t.Context(), client.AcquireRequest{Report: "july", LeaseID: "a7", Holder: "h", TTL: time.Second})
	busy := asError(t, err)
	if busy.Holder != "worker-7" || busy.RetryAfter != 1500*time.Millisecond {
		t.Errorf("holder %q, retry after %v", busy.Holder, busy.RetryAfter)
	}
}

func TestAnIDThatWouldChangeThePathIsRefusedUnsent(t *testing.T) {
	t.Parallel()
	w := play(t)
	for _, id := range []string{"", ".", "..", "a/b", "a?b", "a b", "ä", "%2e"} {
		if _, err := w.client().Report(t.Context(), id); !errors.Is(err, client.ErrInvalidRequest) {
			t.Errorf("report %q: %v", id, err)
		}
	}
}

func TestAURLThatIsNoneShowsInTheFirstCall(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "reports.example.com", "ftp://reports.example.com", "http://", "://"} {
		if _, err := client.New(client.Config{URL: url}).Report(t.Context(), "july"); !errors.Is(err, client.ErrInvalidRequest) {
			t.Errorf("URL %q: %v", url, err)
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := play(t)
	w := play(t, func(out http.ResponseWriter, in *http.Request) {
		http.Redirect(out, in, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	_, err := w.client().Report(t.Context(), "july")
	if e := asError(t, err); e.Status != http.StatusTemporaryRedirect {
		t.Errorf("got %v", err)
	}
}

// asError is err as what every failed call returns.
func asError(t *testing.T, err error) *client.Error {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is no *client.Error", err, err)
	}
	return e
}
