package api_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
)

// No request may hold a connection while it waits for another one, nor for a lease, a change or the storage: with one
// connection for all, that would be the end of every request.
func TestAPoolOfOneConnectionIsEnoughForAllThatClientsAndTheCollectorDo(t *testing.T) {
	t.Parallel()
	s := newArena(t, func(c *service.Config) { c.Database.Pool = 1 })
	const workers, rounds = 6, 3
	over, rest := context.WithCancel(t.Context())
	var background, busy sync.WaitGroup
	for _, always := range []func(*testing.T){s.collectOnce, s.lookAtEverything, s.watchOnce} {
		background.Go(func() {
			for over.Err() == nil {
				always(t)
			}
		})
	}
	for w := range workers {
		busy.Go(func() {
			for round := range rounds {
				s.workInTurn(t, fmt.Sprintf("w%d-%d", w, round))
			}
		})
	}
	busy.Wait()
	rest()
	background.Wait()
	const versions = workers * rounds
	if n := testdb.Value[int](t, s.DB, "SELECT version::int FROM report WHERE report_id = 'july'"); n != versions {
		t.Errorf("july has %d versions, want %d", n, versions)
	}
	if n := testdb.Value[int](t, s.DB, "SELECT count(DISTINCT fence_counter)::int FROM publication WHERE report_id = 'july'"); n != versions {
		t.Errorf("they were published under %d fences, want one each", n)
	}
	if n := s.Leases.Waiting() + s.Catalog.Watching(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// workInTurn waits for the lease of july, publishes under it, sealing on the way, and does what an operator may.
func (a arena) workInTurn(t *testing.T, id string) {
	t.Helper()
	const july = "/v1/reports/july"
	lease := july + "/leases/" + id
	granted := a.DoAs(t, a.Worker, "PUT", lease, map[string]any{"holder": id, "ttl_ms": leaseTime.Milliseconds(), "wait_ms": 60000}).Want(t, 201)
	fence := granted.String(t, "fence")
	a.stage(t, fence, id)
	a.DoAs(t, a.Worker, "POST", lease+"/renew", nil).Want(t, 200)
	published := a.publish(t, id, publication(fence, id)).Want(t, 201)
	version := published.Int(t, "version")
	a.publish(t, id, publication(fence, id)).Want(t, 200) // again, as a duplicate
	if got := a.DoAs(t, a.Reader, "GET", july+"/content", nil).Want(t, 200); string(got.Body) != id {
		t.Errorf("readers get %q, want %q", got.Body, id)
	}
	a.Do(t, "PUT", fmt.Sprintf("%s/publications/%d/hold", july, version), nil).Want(t, 200)
	a.Do(t, "PATCH", july+"/settings", map[string]any{"keep_versions": version % 3}).Want(t, 200)
	a.Do(t, "DELETE", fmt.Sprintf("%s/publications/%d/hold", july, version), nil).Want(t, 200)
	a.DoAs(t, a.Worker, "DELETE", lease, nil).Want(t, 200)
}

// collectOnce runs a pass.
func (a arena) collectOnce(t *testing.T) {
	t.Helper()
	pass, err := a.Collector.Begin(t.Context(), gc.Options{By: "test"})
	if err == nil {
		err = pass.Run(t.Context())
	}
	if err != nil && !errors.Is(err, gc.ErrAlreadyRunning) {
		t.Errorf("a pass: %v", err)
	}
}

// lookAtEverything reads what a console reads.
func (a arena) lookAtEverything(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/v1/status", "/v1/reports", "/v1/gc/runs", "/v1/verifications", "/readyz"} {
		a.Do(t, "GET", path, nil).Want(t, 200)
	}
}

// watchOnce waits for a moment for july to change.
func (a arena) watchOnce(t *testing.T) {
	t.Helper()
	etag := a.DoAs(t, a.Reader, "GET", "/v1/reports/july", nil).Header.Get("ETag")
	if etag == "" {
		etag = `"0-1.1"`
	}
	got := a.DoAs(t, a.Reader, "GET", "/v1/reports/july?wait_ms=50", nil, "If-None-Match", etag)
	if got.Status != 200 && got.Status != 304 && got.Status != 404 {
		t.Errorf("a watcher was answered %d %s", got.Status, got.Body)
	}
}
