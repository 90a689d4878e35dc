package crowd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/service"
)

// replica is one instance of the service, in this process, and its clients' connections.
type replica struct {
	service   *service.Service
	sent      *counter
	client    *client.Client
	transport *http.Transport
	stop      context.CancelFunc
	ended     chan error
}

// counter counts the statements of one instance. It stands in the driver, where each is sent: the server's own numbers
// come late, and know no instance.
type counter struct{ n atomic.Int64 }

// TraceQueryStart counts one.
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// startReplicas returns those that it has started also with an error.
func startReplicas(ctx context.Context, cfg Config) ([]*replica, error) {
	key, err := makeKey(ctx, cfg.OwnerURL)
	if err != nil {
		return nil, err
	}
	var replicas []*replica
	for range cfg.Replicas {
		r, err := startReplica(ctx, cfg.Service, key)
		if err != nil {
			return replicas, err
		}
		replicas = append(replicas, r)
	}
	return replicas, nil
}

// makeKey makes the key that the whole crowd has.
func makeKey(ctx context.Context, ownerURL string) (string, error) {
	owner, err := database.Open(ctx, database.Config{URL: ownerURL, Pool: 1})
	if err != nil {
		return "", err
	}
	defer owner.Close()
	_, secret, err := api.NewKeys(owner, nil).Create(ctx, api.NewKey{Name: "crowd", Role: api.RoleWorker, Pattern: "*"})
	return secret, err
}

func startReplica(ctx context.Context, cfg service.Config, key string) (*replica, error) {
	r := &replica{sent: &counter{}, transport: &http.Transport{}, ended: make(chan error, 1)}
	cfg.Database.Tracer = r.sent
	s, err := service.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r.service = s
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	go func() { r.ended <- s.Serve(serving, listener) }()

	// One attempt, so that every answer counts.
	r.client = client.New(client.Config{
		URL: "http://" + listener.Addr().String(), Key: key, MaxAttempts: 1, HTTPClient: &http.Client{Transport: r.transport},
	})
	// It answers once it has passed its checks.
	if err := r.client.Release(ctx, "other", "unknown"); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *replica) close() error {
	r.transport.CloseIdleConnections()
	r.stop()
	err := <-r.ended
	r.service.Close()
	return err
}

func stopAll(replicas []*replica) error {
	var err error
	for _, r := range replicas {
		err = errors.Join(err, r.close())
	}
	return err
}

// statements is how many all have sent.
func statements(replicas []*replica) int64 {
	var sent int64
	for _, r := range replicas {
		sent += r.sent.n.Load()
	}
	return sent
}

// waitingAt is how many wait at all of them.
func waitingAt(replicas []*replica) int {
	waiting := 0
	for _, r := range replicas {
		waiting += r.service.Leases.Waiting()
	}
	return waiting
}
