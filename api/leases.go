package api

import (
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/lease"
)

// shortestTTL is the shortest lease: below it the way there and back would eat it up.
const shortestTTL = time.Second

// leaseName reads the path of one lease.
func leaseName(c echo.Context) (fencing.ReportID, fencing.LeaseID, error) {
	id, err := fencing.ParseLeaseID(c.Param("lease_id"))
	if err != nil {
		return "", "", invalid("lease_id", "A lease's id is 1 to 64 letters, digits, dots, underscores and hyphens, and begins with a letter or digit.")
	}
	return reportOf(c), id, nil
}

// reportOf is the report in the path, which the authorisation has checked.
func reportOf(c echo.Context) fencing.ReportID { return fencing.ReportID(c.Param("report")) }

func (s *Server) acquireLease(c echo.Context) error {
	report, id, err := leaseName(c)
	if err != nil {
		return err
	}
	body, err := decode[struct {
		Holder string         `json:"holder"`
		TTL    *time.Duration `json:"ttl_ms"`
		Wait   time.Duration  `json:"wait_ms"`
	}](c)
	if err != nil {
		return err
	}
	if n := utf8.RuneCountInString(body.Holder); n < 1 || n > 200 {
		return invalid("holder", "holder must have 1 to 200 characters.")
	}
	if body.TTL == nil {
		return invalid("ttl_ms", "ttl_ms is missing.")
	}
	if err := s.checkTTL(*body.TTL); err != nil {
		return err
	}
	if err := checkWait(body.Wait); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if body.Wait > 0 {
		waiting, stop := s.untilDraining(ctx)
		defer stop()
		ctx = waiting
	}
	grant, err := s.cfg.Leases.Acquire(ctx,
		lease.Request{Report: report, Lease: id, Holder: body.Holder, TTL: *body.TTL, Wait: body.Wait, MayStill: s.keyIsGood(c)})
	if err != nil {
		return err
	}
	noteResult(c, "acquired")
	status := http.StatusCreated
	if grant.Replayed {
		status = http.StatusOK
	}
	return writeJSON(c, status, struct {
		Result    string           `json:"result"`
		Report    fencing.ReportID `json:"report"`
		LeaseID   fencing.LeaseID  `json:"lease_id"`
		Holder    string           `json:"holder"`
		Fence     fencing.Fence    `json:"fence"`
		Remaining time.Duration    `json:"remaining_ms"`
		Waited    time.Duration    `json:"waited_ms"`
		Version   int64            `json:"version"`
		Replayed  bool             `json:"replayed,omitzero"`
	}{
		Result: "acquired", Report: report, LeaseID: id, Holder: grant.Holder, Fence: grant.Fence,
		Remaining: grant.Remaining, Waited: grant.Waited, Version: grant.Version, Replayed: grant.Replayed,
	})
}

// longestWait is how long a request may wait for a lease to end, or for a report to change.
const longestWait = time.Minute

func checkWait(wait time.Duration) error {
	if wait < 0 || wait > longestWait {
		return invalid("wait_ms", fmt.Sprintf("wait_ms must be from 0 to %d.", longestWait.Milliseconds()))
	}
	return nil
}

func (s *Server) checkTTL(ttl time.Duration) error {
	if ttl < shortestTTL || ttl > s.cfg.LongestLease {
		return invalid("ttl_ms", fmt.Sprintf("ttl_ms must be from %d to %d.", shortestTTL.Milliseconds(), s.cfg.LongestLease.Milliseconds()))
	}
	return nil
}

func (s *Server) renewLease(c echo.Context) error {
	report, id, err := leaseName(c)
	if err != nil {
		return err
	}
	body, err := decodeOptional[struct {
		TTL *time.Duration `json:"ttl_ms"`
	}](c)
	if err != nil {
		return err
	}
	var ttl time.Duration
	if body.TTL != nil {
		ttl = *body.TTL
		if err := s.checkTTL(ttl); err != nil {
			return err
		}
	}
	renewal, err := s.cfg.Leases.Renew(c.Request().Context(), report, id, ttl)
	if err != nil {
		return err
	}
	noteResult(c, "renewed")
	s.cfg.Metrics.Renewed(renewal.Left)
	return writeJSON(c, http.StatusOK, struct {
		Result    string        `json:"result"`
		Fence     fencing.Fence `json:"fence"`
		Remaining time.Duration `json:"remaining_ms"`
	}{"renewed", renewal.Fence, renewal.Remaining})
}

