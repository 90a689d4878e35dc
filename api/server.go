package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/metrics"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/lease"
	"github.com/fenceline/fenceline/staging"
)

// Config says what a [Server] needs. The zero value of every field but
// Authenticate is the default named beside it.
type Config struct {
	// Authenticate finds the key that a secret belongs to; [Keys.Authenticate]
	// is the one used in production. It answers ErrUnauthenticated for a secret
	// that opens nothing; any other error means that nobody can tell now.
	// Default: nobody is authenticated.
	Authenticate func(ctx context.Context, secret string) (Key, error)

	// The parts of the service that the routes of the contract call. With none
	// of them the server has only its own routes.
	Leases    *lease.Authority
	Objects   *staging.Area
	Catalog   *catalog.Catalog
	Collector *gc.Collector
	Verifier  *verify.Verifier

	// LongestLease is the longest ttl of a lease. Default 24 h.
	LongestLease time.Duration

	// Metrics counts the requests, and is served at /metrics, open to all. Default: nothing is counted, and
	// there is nothing at that address.
	Metrics *metrics.Metrics

	// Version is the program's, for /v1/status.
	Version string

	// Warnings are shown in /v1/status: what was allowed that should not last.
	Warnings []string

	// Ready lists what must work before /readyz answers 200. Default: nothing
	// but the process itself.
	Ready []Check

	// RequestTimeout bounds the work on one request. A streaming route may take
	// longer, as long as bytes flow: for it this is the longest pause between
	// two of them. Default 30 s.
	RequestTimeout time.Duration

	// ShutdownTimeout is how long Run waits for the requests in flight once its
	// context has ended. Default 30 s.
	ShutdownTimeout time.Duration

	// Log receives one line a request and what goes wrong inside. Default
	// slog.Default().
	Log *slog.Logger
}

const (
	readHeaderTimeout = 10 * time.Second
	readBodyTimeout   = 30 * time.Second // from the first byte of the request to the last of its body
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	maxBodyBytes      = 64 << 10

	// writeSlack is the time that an answer has for leaving the machine after
	// the work on it has used up its RequestTimeout.
	writeSlack = 10 * time.Second
)

// Server answers Fenceline's HTTP requests.
type Server struct {
	cfg      Config
	echo     *echo.Echo
	log      *slog.Logger
	draining chan struct{} // closed when the shutdown begins
}

// New assembles a server; nothing is answered before [Server.Serve].
func New(cfg Config) *Server {
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 30*time.Second)
	cfg.ShutdownTimeout = cmp.Or(cfg.ShutdownTimeout, 30*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.LongestLease = cmp.Or(cfg.LongestLease, 24*time.Hour)
	cfg.Warnings = slices.Concat([]string{}, cfg.Warnings) // never null, never shared
	if cfg.Authenticate == nil {
		cfg.Authenticate = func(context.Context, string) (Key, error) { return Key{}, ErrUnauthenticated }
	}

	s := &Server{cfg: cfg, echo: echo.New(), log: cfg.Log, draining: make(chan struct{})}
	s.echo.Pre(routeByDecodedPath)
	s.echo.Use(requestID, s.answerAndLog, recoverPanics)
	routes := s.serviceRoutes()
	if cfg.Catalog != nil {
		routes = append(routes, s.domainRoutes()...)
	}
	for _, r := range routes {
		s.handle(r)
	}
	return s
}

// serviceRoutes are open to all: they tell what the service is and whether it
// works, and nothing about any report.
func (s *Server) serviceRoutes() []route {
	docs := docsPage()
	routes := []route{
		{Method: http.MethodGet, Path: "/docs", Handler: docs},
		{Method: http.MethodGet, Path: "/docs/:asset", Handler: docs},
		{Method: http.MethodGet, Path: "/livez", Handler: s.livez},
		{Method: http.MethodGet, Path: "/readyz", Handler: s.readyz},
		{Method: http.MethodGet, Path: "/openapi.yaml", Handler: serveOpenAPI},
	}
	if s.cfg.Metrics != nil {
		routes = append(routes, route{Method: http.MethodGet, Path: "/metrics", Handler: s.metricsPage()})
	}
	return routes
}

// ServeHTTP answers one request, for callers that bring their own listener.
// The time limits of the connection are those of their http.Server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.echo.ServeHTTP(w, r)
}

// Serve answers on listener, which it closes, until ctx ends. Then /readyz says
// that the service is going, nothing new is accepted, whoever waits for a lease or a change is let go, and what
// is in flight has Config.ShutdownTimeout to finish. It returns nil if all of it did. A server serves once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	// Requests must outlive ctx, whose end only begins the shutdown.
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	server := s.httpServer(base)

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.log.InfoContext(ctx, "listening", "address", listener.Addr().String())

	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}

	close(s.draining)
	s.log.InfoContext(ctx, "shutting down", "timeout", s.cfg.ShutdownTimeout.String())
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		return errors.Join(fmt.Errorf("finish the requests in flight: %w", err), server.Close())
	}
	<-served
	return nil
}

// httpServer has no WriteTimeout, which would cut a long download; every route
// sets its own deadlines (see limitTime).
func (s *Server) httpServer(base context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readBodyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}
