package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/client"
)

// errRender is how a worker's own work fails.
var errRender = errors.New("the report cannot be rendered")

// stageObject stages one object in the work of a Hold.
func stageObject(t *testing.T, k *client.Capability, objectID string) {
	t.Helper()
	if _, err := k.Reserve(t.Context(), client.ReserveRequest{ObjectID: objectID}); err != nil {
		t.Error(err)
	}
}

func TestHoldAcquiresKeepsAndReleases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		err := a.client().Hold(t.Context(), july(), func(ctx context.Context, k *client.Capability) error {
			time.Sleep(time.Minute)
			stageObject(t, k, "july.csv")
			_, err := k.Publish(ctx, publication())
			return err
		})
		if err != nil {
			t.Error(err)
		}
		asked := slices.DeleteFunc(a.requests(), func(r string) bool { return r == "POST leases/a7/renew" })
		if diff := cmp.Diff([]string{"PUT leases/a7", "PUT objects/1.1/july.csv", "POST publications", "DELETE leases/a7"}, asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if n := len(a.renewals()); n < 5 || n > 7 {
			t.Errorf("%d renewals in a minute", n)
		}
	})
}

func TestWorkThatFailsLeavesNothingStaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		err := a.client().Hold(t.Context(), july(), func(ctx context.Context, k *client.Capability) error {
			stageObject(t, k, "july.csv")
			stageObject(t, k, "draft.csv")
			if _, err := k.Publish(ctx, publication()); err != nil {
				t.Error(err)
			}
			return errRender
		})
		if !errors.Is(err, errRender) || errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{
			"PUT leases/a7", "PUT objects/1.1/july.csv", "PUT objects/1.1/draft.csv", "POST publications",
			"DELETE leases/a7", "DELETE objects/1.1/draft.csv",
		}, a.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestAStaleWorkerIsToldDiscardsAndDoesNotBeginAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		a.publish = problem(http.StatusConflict, "stale_fence", map[string]any{"reason": "superseded"})
		runs := 0
		err := a.client().Hold(t.Context(), july(), func(ctx context.Context, k *client.Capability) error {
			runs++
			stageObject(t, k, "july.csv")
			_, err := k.Publish(ctx, publication())
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrLeaseLost) || !errors.Is(context.Cause(ctx), client.ErrStaleFence) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return err
		})
		if !errors.Is(err, client.ErrStaleFence) || runs != 1 {
			t.Errorf("%v after %d runs", err, runs)
		}
		if diff := cmp.Diff([]string{
			"PUT leases/a7", "PUT objects/1.1/july.csv", "POST publications", "DELETE leases/a7", "DELETE objects/1.1/july.csv",
		}, a.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestNothingIsDeletedAfterAPublishOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"503 of the service": problem(http.StatusServiceUnavailable, "unavailable", map[string]any{"outcome": "unknown"}),
		"504 of a proxy":     proxyError(http.StatusGatewayTimeout),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAuthority()
				a.publish = answer
				err := a.client().Hold(t.Context(), july(), func(ctx context.Context, k *client.Capability) error {
					stageObject(t, k, "july.csv")
					_, err := k.Publish(ctx, publication())
					// A refusal of another request says nothing about the first.
					a.publish = problem(http.StatusConflict, "stale_fence", nil)
					if _, err := k.Publish(ctx, publication()); !errors.Is(err, client.ErrStaleFence) {
						t.Errorf("got %v", err)
					}
					return err
				})
				if !errors.Is(err, client.ErrOutcomeUnknown) {
					t.Errorf("got %v", err)
				}
				if slices.Contains(a.requests(), "DELETE objects/1.1/july.csv") {
					t.Error("the object was discarded")
				}
			})
		})
	}
}

func TestWorkWhoseLeaseIsLostIsStoppedAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(context.Context) error{
		"it heeds its context":        func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"it fails for another reason": func(ctx context.Context) error { <-ctx.Done(); return errRender },
		"it takes no notice":          func(ctx context.Context) error { <-ctx.Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAuthority()
				a.renew = problem(http.StatusGone, "lease_lost", map[string]any{"reason": "revoked"})
				err := a.client().Hold(t.Context(), july(), func(ctx context.Context, _ *client.Capability) error { return work(ctx) })
				var answered *client.Error
				if !errors.Is(err, client.ErrLeaseLost) || !errors.As(err, &answered) || answered.Reason != "revoked" || strings.Contains(err.Error(), "nil") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestWorkThatPublishedBeforeItsLeaseWasLostHasSucceeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		a.renew = problem(http.StatusGone, "lease_lost", nil)
		err := a.client().Hold(t.Context(), july(), func(ctx context.Context, k *client.Capability) error {
			_, err := k.Publish(ctx, publication())
			<-ctx.Done()
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestALeaseIsKeptWhileWorkThatWasCancelledFinishesAndThenReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		ctx, cancel := context.WithCancel(t.Context())
		err := a.client().Hold(ctx, july(), func(ctx context.Context, k *client.Capability) error {
			cancel()
			<-ctx.Done()
			time.Sleep(time.Minute)
			if !k.Valid() {
				t.Error("the heartbeat has stopped")
			}
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrLeaseLost) {
			t.Errorf("got %v", err)
		}
		if asked := a.requests(); asked[len(asked)-1] != "DELETE leases/a7" {
			t.Errorf("it was not released: %v", asked)
		}
	})
}

func TestAPanicReleasesAndGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		defer func() {
			if recovered := recover(); recovered != errRender {
				t.Errorf("recovered %v", recovered)
			}
			if asked := a.requests(); asked[len(asked)-1] != "DELETE leases/a7" {
				t.Errorf("it was not released: %v", asked)
			}
		}()
		_ = a.client().Hold(t.Context(), july(), func(context.Context, *client.Capability) error { panic(errRender) })
		t.Error("the panic has ended")
	})
}

func TestAServiceThatHangsDoesNotHoldUpTheEndForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		a.release = func(_ http.ResponseWriter, in *http.Request) { <-in.Context().Done() }
		start := time.Now()
		if err := a.client().Hold(t.Context(), july(), func(context.Context, *client.Capability) error { return nil }); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

func TestALeaseThatMayHaveBeenGrantedUnnoticedIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a.acquire = func(_ http.ResponseWriter, in *http.Request) { <-in.Context().Done() }
		err := a.client().Hold(ctx, july(), func(context.Context, *client.Capability) error {
			t.Error("there is work without a lease")
			return nil
		})
		if !errors.Is(err, client.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"PUT leases/a7", "DELETE leases/a7"}, a.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestAPublishThatWasSentInTimeIsNotCutOffByTheEndOfTheLease(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]error{8 * time.Second: nil, 12 * time.Second: client.ErrOutcomeUnknown} {
		synctest.Test(t, func(t *testing.T) {
			a := newAuthority()
			a.renew = problem(http.StatusGone, "lease_lost", nil)
			a.publish = func(out http.ResponseWriter, in *http.Request) {
				<-time.After(9500*time.Millisecond + wait) // beyond the renewal, which ends the lease
				success(http.StatusCreated, receipt)(out, in)
			}
			err := a.client().Hold(t.Context(), july(), func(ctx context.Context, k *client.Capability) error {
				_, err := k.Publish(ctx, publication())
				return err
			})
			if !errors.Is(err, want) {
				t.Errorf("%v after the end of the lease: %v", wait, err)
			}
		})
	}
}
