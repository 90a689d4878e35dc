package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

const granted = `{"result":"acquired","report":"july","lease_id":"a7","holder":"h","fence":"1.1","remaining_ms":30000,"waited_ms":2000,"version":3,"later":"unknown fields are ignored"}`

// july asks for the lease a7, for 30 s.
func july() client.AcquireRequest {
	return client.AcquireRequest{Report: "july", LeaseID: "a7", Holder: "h", TTL: 30 * time.Second}
}

// acquire acquires what july asks for.
func acquire(t *testing.T, c *client.Client) *client.Capability {
	t.Helper()
	k, err := c.Acquire(t.Context(), july())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAcquireSendsTheContractsRequestAndReadsItsAnswer(t *testing.T) {
	t.Parallel()
	w := play(t, success(http.StatusCreated, granted))
	request := july()
	request.Wait = 5 * time.Second
	k, err := w.client().Acquire(t.Context(), request)
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
		[]any{"july", "a7", "h", client.Fence{Epoch: 1, Counter: 1}, int64(3), false},
		[]any{k.Report(), k.LeaseID(), k.Holder(), k.Fence(), k.Version(), k.Replayed()},
	); diff != "" {
		t.Errorf("capability (-want +got):\n%s", diff)
	}
	written, err := json.Marshal(k)
	if want := `{"report":"july","lease_id":"a7","holder":"h","fence":"1.1","remaining_ms":30000,"waited_ms":2000,"version":3}`; err != nil || string(written) != want {
		t.Errorf("written as %s, %v", written, err)
	}
}

func TestATokenAboveWhatAFloatHoldsComesBackUnchanged(t *testing.T) {
	t.Parallel()
	const fence = "2147483647.9223372036854775807"
	w := play(
		t,
		success(http.StatusCreated, `{"fence":"`+fence+`","remaining_ms":30000}`),
		success(http.StatusOK, `{"fence":"`+fence+`","remaining_ms":30000}`),
		success(http.StatusCreated, receipt),
	)
	k := acquire(t, w.client())
	if err := k.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := k.Publish(t.Context(), client.PublishRequest{ObjectID: "o"}); err != nil {
		t.Error(err)
	}
	if body, want := w.asked()[2].Body, `{"fence":"`+fence+`","object_id":"o"}`; body != want {
		t.Errorf("sent %s, want %s", body, want)
	}
	if written, err := json.Marshal(k); err != nil || !json.Valid(written) || k.Fence().String() != fence {
		t.Errorf("%s, %v", written, err)
	}
}

func TestAcquireWithoutAnIDKeepsTheOneItChose(t *testing.T) {
	t.Parallel()
	w := play(t, cut, success(http.StatusOK, granted))
	k, err := w.client().Acquire(t.Context(), client.AcquireRequest{Report: "july", Holder: "h", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if asked := w.asked(); asked[0].Path != asked[1].Path || asked[0].Path != "/v1/reports/july/leases/"+k.LeaseID() {
		t.Errorf("%s was followed by %s, and the capability has %s", asked[0].Path, asked[1].Path, k.LeaseID())
	}
}

func TestALeaseOfAnotherProcessIsResumedByRenewingIt(t *testing.T) {
	t.Parallel()
	w := play(
		t,
		success(http.StatusOK, `{"result":"renewed","fence":"1.1","remaining_ms":60000}`),
		success(http.StatusOK, `{"result":"renewed","fence":"1.1","remaining_ms":30000}`),
		success(http.StatusOK, `{"result":"already_released"}`),
		problem(http.StatusGone, "lease_lost", map[string]any{"reason": "superseded"}),
	)
	c := w.client()
	k, err := c.Resume(t.Context(), "july", "a7", time.Minute)
	if err != nil || k.LeaseID() != "a7" || k.Report() != "july" || k.Fence() != (client.Fence{Epoch: 1, Counter: 1}) || !k.Valid() {
		t.Errorf("resumed %+v, %v", k, err)
	}
	if _, err := c.Resume(t.Context(), "july", "a7", 0); err != nil {
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
