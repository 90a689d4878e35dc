package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

// script answers one request after the other, without a network, and keeps what was asked.
type script struct {
	answers []http.HandlerFunc
	asked   []string // query and If-None-Match
}

func (s *script) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	s.asked = append(s.asked, in.URL.Path+"?"+in.URL.RawQuery+" "+in.Header.Get("If-None-Match"))
	if len(s.answers) == 0 {
		<-in.Context().Done()
		return
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	answer(out, in)
}

func (s *script) client() *client.Client {
	return client.New(client.Config{URL: "http://service", HTTPClient: &http.Client{Transport: inProcess{s}}, MaxAttempts: 2})
}

// version answers with a version, as a resolve does.
func version(n int) http.HandlerFunc {
	return func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("ETag", fmt.Sprintf(`"%d-1.1"`, n))
		success(http.StatusOK, fmt.Sprintf(`{"report":"july","version":%d,"object":null,"fence":"1.1"}`, n))(out, in)
	}
}

// unchanged answers after the wait that there was no change.
func unchanged(out http.ResponseWriter, _ *http.Request) {
	time.Sleep(30 * time.Second)
	out.WriteHeader(http.StatusNotModified)
}

// withdrawn answers that the version n is a withdrawal.
func withdrawn(n int) http.HandlerFunc {
	return func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("ETag", fmt.Sprintf(`"%d-1.1"`, n))
		problem(http.StatusGone, "withdrawn", map[string]any{"version": n})(out, in)
	}
}

// notYet answers after the wait that nothing was published.
func notYet(out http.ResponseWriter, in *http.Request) {
	time.Sleep(30 * time.Second)
	problem(http.StatusNotFound, "not_published", nil)(out, in)
}

func TestWatchAnswersWithANewerVersionHoweverOftenItHasToAsk(t *testing.T) {
	t.Parallel()
	away := problem(http.StatusServiceUnavailable, "unavailable", nil)
	for name, c := range map[string]struct {
		after   int64
		answers []http.HandlerFunc
		asked   []string
	}{
		"it is there": {1, []http.HandlerFunc{version(2)}, []string{""}},
		"it comes":    {2, []http.HandlerFunc{version(2), unchanged, version(3)}, []string{"", `"2-1.1"`, `"2-1.1"`}},
		"the first":   {0, []http.HandlerFunc{notYet, version(1)}, []string{"", ""}},
		"away for a while": {
			2,
			[]http.HandlerFunc{version(2), away, away, away, away, proxyError(http.StatusBadGateway), version(3)},
			[]string{"", `"2-1.1"`, `"2-1.1"`, `"2-1.1"`, `"2-1.1"`, `"2-1.1"`, `"2-1.1"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: c.answers}
				got, err := s.client().Watch(t.Context(), "july", c.after)
				if err != nil || got.Version <= c.after {
					t.Errorf("%+v, %v", got, err)
				}
				var want []string
				for _, tag := range c.asked {
					want = append(want, "/v1/reports/july?wait_ms=30000 "+tag)
				}
				if diff := cmp.Diff(want, s.asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWatchTakesAWithdrawalForAVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []http.HandlerFunc{withdrawn(3), version(3), withdrawn(3), version(3), version(4)}}
		c := s.client()
		got, err := c.Watch(t.Context(), "july", 2)
		if err != nil || got.Version != 3 || got.Object != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err = c.Watch(t.Context(), "july", 3); err != nil || got.Version != 4 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestUpdatesYieldsEachVersionOnceUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []http.HandlerFunc{version(2), unchanged, version(3), version(3), version(5)}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var seen []int64
		var ended error
		for got, err := range s.client().Updates(ctx, "july", 0) {
			if ended = err; err == nil {
				seen = append(seen, got.Version)
			}
		}
		if diff := cmp.Diff([]int64{2, 3, 5}, seen); diff != "" || !errors.Is(ended, context.DeadlineExceeded) {
			t.Errorf("%v; versions (-want +got):\n%s", ended, diff)
		}
		if last := s.asked[len(s.asked)-1]; last != `/v1/reports/july?wait_ms=30000 "5-1.1"` {
			t.Errorf("asked %s", last)
		}
	})
}

func TestAProxyThatDoesNotWaitIsNotAskedAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answers []http.HandlerFunc
		for range 60 {
			answers = append(answers, version(1))
		}
		s, start := &script{answers: append(answers, version(2))}, time.Now()
		if _, err := s.client().Watch(t.Context(), "july", 1); err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestWatchOfAReportThatThereIsNotFails(t *testing.T) {
	t.Parallel()
	s := &script{answers: []http.HandlerFunc{problem(http.StatusNotFound, "report_not_found", nil)}}
	if _, err := s.client().Watch(t.Context(), "july", 0); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestHistoryGoesFromPageToPage(t *testing.T) {
	t.Parallel()
	first := success(http.StatusOK, `{"items":[{"report":"july","version":3},{"report":"july","version":2}],"next":"abc"}`)
	last := success(http.StatusOK, `{"items":[{"report":"july","version":1}]}`)
	refused := problem(http.StatusForbidden, "forbidden", nil)
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		list    func(*client.Client) func(func(*client.Publication, error) bool)
		asked   []string
		seen    []int64
		failure error
	}{
		"all of it": {
			[]http.HandlerFunc{first, last},
			func(c *client.Client) func(func(*client.Publication, error) bool) {
				return c.History(t.Context(), "july")
			},
			[]string{"/v1/reports/july/publications? ", "/v1/reports/july/publications?after=abc "},
			[]int64{3, 2, 1},
			nil,
		},
		"to a refusal": {
			[]http.HandlerFunc{first, refused},
			func(c *client.Client) func(func(*client.Publication, error) bool) {
				return c.Reports(t.Context(), "jul")
			},
			[]string{"/v1/reports?prefix=jul ", "/v1/reports?after=abc&prefix=jul "},
			[]int64{3, 2},
			client.ErrUnauthorized,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{answers: c.answers}
			var seen []int64
			var failure error
			for got, err := range c.list(s.client()) {
				if failure = err; err == nil {
					seen = append(seen, got.Version)
				}
			}
			if diff := cmp.Diff([]any{c.asked, c.seen}, []any{s.asked, seen}); diff != "" || !errors.Is(failure, c.failure) {
				t.Errorf("%v; (-want +got):\n%s", failure, diff)
			}
		})
	}
	t.Run("as far as it is asked for", func(t *testing.T) {
		t.Parallel()
		s := &script{answers: []http.HandlerFunc{first}}
		for range s.client().History(t.Context(), "july") {
			break
		}
		if len(s.asked) != 1 {
			t.Errorf("asked %v", s.asked)
		}
	})
}
