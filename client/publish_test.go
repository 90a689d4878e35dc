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

const withObject = `{"result":"duplicate","visible":false,"report":"july","version":2,"object":{"object_id":"july.csv","fence":"1.1",
"key":"reports/july/1.1/july.csv","size":3,"sha256":"` + digest + `","content_type":"text/csv","filename":"july.csv"},
"fence":"1.2","published_at":"2026-07-31T12:00:00Z","metadata":{"rows":"1"}}`

func TestPublishSaysWhatTheVersionShows(t *testing.T) {
	t.Parallel()
	fence, first := client.Fence{Epoch: 1, Counter: 2}, int64(0)
	for want, request := range map[string]client.PublishRequest{
		`{"fence":"1.2","object_id":"july.csv"}`:                  {ObjectID: "july.csv"},
		`{"fence":"1.2","from_version":3}`:                        {FromVersion: 3},
		`{"fence":"1.2","withdraw":true}`:                         {Withdraw: true},
		`{"fence":"1.2","object_id":"o","expected_version":0}`:    {ObjectID: "o", ExpectedVersion: &first},
		`{"fence":"1.2","object_id":"o","metadata":{"rows":"1"}}`: {ObjectID: "o", Metadata: map[string]string{"rows": "1"}},
	} {
		w := play(t, success(http.StatusCreated, receipt))
		request.IdempotencyKey = "key 1"
		if _, err := w.client().Granted(fence).Publish(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		asked := w.asked()[0]
		if diff := cmp.Diff(
			[]string{"POST", "/v1/reports/july/publications", "key 1", want},
			[]string{asked.Method, asked.Path, asked.Header.Get("Idempotency-Key"), asked.Body},
		); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
}

func TestADuplicateIsASuccessWithTheFirstReceipt(t *testing.T) {
	t.Parallel()
	w := play(t, success(http.StatusOK, withObject))
	got, err := held(w.client()).Publish(t.Context(), publication())
	if err != nil {
		t.Fatal(err)
	}
	hidden := false
	want := &client.Publication{
		Result: client.Duplicate, Visible: &hidden, Report: "july", Version: 2, Fence: client.Fence{Epoch: 1, Counter: 2},
		PublishedAt: time.Date(2026, 7, 31, 12, 0, 0, 0, time.UTC), Metadata: map[string]string{"rows": "1"},
		Object: &client.Object{
			ObjectID: "july.csv", Fence: client.Fence{Epoch: 1, Counter: 1}, Key: "reports/july/1.1/july.csv",
			Size: 3, SHA256: digest, ContentType: "text/csv", Filename: "july.csv",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var sent, written any
	if err := json.Unmarshal([]byte(withObject), &sent); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, written); diff != "" {
		t.Errorf("written otherwise than read (-read +written):\n%s", diff)
	}
}

func TestSealIsAskedUnderTheObjectsOwnFence(t *testing.T) {
	t.Parallel()
	w := play(t, cut, success(http.StatusOK, `{"state":"sealed","size":3,"sha256":"`+digest+`","etag":"e"}`))
	sealed, err := held(w.client()).Seal(t.Context(), "july.csv")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&client.Sealed{State: "sealed", Size: 3, SHA256: digest, ETag: "e"}, sealed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked := w.asked()[1]; asked.Method+asked.Path != "POST/v1/reports/july/objects/1.1/july.csv/seal" {
		t.Errorf("asked %s %s", asked.Method, asked.Path)
	}
}

func TestReportIsTheNewestPublicationUntilItIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := play(
		t,
		success(http.StatusOK, withObject),
		problem(http.StatusGone, "withdrawn", map[string]any{"version": 3}),
		success(http.StatusOK, withObject),
	)
	c := w.client()
	if got, err := c.Report(t.Context(), "july"); err != nil || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := c.Report(t.Context(), "july")
	if !errors.Is(err, client.ErrWithdrawn) || !errors.Is(err, client.ErrGone) || asError(t, err).Version != 3 {
		t.Errorf("got %v", err)
	}
	if _, err := c.Publication(t.Context(), "july", 2); err != nil {
		t.Error(err)
	}
	if path := w.asked()[2].Path; path != "/v1/reports/july/publications/2" {
		t.Errorf("asked %s", path)
	}
}

func TestAFurtherPublishExpectsTheVersionOfTheOneBefore(t *testing.T) {
	t.Parallel()
	second := `{"result":"applied","report":"july","version":5,"object":null,"fence":"1.1","published_at":"2026-07-31T12:00:00Z"}`
	w := play(
		t,
		success(http.StatusCreated, receipt),
		problem(http.StatusConflict, "frozen", nil),
		success(http.StatusCreated, second),
		success(http.StatusOK, receipt),
		success(http.StatusCreated, second),
		success(http.StatusCreated, second),
	)
	k, five := held(w.client()), int64(5)
	for _, request := range []client.PublishRequest{
		{ObjectID: "a", IdempotencyKey: "first"},
		{ObjectID: "b"},
		{ObjectID: "b"},
		{ObjectID: "a", IdempotencyKey: "first"}, // the same request as before, not one that expects version 5
		{FromVersion: 1},
		{Withdraw: true, ExpectedVersion: &five},
	} {
		_, _ = k.Publish(t.Context(), request) // what was sent is looked at
	}
	var bodies []string
	for _, asked := range w.asked() {
		bodies = append(bodies, asked.Body)
	}
	if diff := cmp.Diff([]string{
		`{"fence":"1.1","object_id":"a"}`,
		`{"fence":"1.1","object_id":"b","expected_version":1}`,
		`{"fence":"1.1","object_id":"b","expected_version":1}`,
		`{"fence":"1.1","object_id":"a"}`,
		`{"fence":"1.1","from_version":1,"expected_version":5}`,
		`{"fence":"1.1","withdraw":true,"expected_version":5}`,
	}, bodies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAfterAProxysErrorTheRepetitionIsADuplicateAndNothingWasDeleted(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		away := proxyError(status) // behind it, the publish was applied
		w := play(t, away, away, away, success(http.StatusOK, withObject))
		k := held(w.client())
		_, err := k.Publish(t.Context(), publication())
		if !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Fatalf("%d: %v", status, err)
		}
		repetition := publication()
		repetition.IdempotencyKey = asError(t, err).IdempotencyKey
		got, err := k.Publish(t.Context(), repetition)
		if err != nil || got.Result != client.Duplicate || got.Version != 2 {
			t.Errorf("%d: %+v, %v", status, got, err)
		}
		for _, asked := range w.asked() {
			if asked.Method != http.MethodPost || asked.Header.Get("Idempotency-Key") != repetition.IdempotencyKey {
				t.Errorf("%d: asked %v", status, asked)
			}
		}
	}
}

func TestAPublishOfALeaseThatIsOverIsTheServicesToDecide(t *testing.T) {
	t.Parallel()
	w := play(t, success(http.StatusOK, `{"result":"released"}`), success(http.StatusOK, withObject))
	k := held(w.client())
	if err := k.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Publish(t.Context(), publication()); err != nil || got.Result != client.Duplicate {
		t.Errorf("%+v, %v", got, err)
	}
}
