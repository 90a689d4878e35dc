package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/metrics"
)

// route is one row of the route table: what the server must know about a
// handler to wrap it properly.
type route struct {
	Method string
	Path   string // echo's notation; a report's id is always `:report`

	// Role is what a key must at least be allowed; empty for a route that is
	// open to all.
	Role Role

	// Whole says that the route concerns all reports at once, so that a key for
	// some of them may not call it.
	Whole bool

	// Mutates says that the route changes something: its errors tell the
	// outcome, and a client that hangs up does not interrupt it.
	Mutates bool

	// Waits says that the request may wait for something to happen before it
	// changes anything, so that it ends when its client hangs up.
	Waits bool

	// Streams says that the answer may take longer than a request's time limit,
	// as long as bytes flow.
	Streams bool

	// Limit bounds the work on one request where it may take longer than the
	// configured RequestTimeout; zero is that one.
	Limit time.Duration

	// Body is how many bytes a request may have where that is more than the
	// usual; zero is the usual.
	Body int64

	// Query names the query parameters that the route knows. Any other is
	// refused, so that a misspelt `limt` is not silently without effect.
	Query []string

	// Counted is the operation whose results the route's answers are, where they are counted.
	Counted metrics.Operation

	Handler echo.HandlerFunc
}

// Keys under which a request's context keeps what the middleware found out.
const (
	routeKey  = "fenceline.route"
	apiKeyKey = "fenceline.key"
	resultKey = "fenceline.result"
)

// handle adds one route, and HEAD beside GET: net/http leaves the body away.
// The middleware is listed from the outside in.
func (s *Server) handle(r route) {
	middleware := []echo.MiddlewareFunc{
		mark(r),
		s.limitTime(r),
		s.authorise(r),
		limitBody(max(r.Body, maxBodyBytes)),
		checkQuery(r.Query),
	}
	s.echo.Add(r.Method, r.Path, r.Handler, middleware...)
	if r.Method == http.MethodGet {
		s.echo.Add(http.MethodHead, r.Path, r.Handler, middleware...)
	}
}

// mark notes the route, for those who look at the request from outside of it.
func mark(r route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Set(routeKey, r)
			return next(c)
		}
	}
}

// mutates tells whether the request was meant to change something. A request
// that met no route is judged by its method.
func mutates(c echo.Context) bool {
	if r, ok := c.Get(routeKey).(route); ok {
		return r.Mutates
	}
	switch c.Request().Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}

// routeByDecodedPath makes `/v1/reports/jul%79` the same route as
// `/v1/reports/july`, as RFC 3986 has it. An escaped slash then separates
// segments too, which is harmless: no id contains one.
func routeByDecodedPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Request().URL.RawPath = ""
		return next(c)
	}
}

// limitBody refuses a body over the limit: at once where its length is announced,
// otherwise when the reading passes the limit.
func limitBody(limit int64) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			if r.ContentLength > limit {
				return bodyTooLarge(limit)
			}
			r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
			return next(c)
		}
	}
}
