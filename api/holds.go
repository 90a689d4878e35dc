package api

import (
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// longestReason is how much may be said about why an operator acts, in characters.
const longestReason = 1000

// checkReason refuses an act without a reason.
func checkReason(reason string) error {
	if n := utf8.RuneCountInString(reason); n < 1 || n > longestReason {
		return invalid("reason", "reason must have 1 to 1000 characters.")
	}
	return nil
}

// versionResult is the answer to an act on one version.
type versionResult struct {
	Result  string           `json:"result"`
	Report  fencing.ReportID `json:"report"`
	Version int64            `json:"version"`
}

func (s *Server) holdVersion(c echo.Context) error {
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	if err := s.cfg.Catalog.Hold(c.Request().Context(), reportOf(c), version, keyOf(c).ID); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, versionResult{"held", reportOf(c), version})
}

func (s *Server) unholdVersion(c echo.Context) error {
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	if err := s.cfg.Catalog.Unhold(c.Request().Context(), reportOf(c), version, keyOf(c).ID); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, versionResult{"not_held", reportOf(c), version})
}

func (s *Server) eraseVersion(c echo.Context) error {
	version, err := versionOf(c)
	if err != nil {
		return err
	}
	body, err := decode[struct {
		Reason string `json:"reason"`
	}](c)
	if err != nil {
		return err
	}
	if err := checkReason(body.Reason); err != nil {
		return err
	}
	if err := s.cfg.Catalog.Erase(c.Request().Context(), reportOf(c), version, body.Reason, keyOf(c).ID); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, versionResult{"erased", reportOf(c), version})
}

// refusalView is a refusal as it is shown.
type refusalView struct {
	Code      string         `json:"code"`
	Presented fencing.Fence  `json:"presented"`
	Highest   *fencing.Fence `json:"highest"` // null where nothing was granted yet
	Reason    string         `json:"reason,omitzero"`
	KeyID     string         `json:"key_id"`
	Times     int64          `json:"times"`
	FirstAt   time.Time      `json:"first_at"`
	LastAt    time.Time      `json:"last_at"`
}

func viewRefusal(r catalog.Refusal) refusalView {
	return refusalView{
		Code: r.Code, Presented: r.Presented, Highest: orNull(r.Highest), Reason: r.Reason, KeyID: r.To,
		Times: r.Times, FirstAt: r.FirstAt, LastAt: r.LastAt,
	}
}

// refusalCursor is a place in the list of refusals.
type refusalCursor struct {
	LastAt  time.Time `json:"last_at"`
	Code    string    `json:"code"`
	Epoch   int32     `json:"epoch"`
	Counter int64     `json:"counter"`
	To      string    `json:"to"`
}

func (s *Server) listRefusals(c echo.Context) error {
	p, err := pageOf[refusalCursor](c)
	if err != nil {
		return err
	}
	from := p.from()
	refusals, err := s.cfg.Catalog.Refusals(c.Request().Context(), reportOf(c), catalog.AfterRefusal{
		LastAt: from.LastAt, Code: from.Code, Presented: fencing.Fence{Epoch: from.Epoch, Counter: from.Counter}, To: from.To,
	}, p.fetch())
	if err != nil {
		return err
	}
	return writeList(c, p, refusals, viewRefusal, func(r catalog.Refusal) refusalCursor {
		return refusalCursor{r.LastAt, r.Code, r.Presented.Epoch, r.Presented.Counter, r.To}
	})
}
