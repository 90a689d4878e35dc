package api

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// patched is a member of a PATCH: left away it changes nothing, null gives the setting back to the default.
type patched[T any] struct {
	given bool
	value *T
}

// UnmarshalJSONFrom is called for every member that is there, null included.
func (p *patched[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	p.given = true
	return json.UnmarshalDecode(dec, &p.value)
}

// settingsView is what a report is under, and which of it is its own.
type settingsView struct {
	Report            fencing.ReportID          `json:"report"`
	Fencing           catalog.Mode              `json:"fencing"`
	PublishesPerGrant catalog.PublishesPerGrant `json:"publishes_per_grant"`
	Retention         time.Duration             `json:"retention_ms"`
	KeepVersions      int                       `json:"keep_versions"`
	TokenSource       string                    `json:"token_source"`
	Own               []string                  `json:"own"` // the names of those that are not the service's default
}

func viewSettings(report fencing.ReportID, s catalog.Settings) settingsView {
	return settingsView{
		Report: report, Fencing: s.Fencing, PublishesPerGrant: s.PublishesPerGrant, Retention: s.Retention,
		KeepVersions: s.KeepVersions, TokenSource: builtinSource, Own: s.Own,
	}
}

// builtinSource is the authority that grants this service's fences: itself.
const builtinSource = "builtin"

func (s *Server) getSettings(c echo.Context) error {
	settings, err := s.cfg.Catalog.Settings(c.Request().Context(), reportOf(c))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewSettings(reportOf(c), settings))
}

func (s *Server) changeSettings(c echo.Context) error {
	body, err := decode[struct {
		Fencing           patched[catalog.Mode]              `json:"fencing"`
		PublishesPerGrant patched[catalog.PublishesPerGrant] `json:"publishes_per_grant"`
		Retention         patched[time.Duration]             `json:"retention_ms"`
		KeepVersions      patched[int]                       `json:"keep_versions"`
		TokenSource       patched[string]                    `json:"token_source"`
	}](c)
	if err != nil {
		return err
	}
	if t := body.TokenSource.value; t != nil && *t != builtinSource {
		return invalid("token_source", "token_source must be builtin: this release knows no external authority.")
	}
	changes := catalog.Changes{}
	if body.Fencing.given {
		changes.SetFencing(body.Fencing.value)
	}
	if body.PublishesPerGrant.given {
		changes.SetPublishesPerGrant(body.PublishesPerGrant.value)
	}
	if body.Retention.given {
		changes.SetRetention(body.Retention.value)
	}
	if body.KeepVersions.given {
		changes.SetKeepVersions(body.KeepVersions.value)
	}
	settings, err := s.cfg.Catalog.ChangeSettings(c.Request().Context(), reportOf(c), changes)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, viewSettings(reportOf(c), settings))
}
