package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/client"
)

// silence is an answer that does not come while its client waits.
func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestADownloadThatStandsStillEndsWithAnError(t *testing.T) {
	t.Parallel()
	begun := func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Repr-Digest", reprDigest)
		out.Header().Set("Content-Length", "3")
		io.WriteString(out, "a")
		out.(http.Flusher).Flush()
		silence(out, r)
	}
	w := play(t, begun)
	c := client.New(client.Config{URL: w.URL, StallTimeout: 50 * time.Millisecond})
	got, err := c.Open(t.Context(), "july")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	bytes, err := io.ReadAll(got)
	if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "moved") || string(bytes) != "a" {
		t.Errorf("read %q, %v", bytes, err)
	}
}

func TestADownloadThatDoesNotBeginIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := play(t, silence, content("abc", map[string]string{"Repr-Digest": reprDigest}))
	c := client.New(client.Config{URL: w.URL, StallTimeout: 50 * time.Millisecond, AttemptTimeout: 50 * time.Millisecond, Backoff: time.Millisecond})
	got, err := c.Open(t.Context(), "july")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if bytes, err := io.ReadAll(got); err != nil || string(bytes) != "abc" {
		t.Errorf("read %q, %v", bytes, err)
	}
}

func TestAnUploadThatStandsStillIsSentAgain(t *testing.T) {
	t.Parallel()
	w := play(t, silence, success(http.StatusOK, ""))
	c := client.New(client.Config{URL: w.URL, StallTimeout: 50 * time.Millisecond, Backoff: time.Millisecond})
	r := &client.Reservation{ObjectID: "july.csv", Report: "july", Upload: client.UploadURL{Method: http.MethodPut, URL: w.URL + "/bucket"}}
	if err := c.Send(t.Context(), r, strings.NewReader("abc"), 3); err != nil {
		t.Error(err)
	}
	if n := len(w.asked()); n != 2 {
		t.Errorf("it was sent %d times, want twice", n)
	}
}
