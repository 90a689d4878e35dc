package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
)

func (s *Server) freeze(c echo.Context) error {
	return s.setFreeze(c, "frozen", s.cfg.Catalog.Freeze)
}

func (s *Server) unfreeze(c echo.Context) error {
	return s.setFreeze(c, "unfrozen", s.cfg.Catalog.Unfreeze)
}

// setFreeze reads the pattern, which must lie within the key's own, and does what it says.
func (s *Server) setFreeze(c echo.Context, result string, set func(ctx context.Context, pattern, by string) error) error {
	body, err := decode[struct {
		Pattern string `json:"pattern"`
	}](c)
	if err != nil {
		return err
	}
	pattern, err := ParsePattern(body.Pattern)
	if err != nil {
		return invalid("pattern", "pattern must be *, a report's id, or the beginning of ids followed by *.")
	}
	if !keyOf(c).Pattern.Contains(pattern) {
		return forbidden("This key is not for all of these reports.")
	}
	if err := set(c.Request().Context(), string(pattern), keyOf(c).ID); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		Result  string  `json:"result"`
		Pattern Pattern `json:"pattern"`
	}{result, pattern})
}

func (s *Server) pauseCollector(c echo.Context) error {
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	if err := s.cfg.Collector.Pause(c.Request().Context(), keyOf(c).ID); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, map[string]string{"result": "paused"})
}

func (s *Server) resumeCollector(c echo.Context) error {
	if _, err := decodeOptional[struct{}](c); err != nil {
		return err
	}
	if err := s.cfg.Collector.Resume(c.Request().Context(), keyOf(c).ID); err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, map[string]string{"result": "resumed"})
}
