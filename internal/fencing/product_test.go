package fencing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/lease"
)

// product is the real thing; its methods put the answers in the model's words.
type product struct {
	db      *testdb.DB
	leases  *lease.Authority
	catalog *catalog.Catalog
}

func (p product) acquire(t *testing.T, report fencing.ReportID, id, holder string) string {
	g, err := p.leases.Acquire(t.Context(), lease.Request{
		Report: report, Lease: fencing.LeaseID(id), Holder: holder, TTL: modelTTL * time.Second,
	})
	switch {
	case err != nil:
		return inWords(err)
	case g.Replayed:
		return fmt.Sprintf("replayed %d", g.Fence.Counter)
	}
	return fmt.Sprintf("acquired %d at version %d", g.Fence.Counter, g.Version)
}

func (p product) renew(t *testing.T, report fencing.ReportID, id string) string {
	r, err := p.leases.Renew(t.Context(), report, fencing.LeaseID(id), 0)
	if err != nil {
		return inWords(err)
	}
	return fmt.Sprintf("renewed %d", r.Fence.Counter)
}

func (p product) release(t *testing.T, report fencing.ReportID, id string) string {
	ended, err := p.leases.Release(t.Context(), report, fencing.LeaseID(id))
	switch {
	case err != nil:
		return inWords(err)
	case ended:
		return "released"
	}
	return "already released"
}

func (p product) revoke(t *testing.T, report fencing.ReportID, counter int64) string {
	r := lease.Revocation{Report: report, Reason: "test", By: "test"}
	if counter > 0 {
		r.Fence = fencing.Fence{Epoch: 1, Counter: counter}
	}
	barred, err := p.leases.Revoke(t.Context(), r)
	if err != nil {
		return inWords(err)
	}
	return fmt.Sprintf("revoked %d", barred.Counter)
}

// stage makes the objects a and b ready under a grant.
func (p product) stage(t *testing.T, report fencing.ReportID, counter int64) {
	for _, object := range []string{"a", "b"} {
		testdb.Value[string](t, p.db, "SELECT status FROM reserve($1, 1, $2, $3, '', NULL, NULL, NULL, NULL, 60000, 3600000, 'test')", report, counter, object)
		testdb.Value[string](t, p.db, "SELECT status FROM seal($1, 1, $2, $3, 0, sha256(''), 'etag', NULL, 3600000)", report, counter, object)
	}
}

func (p product) publish(t *testing.T, report fencing.ReportID, q ask) string {
	r := catalog.Request{
		Report: report, Fence: fencing.Fence{Epoch: 1, Counter: q.fence}, IdempotencyKey: q.key,
		Object: fencing.ObjectID(q.object), FromVersion: q.from, Withdraw: q.object == "" && q.from == 0,
	}
	if q.expected >= 0 {
		r.ExpectedVersion = &q.expected
	}
	receipt, err := p.catalog.Publish(t.Context(), r)
	switch {
	case err != nil:
		return inWords(err)
	case receipt.Duplicate:
		return fmt.Sprintf("duplicate of %d, visible: %v", receipt.Version, receipt.Visible)
	}
	return fmt.Sprintf("applied %d", receipt.Version)
}

// inWords is an error in the model's words; one that the model does not know stays as it is.
func inWords(err error) string {
	if e, ok := errors.AsType[*fencing.StaleError](err); ok {
		return fmt.Sprintf("stale, %s by %d", e.Reason, e.Highest.Counter)
	}
	if e, ok := errors.AsType[*fencing.NotGrantedError](err); ok {
		return fmt.Sprintf("not granted, but %d", e.Granted.Counter)
	}
	if e, ok := errors.AsType[*lease.LostError](err); ok {
		return "lost " + e.Reason
	}
	if e, ok := errors.AsType[*lease.BusyError](err); ok {
		return "busy " + e.Holder
	}
	if e, ok := errors.AsType[*catalog.VersionConflictError](err); ok {
		return fmt.Sprintf("conflict %d with %d", e.Expected, e.Actual)
	}
	for _, w := range []struct {
		is   error
		word string
	}{
		{fencing.ErrReportNotFound, "no report"},
		{fencing.ErrLeaseNotLive, "lease not live"},
		{fencing.ErrObjectNotFound, "no object"},
		{lease.ErrIDReused, "id reused"},
		{lease.ErrNotFound, "no lease"},
		{catalog.ErrKeyReused, "key reused"},
		{catalog.ErrVersionNotFound, "no version"},
		{catalog.ErrGrantAlreadyUsed, "grant already used"},
		{catalog.ErrExpectedVersionRequired, "expected version required"},
	} {
		if errors.Is(err, w.is) {
			return w.word
		}
	}
	return err.Error()
}
