package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/internal/testservice"
)

// worker is a client of a real service.
func worker(s *testservice.Service) *client.Client {
	return client.New(client.Config{URL: s.URL, Key: s.Worker, Backoff: time.Millisecond})
}

// workerBehind is one that reaches it through a proxy.
func workerBehind(t *testing.T, s *testservice.Service) (*client.Client, *testproxy.Proxy) {
	t.Helper()
	proxy := testproxy.New(t, "tcp", strings.TrimPrefix(s.URL, "http://"))
	// On a connection that was used before, the transport would repeat a request by itself.
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return client.New(client.Config{
		URL: "http://" + proxy.Addr, Key: s.Worker, Backoff: time.Millisecond, HTTPClient: &http.Client{Transport: transport},
	}), proxy
}

// grant acquires a lease for half a minute.
func grant(t *testing.T, c *client.Client, holder string) *client.Capability {
	t.Helper()
	k, err := c.Acquire(t.Context(), client.AcquireRequest{Report: "july", Holder: holder, TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// upload stages bytes.
func upload(t *testing.T, k *client.Capability, objectID, text string) {
	t.Helper()
	request := client.UploadRequest{ObjectID: objectID, Body: strings.NewReader(text), Declaration: client.Declaration{ContentType: "text/csv"}}
	if _, err := k.Upload(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// read gives what readers see.
func read(t *testing.T, c *client.Client) string {
	t.Helper()
	content, err := c.Open(t.Context(), "july")
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatIsHeldUploadedAndPublishedIsWhatReadersGet(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	c := worker(s)
	err := c.Hold(t.Context(), client.AcquireRequest{Report: "july", Holder: "A", TTL: 30 * time.Second}, func(ctx context.Context, k *client.Capability) error {
		for n, text := range []string{"first", "second"} {
			upload(t, k, text, text)
			got, err := k.Publish(ctx, client.PublishRequest{ObjectID: text})
			if err != nil || got.Result != client.Applied || got.Version != int64(n+1) {
				t.Errorf("%+v, %v", got, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := read(t, c); text != "second" {
		t.Errorf("readers get %q", text)
	}
	var versions []int64
	for got, err := range c.History(t.Context(), "july") {
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, got.Version)
	}
	if diff := cmp.Diff([]int64{2, 1}, versions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Do(t, http.MethodGet, "/v1/reports/july/lease", nil).Refused(t, http.StatusNotFound, "lease_not_found")
}

func TestAStaleWorkersReleaseAndPublishLeaveItsSuccessorAlone(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	c := worker(s)
	err := c.Hold(t.Context(), client.AcquireRequest{Report: "july", Holder: "A", TTL: 30 * time.Second}, func(ctx context.Context, a *client.Capability) error {
		upload(t, a, "july.csv", "of A")
		s.DB.Advance(t, time.Minute)
		b := grant(t, c, "B")
		upload(t, b, "july.csv", "of B")
		if _, err := b.Publish(ctx, client.PublishRequest{ObjectID: "july.csv"}); err != nil {
			t.Error(err)
		}
		_, err := a.Publish(ctx, client.PublishRequest{ObjectID: "july.csv"})
		if a.Valid() {
			t.Error("A is still valid")
		}
		if err := a.Release(t.Context()); !errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("the release of A: %v", err)
		}
		if err := b.Renew(t.Context()); err != nil || !b.Valid() {
			t.Errorf("the renewal of B: %v", err)
		}
		return err
	})
	var refused *client.Error
	if !errors.Is(err, client.ErrStaleFence) || !errors.As(err, &refused) || refused.Reason != "superseded" {
		t.Errorf("got %v", err)
	}
	if text := read(t, c); text != "of B" {
		t.Errorf("readers get %q", text)
	}
	s.Do(t, http.MethodGet, "/v1/reports/july/objects/1.1/july.csv", nil).Want(t, http.StatusOK)
	if state := s.Do(t, http.MethodGet, "/v1/reports/july/objects/1.1/july.csv", nil).String(t, "state"); state != "condemned" {
		t.Errorf("what A staged is %s", state)
	}
}

func TestRenewingUnderAnIDThatHoldsNothingChangesNothing(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	c := worker(s)
	former := grant(t, c, "A")
	if err := former.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	live := grant(t, c, "B")
	before := s.Do(t, http.MethodGet, "/v1/reports/july/leases/"+live.LeaseID(), nil).JSON(t)
	for id, want := range map[string]error{"made-up": client.ErrNotFound, former.LeaseID(): client.ErrLeaseLost} {
		if _, err := c.Resume(t.Context(), "july", id, time.Minute); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	after := s.Do(t, http.MethodGet, "/v1/reports/july/leases/"+live.LeaseID(), nil).JSON(t)
	delete(before, "remaining_ms")
	delete(after, "remaining_ms")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestARenewalThatArrivesAfterTheReleaseIsRefused(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	behind, proxy := workerBehind(t, s)
	k := grant(t, behind, "A")
	proxy.Hold("/renew")
	renewed := make(chan error)
	go func() { renewed <- k.Renew(context.Background()) }()
	proxy.AwaitHeld(t)
	if err := worker(s).Release(t.Context(), "july", k.LeaseID()); err != nil {
		t.Fatal(err)
	}
	proxy.LetGo()
	err := <-renewed
	if !errors.Is(err, client.ErrLeaseLost) || asError(t, err).Reason != "released" {
		t.Errorf("got %v", err)
	}
	if k.Valid() || !errors.Is(context.Cause(k.Context()), client.ErrLeaseLost) {
		t.Errorf("valid: %v, cause %v", k.Valid(), context.Cause(k.Context()))
	}
}

func TestAPublishWhoseAnswerIsLostIsADuplicateInTheSameCall(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	behind, proxy := workerBehind(t, s)
	k := grant(t, behind, "A")
	upload(t, k, "july.csv", "of A")
	proxy.CutAnswer(0)
	got, err := k.Publish(t.Context(), client.PublishRequest{ObjectID: "july.csv"})
	if err != nil || got.Result != client.Duplicate || got.Version != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	// The next one builds on it all the same.
	if got, err := k.Publish(t.Context(), client.PublishRequest{Withdraw: true}); err != nil || got.Result != client.Applied || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnUploadWhoseFirstAnswerIsLostIsThere(t *testing.T) {
	t.Parallel()
	var proxy *testproxy.Proxy
	s := testservice.Start(t, func(c *service.Config) {
		endpoint, err := url.Parse(c.Bucket.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		proxy = testproxy.New(t, "tcp", endpoint.Host)
		c.Bucket.PublicEndpoint = "http://" + proxy.Addr
	})
	k := grant(t, worker(s), "A")
	proxy.CutAnswer(0)
	upload(t, k, "july.csv", "of A")
	if _, err := k.Publish(t.Context(), client.PublishRequest{ObjectID: "july.csv"}); err != nil {
		t.Error(err)
	}
	if text := read(t, worker(s)); text != "of A" {
		t.Errorf("readers get %q", text)
	}
}

func TestAWatchSeesThePublishItWaitedFor(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	c := worker(s)
	k := grant(t, c, "A")
	upload(t, k, "july.csv", "of A")
	seen := make(chan *client.Publication)
	go func() {
		defer close(seen)
		for got, err := range c.Updates(t.Context(), "july", 0) {
			if err != nil {
				t.Error(err)
				return
			}
			if seen <- got; got.Version == 3 {
				return
			}
		}
	}()
	for n, request := range []client.PublishRequest{{ObjectID: "july.csv"}, {Withdraw: true}, {FromVersion: 1}} {
		if _, err := k.Publish(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		got := <-seen
		if got == nil || got.Version != int64(n+1) || (got.Object == nil) != request.Withdraw {
			t.Errorf("after publish %d: %+v", n+1, got)
		}
	}
}

// dawdling is a transport that sends the first upload only once its URL has expired.
type dawdling struct{ once sync.Once }

func (d *dawdling) RoundTrip(in *http.Request) (*http.Response, error) {
	if query := in.URL.Query(); query.Has("X-Amz-Expires") {
		d.once.Do(func() {
			signed, _ := time.Parse("20060102T150405Z", query.Get("X-Amz-Date"))
			life, _ := strconv.Atoi(query.Get("X-Amz-Expires"))
			<-time.After(time.Until(signed.Add(time.Duration(life+1) * time.Second)))
		})
	}
	return http.DefaultTransport.RoundTrip(in)
}

func TestAnUploadURLThatExpiresBeforeItIsUsedCostsNothing(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t, func(c *service.Config) { c.Objects.UploadURLLife = time.Second })
	k := grant(t, client.New(client.Config{URL: s.URL, Key: s.Worker, HTTPClient: &http.Client{Transport: &dawdling{}}}), "A")
	upload(t, k, "july.csv", "of A")
}
