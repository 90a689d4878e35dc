package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// authorise lets a request pass if its key may do what the route does, to the
// report that the route names.
func (s *Server) authorise(r route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if r.Role == "" {
			return next
		}
		return func(c echo.Context) error {
			key, err := s.authenticate(c)
			if err != nil {
				return err
			}
			if !key.Role.Includes(r.Role) {
				return forbidden(fmt.Sprintf("This needs a key with the role %s.", r.Role))
			}
			if r.Whole && key.Pattern != "*" {
				return forbidden("This needs a key for all reports.")
			}
			if err := coversReport(c, key); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// authenticate finds the request's key and keeps it for keyOf and the log.
func (s *Server) authenticate(c echo.Context) (Key, error) {
	secret, ok := secretOf(c.Request())
	if !ok {
		return Key{}, ErrUnauthenticated
	}
	key, err := s.cfg.Authenticate(c.Request().Context(), secret)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return Key{}, err
	case err != nil:
		// Nobody has been refused: the key could not be looked up.
		return Key{}, unavailable("Keys cannot be checked at the moment.").
			withOutcome(outcomeNotApplied).because(err)
	}
	c.Set(apiKeyKey, key)
	return key, nil
}

// keyIsGood looks the request's key up once more: it may have ended while the request waited.
func (s *Server) keyIsGood(c echo.Context) func(context.Context) error {
	return func(context.Context) error {
		_, err := s.authenticate(c)
		return err
	}
}

// keyOf is the key of an authenticated request.
func keyOf(c echo.Context) Key {
	key, _ := c.Get(apiKeyKey).(Key)
	return key
}

// coversReport checks the report in the path, if there is one. It comes before
// anything is looked up, so a key learns nothing of reports that are not its
// own, not even whether they exist.
func coversReport(c echo.Context, key Key) error {
	if !strings.Contains(c.Path(), ":report") {
		return nil
	}
	report := c.Param("report")
	if !isReportID(report) {
		return invalid("report", "A report's id is 1 to 200 letters, digits, dots, underscores and hyphens, and begins with a letter or digit.")
	}
	if !key.Pattern.Covers(report) {
		return forbidden("This key is not for this report.")
	}
	return nil
}

func forbidden(detail string) *problem {
	return newProblem(http.StatusForbidden, "forbidden", detail)
}

// secretOf takes the key from the Authorization header: a bearer token, or the
// password of HTTP Basic, whose user name means nothing.
func secretOf(r *http.Request) (string, bool) {
	headers := r.Header.Values(echo.HeaderAuthorization)
	if len(headers) != 1 {
		return "", false
	}
	if scheme, token, ok := strings.Cut(headers[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token), true
	}
	_, password, ok := r.BasicAuth()
	return password, ok
}
