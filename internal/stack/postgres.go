package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Postgres is a running PostgreSQL server that listens on a Unix socket only,
// in a folder that only its account may enter; whoever can reach the socket is
// trusted.
type Postgres struct {
	*Process
	socketDir string
	durable   bool
	temporary bool // the socket's folder is outside of the stack's
}

// Superuser is the name of the cluster's superuser.
const Superuser = "postgres"

// PostgresConfig says how to run a [Postgres].
type PostgresConfig struct {
	// Fast gives up durability, for folders that are thrown away: no fsync,
	// and an immediate shutdown.
	Fast bool
	// MaxConnections is PostgreSQL's max_connections; 0 means 100.
	MaxConnections int
}

// StartPostgres creates the cluster in the folder where there is none, starts
// it and returns once it accepts connections. A server that a killed process
// has left behind in the folder is waited for first.
func StartPostgres(ctx context.Context, f *Folder, cfg PostgresConfig) (*Postgres, error) {
	p, err := startPostgres(ctx, f, cfg)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL in %s: %w", f.path, err)
	}
	return p, nil
}

func startPostgres(ctx context.Context, f *Folder, cfg PostgresConfig) (*Postgres, error) {
	data := filepath.Join(f.path, "postgres")
	version, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	bin, err := findPostgres(strings.TrimSpace(string(version)))
	if err != nil {
		return nil, err
	}
	if version == nil {
		if err := initdb(ctx, f, bin, data, cfg.Fast); err != nil {
			return nil, err
		}
	}
	if err := awaitPredecessor(ctx, data); err != nil {
		return nil, err
	}
	p := &Postgres{durable: !cfg.Fast}
	if err := p.makeSocketDir(f); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), p.arguments(data, cfg)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", plainEnvironment(), f.as.attr()
	p.Process, err = start("PostgreSQL", cmd, f.Log("postgres"), p.shutdownSignal())
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx, data); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// arguments are those of the postgres binary.
func (p *Postgres) arguments(data string, cfg PostgresConfig) []string {
	connections := cfg.MaxConnections
	if connections == 0 {
		connections = 100
	}
	args := []string{
		"-D", data, "-k", p.socketDir,
		"-c", "listen_addresses=", "-c", "port=" + socketPort,
		"-c", "max_connections=" + strconv.Itoa(connections),
		"-c", "timezone=UTC", "-c", "log_timezone=UTC",
	}
	if cfg.Fast {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	return args
}

// URL is the address of a database for a role.
func (p *Postgres) URL(role, database string) string {
	query := url.Values{"host": {p.socketDir}, "port": {socketPort}}
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}

// Stop shuts the server down, waiting for a checkpoint where it is durable but
// not for its clients, and returns once it has ended.
func (p *Postgres) Stop() error {
	err := p.stop(30*time.Second, p.shutdownSignal(), syscall.SIGQUIT)
	if p.temporary {
		err = errors.Join(err, os.RemoveAll(p.socketDir))
	}
	return err
}

// shutdownSignal asks for a fast shutdown, or an immediate one where nothing
// needs to last.
func (p *Postgres) shutdownSignal() syscall.Signal {
	if p.durable {
		return syscall.SIGINT
	}
	return syscall.SIGQUIT
}

// socketPort names the socket's file; nothing listens on such a port.
const socketPort = "5432"

// makeSocketDir creates a folder whose path leaves room for the socket's name:
// a socket's path is at most 107 bytes long (103 on some systems).
func (p *Postgres) makeSocketDir(f *Folder) error {
	p.socketDir = filepath.Join(f.path, "run")
	if len(p.socketDir)+len("/.s.PGSQL.5432.lock") > 103 {
		dir, err := os.MkdirTemp("/tmp", "fenceline-run-")
		if err != nil {
			return err
		}
		p.socketDir, p.temporary = dir, true
		return f.as.mkdir(dir)
	}
	// What is in it belongs to a server that has ended; PostgreSQL would
	// refuse to start where its process id is now another process's.
	if err := os.RemoveAll(p.socketDir); err != nil {
		return err
	}
	return f.as.mkdir(p.socketDir)
}

// awaitReady waits until the server says so in line 8 of its pid file.
func (p *Postgres) awaitReady(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return p.poll(ctx, func() bool {
		pid, status := readPIDFile(data)
		return pid == p.pid && status == "ready"
	})
}

// initdb creates the cluster under another name first, so that one that was
// interrupted is never taken for a whole one.
func initdb(ctx context.Context, f *Folder, bin, data string, fast bool) error {
	partial := data + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := f.as.mkdir(partial); err != nil {
		return err
	}
	args := []string{
		"-D", partial, "-U", Superuser, "-A", "trust",
		"--encoding=UTF8", "--no-locale", "--no-instructions",
	}
	if fast {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", plainEnvironment(), f.as.attr()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return os.Rename(partial, data)
}

// plainEnvironment is what the servers see of this process's environment:
// nothing that could be a setting of theirs.
func plainEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/"}
}
