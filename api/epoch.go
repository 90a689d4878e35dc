package api

import (
	"math"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/lease"
)

// epochView is the present epoch as it is shown.
type epochView struct {
	Epoch    int32     `json:"epoch"`
	Floor    int32     `json:"floor"` // fences of epochs below it are closed
	BeganAt  time.Time `json:"began_at"`
	Reason   string    `json:"reason"`
	Verified bool      `json:"verified"` // the database is the one whose identity was verified
}

func (s *Server) getEpoch(c echo.Context) error {
	e, err := s.cfg.Leases.Epoch(c.Request().Context())
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, epochView(e))
}

func (s *Server) advanceEpoch(c echo.Context) error {
	body, err := decode[struct {
		Reason   string `json:"reason"`
		Expected *int64 `json:"expected"`
		Floor    bool   `json:"floor"`
	}](c)
	if err != nil {
		return err
	}
	if err := checkReason(body.Reason); err != nil {
		return err
	}
	if body.Expected == nil || *body.Expected < 1 || *body.Expected >= math.MaxInt32 {
		return invalid("expected", "expected must be the present epoch, a number from 1 to 2147483646.")
	}
	e, err := s.cfg.Leases.AdvanceEpoch(c.Request().Context(), lease.Advance{
		Expected: int32(*body.Expected), Floor: body.Floor, Reason: body.Reason, By: keyOf(c).ID, Staged: s.cfg.Objects.Retention(),
	})
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, epochView(e))
}
