package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

const granted = `{"result":"acquired","report":"july","lease_id":"a7","holder":"h","fence":"1.1","remaining_ms":30000,"waited_ms":2000,"version":3,"later":"unknown fields are ignored"}`

func TestAcquireSendsTheContractsRequestAndReadsItsAnswer(t *testing.T) {
	t.Parallel()
	w := play(t, success(http.StatusCreated, granted))
	lease, err := w.client().Acquire(t.Context(), client.AcquireRequest{
		Report: "july", LeaseID: "a7", Holder: "h", TTL: 30 * time.Second, Wait: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := w.asked()[0]
	if diff := cmp.Diff(
		[]string{"PUT", "/v1/reports/july/leases/a7", "Bearer fl_k1_secret", "application/json", `{"holder":"h","ttl_ms":30000,"wait_ms":5000}`},
		[]string{asked.Method, asked.Path, asked.Header.Get("Authorization"), asked.Header.Get("Content-Type"), asked.Body},
	); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(
		[]any{"july", "a7", client.Fence{Epoch: 1, Counter: 1}, 30 * time.Second, 2 * time.Second, int64(3)},
		[]any{lease.Report, lease.ID, lease.Fence, lease.Remaining, lease.Waited, lease.Version},
	); diff != "" {
		t.Errorf("lease (-want +got):\n%s", diff)
	}
	written, err := json.Marshal(lease)
	if want := `{"report":"july","lease_id":"a7","holder":"h","fence":"1.1","remaining_ms":30000,"waited_ms":2000,"version":3}`; err != nil || string(written) != want {
		t.Errorf("written as %s, %v", written, err)
	}
}

func TestAcquireWithoutAnIDKeepsTheOneItChose(t *testing.T) {
	t.Parallel()
	w := play(t, cut, success(http.StatusOK, granted))
	if _, err := w.client().Acquire(t.Context(), client.AcquireRequest{Report: "july", Holder: "h", TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	if asked := w.asked(); asked[0].Path != asked[1].Path {
		t.Errorf("%s was followed by %s", asked[0].Path, asked[1].Path)
	}
}

func TestRenewAndReleaseNameTheLeaseExactly(t *testing.T) {
	t.Parallel()
	w := play(
		t,
		success(http.StatusOK, `{"result":"renewed","fence":"1.1","remaining_ms":60000}`),
		success(http.StatusOK, `{"result":"renewed","fence":"1.1","remaining_ms":30000}`),
		success(http.StatusOK, `{"result":"already_released"}`),
		problem(http.StatusGone, "lease_lost", map[string]any{"reason": "superseded"}),
	)
	c := w.client()
	lease, err := c.Renew(t.Context(), "july", "a7", time.Minute)
	if err != nil || lease.ID != "a7" || lease.Report != "july" || lease.Remaining != time.Minute {
		t.Errorf("renewed %+v, %v", lease, err)
	}
	if _, err := c.Renew(t.Context(), "july", "a7", 0); err != nil {
		t.Error(err)
	}
	if err := c.Release(t.Context(), "july", "a7"); err != nil {
		t.Error(err)
	}
	if err := c.Release(t.Context(), "july", "a7"); !errors.Is(err, client.ErrLeaseLost) || asError(t, err).Reason != "superseded" {
		t.Errorf("got %v", err)
	}
	var got []string
	for _, r := range w.asked() {
		got = append(got, r.Method+" "+r.Path+" "+r.Body)
	}
	if diff := cmp.Diff([]string{
		`POST /v1/reports/july/leases/a7/renew {"ttl_ms":60000}`,
		`POST /v1/reports/july/leases/a7/renew {}`,
		`DELETE /v1/reports/july/leases/a7 `,
		`DELETE /v1/reports/july/leases/a7 `,
	}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// slowGrant is a service whose first attempt is lost after a second, and whose second is
// answered after two.
func slowGrant() *http.Client {
	attempts := 0
	return &http.Client{Transport: inProcess{http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if attempts++; attempts == 1 {
			time.Sleep(time.Second)
			proxyError(http.StatusBadGateway)(out, in)
			return
		}
		time.Sleep(2 * time.Second)
		success(http.StatusCreated, granted)(out, in)
	})}}
}

func TestALeaseIsCountedFromTheSendingOfTheAttemptThatWasAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := client.New(client.Config{URL: "http://service", HTTPClient: slowGrant(), Margin: time.Second})
		lease, err := c.Acquire(t.Context(), client.AcquireRequest{Report: "july", LeaseID: "a7", Holder: "h", TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		// 2 s waited + 30 s remaining − 1 s margin − 2 s since the second attempt was sent.
		if left := lease.Left(); left > 29*time.Second || left < 28900*time.Millisecond {
			t.Errorf("%v are left", left)
		}
		time.Sleep(28 * time.Second)
		if !lease.Valid() {
			t.Errorf("it is over with %v left", lease.Left())
		}
		time.Sleep(time.Second)
		if lease.Valid() {
			t.Errorf("it is valid with %v left", lease.Left())
		}
	})
}

func TestALeaseIsOverOnceEitherClockSaysSo(t *testing.T) {
	t.Parallel()
	for name, elapsed := range map[string]struct{ mono, boot time.Duration }{
		"suspended: the monotonic clock stood still": {0, 32 * time.Second},
		"no boot clock": {32 * time.Second, 0},
		"both clocks":   {32 * time.Second, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := play(t, success(http.StatusCreated, granted))
			start, passed := time.Now(), false
			c := client.New(client.Config{URL: w.URL, Margin: time.Nanosecond})
			c.SetClocks(func() time.Time {
				if passed {
					return start.Add(elapsed.mono)
				}
				return start
			}, func() time.Duration {
				if passed {
					return elapsed.boot
				}
				return 0
			})
			lease, err := c.Acquire(t.Context(), client.AcquireRequest{Report: "july", LeaseID: "a7", Holder: "h", TTL: 30 * time.Second})
			if err != nil || !lease.Valid() {
				t.Fatalf("not valid at once: %v", err)
			}
			if passed = true; lease.Valid() {
				t.Errorf("still valid with %v left", lease.Left())
			}
		})
	}
}

func TestALeaseThatNobodyGrantedIsNotValid(t *testing.T) {
	t.Parallel()
	if lease := (&client.Lease{Remaining: time.Hour}); lease.Valid() {
		t.Error("it is")
	}
}
