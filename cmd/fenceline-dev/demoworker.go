package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fenceline/fenceline/client"
)

// demoWorkerCommand is a worker of the demo: an ordinary program that uses the
// client library. It announces each step as a line of JSON, and publishes only
// once it has read a line from its standard input.
type demoWorkerCommand struct {
	URL     string        `env:"FENCELINE_URL" required:""`
	Key     string        `env:"FENCELINE_WORKER_KEY" required:""`
	Report  string        `required:""`
	LeaseID string        `required:""`
	Holder  string        `required:""`
	TTL     time.Duration `required:"" name:"ttl"`
	File    string        `arg:""`
}

// announcement is one line that a demo worker prints: a step, and the service's
// answer that it saw in it.
type announcement struct {
	Step    string       `json:"step"` // acquired, uploaded, published, refused
	Fence   client.Fence `json:"fence"`
	Version int64        `json:"version,omitzero"` // published
	Code    string       `json:"code,omitzero"`    // refused
	Highest client.Fence `json:"highest,omitzero"` // refused
	Key     string       `json:"key,omitzero"`     // uploaded: in the bucket
	Answer  answer       `json:"answer"`
}

// Run plays the worker once.
func (c *demoWorkerCommand) Run() error {
	ctx := context.Background()
	wire := &recorder{}
	service := client.New(client.Config{
		URL: c.URL, Key: c.Key, UserAgent: "fenceline-demo",
		HTTPClient: &http.Client{Transport: wire},
	})
	announce := func(a announcement) error {
		a.Answer = wire.last
		return json.NewEncoder(os.Stdout).Encode(a)
	}

	lease, err := service.Acquire(ctx, client.AcquireRequest{
		Report: c.Report, LeaseID: c.LeaseID, Holder: c.Holder, TTL: c.TTL,
	})
	if err != nil {
		return err
	}
	if err := announce(announcement{Step: "acquired", Fence: lease.Fence()}); err != nil {
		return err
	}
	reservation, err := lease.Reserve(ctx, client.ReserveRequest{
		ObjectID:    c.Report + ".csv",
		Declaration: client.Declaration{ContentType: "text/csv", Filename: c.Report + ".csv"},
	})
	if err != nil {
		return err
	}
	if err := service.SendFile(ctx, reservation, c.File); err != nil {
		return err
	}
	if err := announce(announcement{Step: "uploaded", Fence: lease.Fence(), Key: reservation.Key}); err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the word to publish: %w", err)
	}
	published, err := lease.Publish(ctx, client.PublishRequest{ObjectID: reservation.ObjectID})
	var refused *client.Error
	switch {
	case errors.As(err, &refused):
		return announce(announcement{Step: "refused", Fence: refused.Presented, Code: refused.Code, Highest: refused.Highest})
	case err != nil:
		return err
	}
	return announce(announcement{Step: "published", Fence: published.Fence, Version: published.Version})
}

// answer is one exchange with the service, as it went over the wire.
type answer struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// String is the exchange on one line.
func (a answer) String() string {
	return fmt.Sprintf("%s %s → %d %s", a.Method, a.Path, a.Status, a.Body)
}

// state is the object's state in the answer; "" if it tells none.
func (a answer) state() string {
	var object struct{ State string }
	_ = json.Unmarshal([]byte(a.Body), &object) // no JSON tells no state
	return object.State
}

// recorder is a transport that keeps the last answer of the service. It leaves
// the storage's answers alone.
type recorder struct{ last answer }

// RoundTrip sends the request as [http.DefaultTransport] does.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || !strings.HasPrefix(req.URL.Path, "/v1/") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	r.last = answer{req.Method, req.URL.Path, resp.StatusCode, string(bytes.TrimSpace(body))}
	return resp, nil
}
