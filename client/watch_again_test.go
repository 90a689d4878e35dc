package client_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/fenceline/fenceline/client"
)

// What a withdrawal says of itself is asked for separately, and may be away just then.
func TestAWithdrawalThatCannotBeReadYetIsToldOfOnceItCan(t *testing.T) {
	t.Parallel()
	gone := func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"2-1.1"` {
			t.Error("the watcher says that it knows of the withdrawal")
		}
		out.Header().Set("ETag", `"2-1.1"`)
		problem(http.StatusGone, "withdrawn", map[string]any{"version": 2})(out, r)
	}
	const withdrawal = `{"report":"july","version":2,"object":null,"fence":"1.1","published_at":"2026-07-31T12:00:00Z"}`
	away := problem(http.StatusServiceUnavailable, "unavailable", nil)
	w := play(t, gone, away, away, away, gone, success(http.StatusOK, withdrawal))
	c := w.client()
	p, err := c.Watch(t.Context(), "july", 1)
	if err != nil && !errors.Is(err, client.ErrUnavailable) {
		t.Fatal(err)
	}
	if p == nil {
		p, err = c.Watch(t.Context(), "july", 1)
	}
	if err != nil || p.Version != 2 || p.Object != nil {
		t.Errorf("got %+v, %v", p, err)
	}
}
