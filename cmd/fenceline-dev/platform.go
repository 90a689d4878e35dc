package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fenceline/fenceline/internal/stack"
)

// platform is the whole of Fenceline, running in a folder.
type platform struct {
	*servers
	service  *stack.Service
	settings []string // of the service, unless the caller has set them
}

// platformConfig says how to run a [platform].
type platformConfig struct {
	postgres stack.PostgresConfig
	sidecar  bool // of the S3 server
	listen   string
	settings []string // as environment variables; the caller's own win
	restart  bool
}

// startPlatform starts the servers, migrates, makes what the service needs and
// starts it.
func startPlatform(ctx context.Context, f *stack.Folder, cfg platformConfig) (*platform, error) {
	binary, err := fencelineBinary()
	if err != nil {
		return nil, err
	}
	s, err := startServers(ctx, f, cfg.postgres, func(s3 *stack.S3Config) { s3.Sidecar = cfg.sidecar })
	if err != nil {
		return nil, err
	}
	p := &platform{servers: s, settings: cfg.settings}
	if err := p.prepare(ctx, f, binary); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	p.service, err = stack.StartService(ctx, f, stack.ServiceConfig{
		Binary:      binary,
		Listen:      cfg.listen,
		Environment: environment(p.settings, p.serviceVariables()),
		Restart:     cfg.restart,
	})
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return p, nil
}

// prepare makes the schema, the bucket and the keys, where they are missing.
func (p *platform) prepare(ctx context.Context, f *stack.Folder, binary string) error {
	created, err := createDatabase(ctx, p.postgres)
	if err != nil {
		return err
	}
	owner := environment(p.settings, []string{"FENCELINE_DATABASE_URL=" + p.ownerURL()})
	if _, err := output(ctx, owner, binary, "migrate", "up"); err != nil {
		return err
	}
	if err := letServiceLogIn(ctx, p.postgres); err != nil {
		return err
	}
	if err := createBucket(ctx, p.servers); err != nil {
		return err
	}
	if created {
		clear(p.state.Keys) // of a database that is no more
	}
	for _, role := range []string{"operator", "worker", "reader"} {
		if p.state.Keys[role] != "" {
			continue
		}
		key, err := output(ctx, owner, binary, "key", "create", "--role", role, "--name", "dev-"+role)
		if err != nil {
			return err
		}
		p.state.Keys[role] = key
		if err := p.state.write(f); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the service first, so that it can finish what is under way.
func (p *platform) stop() error {
	return errors.Join(p.service.Stop(), p.servers.stop())
}

func (p *platform) ownerURL() string { return p.postgres.URL(ownerRole, databaseName) }

func (p *platform) serviceURL() string { return p.postgres.URL(serviceRole, databaseName) }

// serviceVariables are the addresses that the service is given.
func (p *platform) serviceVariables() []string {
	return append(p.storageVariables(),
		"FENCELINE_DATABASE_URL="+p.serviceURL(),
		"FENCELINE_BUCKET="+bucketName,
	)
}

// clientVariables are the addresses and keys that a user of the platform needs.
func (p *platform) clientVariables() []string {
	return append([]string{
		"FENCELINE_URL=" + p.service.URL,
		"FENCELINE_KEY=" + p.state.Keys["operator"],
		"FENCELINE_WORKER_KEY=" + p.state.Keys["worker"],
		"FENCELINE_READER_KEY=" + p.state.Keys["reader"],
		"FENCELINE_DATABASE_URL=" + p.ownerURL(),
		"FENCELINE_SERVICE_DATABASE_URL=" + p.serviceURL(),
		"FENCELINE_BUCKET=" + bucketName,
	}, p.storageVariables()...)
}

// processVariables tell an experiment which process to kill.
func (p *platform) processVariables() []string {
	return []string{
		"FENCELINE_SERVE_PID=" + strconv.Itoa(p.service.PID()),
		"FENCELINE_SERVE_PID_FILE=" + p.service.PIDFile,
	}
}

// fencelineBinary is $FENCELINE_BIN, or the one beside this executable.
func fencelineBinary() (string, error) {
	if path := os.Getenv("FENCELINE_BIN"); path != "" {
		return filepath.Abs(path)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "fenceline")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: run `make build`, or set FENCELINE_BIN", path)
	}
	return path, nil
}

// output runs a command to its end and returns what it printed, trimmed; an
// error carries what it complained of.
func output(ctx context.Context, env []string, binary string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = env
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fenceline %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
