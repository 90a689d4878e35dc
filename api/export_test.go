package api

import (
	"log/slog"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/internal/metrics"
)

// What the tests see beyond the package's surface: they add small routes of
// their own, to watch the machinery without any domain behind it.
type (
	Route           = route
	Page[C any]     = page[C]
	PageList[T any] = list[T]
)

func (s *Server) Handle(r Route) { s.handle(r) }

// Routes is the whole route table.
func Routes() []Route {
	s := Server{cfg: Config{Metrics: metrics.New(metrics.Sources{})}, log: slog.Default()}
	return append(s.serviceRoutes(), s.domainRoutes()...)
}

func Decode[T any](c echo.Context) (T, error)         { return decode[T](c) }
func DecodeOptional[T any](c echo.Context) (T, error) { return decodeOptional[T](c) }

func WriteJSON(c echo.Context, status int, v any) error { return writeJSON(c, status, v) }

func PageOf[C any](c echo.Context) (Page[C], error) { return pageOf[C](c) }
func PageQuery(more ...string) []string             { return pageQuery(more...) }
func (p page[C]) Fetch() int                        { return p.fetch() }

func ListOf[R, T, C any](p Page[C], rows []R, encode func(R) T, cursor func(R) C) (PageList[T], error) {
	return listOf(p, rows, encode, cursor)
}

func KeyOf(c echo.Context) Key { return keyOf(c) }