func (s *Server) releaseLease(c echo.Context) error {
	report, id, err := leaseName(c)
	if err != nil {
		return err
	}
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	released, err := s.cfg.Leases.Release(c.Request().Context(), report, id)
	if err != nil {
		return err
	}
	result := "already_released"
	if released {
		result = "released"
	}
	noteResult(c, result)
	return writeJSON(c, http.StatusOK, map[string]string{"result": result})
}

func (s *Server) revokeLease(c echo.Context) error {
	body, err := decode[struct {
		Reason string  `json:"reason"`
		Fence  *string `json:"fence"`
	}](c)
	if err != nil {
		return err
	}
	if err := checkReason(body.Reason); err != nil {
		return err
	}
	revocation := lease.Revocation{Report: reportOf(c), Reason: body.Reason, By: keyOf(c).ID}
	if body.Fence != nil {
		if revocation.Fence, err = parseFence(*body.Fence); err != nil {
			return err
		}
	}
	barred, err := s.cfg.Leases.Revoke(c.Request().Context(), revocation)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		Result string           `json:"result"`
		Report fencing.ReportID `json:"report"`
		Fence  fencing.Fence    `json:"fence"`
	}{"revoked", revocation.Report, barred})
}

// leaseView is a lease as it is shown.
type leaseView struct {
	Report    fencing.ReportID `json:"report"`
	LeaseID   fencing.LeaseID  `json:"lease_id"`
	State     lease.State      `json:"state"`
	Holder    string           `json:"holder,omitzero"`
	Fence     *fencing.Fence   `json:"fence"` // null for an id that was released before it was ever granted
	TTL       time.Duration    `json:"ttl_ms,omitzero"`
	GrantedAt *time.Time       `json:"granted_at,omitzero"`
	Remaining *time.Duration   `json:"remaining_ms,omitzero"` // while it is live
	EndedAt   *time.Time       `json:"ended_at,omitzero"`
	Reason    string           `json:"reason,omitzero"` // once it has ended
}

func viewLease(report fencing.ReportID) func(lease.Lease) leaseView {
	return func(l lease.Lease) leaseView {
		v := leaseView{
			Report: report, LeaseID: l.ID, State: l.State, Holder: l.Holder, Fence: orNull(l.Fence), TTL: l.TTL,
			GrantedAt: l.GrantedAt, EndedAt: l.EndedAt, Reason: l.EndReason,
		}
		if l.State == lease.Live {
			v.Remaining = &l.Remaining
		}
		return v
	}
}

func (s *Server) getLease(c echo.Context) error {
	report, id, err := leaseName(c)
	if err != nil {
		return err
	}
	l, err := s.cfg.Leases.Lease(c.Request().Context(), report, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewLease(report)(l))
}

func (s *Server) getLiveLease(c echo.Context) error {
	l, err := s.cfg.Leases.Live(c.Request().Context(), reportOf(c))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewLease(reportOf(c))(l))
}

func (s *Server) listLeases(c echo.Context) error {
	p, err := pageOf[lease.After](c)
	if err != nil {
		return err
	}
	leases, err := s.cfg.Leases.Leases(c.Request().Context(), reportOf(c), p.from(), p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, leases, viewLease(reportOf(c)), func(l lease.Lease) lease.After {
		return lease.After{CreatedAt: l.CreatedAt, ID: l.ID}
	})
}

// parseFence reads a fence that a client sent.
func parseFence(text string) (fencing.Fence, error) {
	f, err := fencing.ParseFence(text)
	if err != nil {
		return f, newProblem(http.StatusBadRequest, "invalid_fence",
			`A fence is the string "<epoch>.<counter>", such as "1.42": two decimal numbers from 1, without leading zeros.`).
			with("field", "fence")
	}
	return f, nil
}

// orNull makes the zero fence null.
func orNull(f fencing.Fence) *fencing.Fence {
	if f.IsZero() {
		return nil
	}
	return &f
}
