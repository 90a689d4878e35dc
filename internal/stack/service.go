package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ServiceConfig says how to run a [Service].
type ServiceConfig struct {
	// Binary is the path of the fenceline binary.
	Binary string
	// Listen is the address that the service listens on, host:port.
	Listen string
	// Environment is all that the service gets to see, its settings included;
	// FENCELINE_LISTEN is added.
	Environment []string
	// Restart has [Service.Watch] start a service again that has died.
	Restart bool
}

// Service is a running `fenceline serve`.
type Service struct {
	*Process
	// URL is its base address.
	URL string
	// PIDFile names a file that holds the id of the present process, also
	// after a restart.
	PIDFile string

	folder   *Folder
	cfg      ServiceConfig
	reported bool // by Watch: how it died
}

// StartService starts the service and returns once it is ready for requests.
func StartService(ctx context.Context, f *Folder, cfg ServiceConfig) (*Service, error) {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	s := &Service{
		URL:     "http://" + net.JoinHostPort(host, port),
		PIDFile: filepath.Join(f.path, "serve.pid"),
		folder:  f,
		cfg:     cfg,
	}
	if err := s.launch(); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Watch blocks until ctx ends, and then returns nil, or until the service has
// died, and then says how. With Restart it starts the service again at the
// same address instead, unless it ended by itself before it was ready, as it
// does over a bad setting.
func (s *Service) Watch(ctx context.Context) error {
	ready := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Done():
		}
		if !s.cfg.Restart || !ready && !s.killed() {
			s.reported = true
			return s.Err()
		}
		if err := s.launch(); err != nil {
			return err
		}
		err := s.awaitReady(ctx)
		ready = err == nil
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// Stop lets the service finish what is under way, and returns once it has
// ended. [Service.Watch] must have returned. A service that somebody else has
// killed is an error, unless Watch has reported it or such deaths are expected
// (Restart).
func (s *Service) Stop() error {
	const shutdownTimeout = 30 * time.Second // the service's own default
	err := errors.Join(s.stop(shutdownTimeout+5*time.Second, syscall.SIGTERM), os.Remove(s.PIDFile))
	if !s.cfg.Restart && !s.reported && s.killed() {
		err = errors.Join(err, s.Err())
	}
	return err
}

// launch starts a process without waiting for it to be ready.
func (s *Service) launch() error {
	cmd := exec.Command(s.cfg.Binary, "serve")
	cmd.Env = append(s.cfg.Environment, "FENCELINE_LISTEN="+s.cfg.Listen)
	p, err := start("fenceline serve", cmd, s.folder.Log("service"), syscall.SIGKILL)
	if err != nil {
		return err
	}
	s.Process = p
	if err := os.WriteFile(s.PIDFile, []byte(strconv.Itoa(p.pid)+"\n"), 0o600); err != nil {
		return errors.Join(err, p.stop(0, syscall.SIGKILL))
	}
	return nil
}

func (s *Service) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.poll(ctx, func() bool { return answersOK(ctx, s.URL+"/readyz") })
}

// killed says whether SIGKILL ended the process, which is done.
func (p *Process) killed() bool {
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
