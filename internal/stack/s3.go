package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ErrNoVersitygw reports that the S3 server's binary is missing.
var ErrNoVersitygw = errors.New("versitygw is not built: run `make build`")

// Region is the region that the S3 server signs for.
const Region = "us-east-1"

// S3 is a running S3 server (versitygw) that keeps its objects as files. It
// does not fsync: it is for development and tests.
type S3 struct {
	*Process
	// Endpoint is the server's address, http://127.0.0.1:port.
	Endpoint string
	// Port is the TCP port in it.
	Port int
}

// S3Config says how to run an [S3].
type S3Config struct {
	// Binary is the path of versitygw; empty means beside this executable,
	// or else on the PATH.
	Binary string
	// AccessKey and SecretKey are the server's only credentials.
	AccessKey, SecretKey string
	// Port is the port wished for; another one is taken where it is not free.
	// 0 means any.
	Port int
	// Sidecar keeps what the server knows about objects in files of their own,
	// instead of in extended attributes, of which many file systems have a few
	// KiB: too little for an object of many hundred parts. A folder keeps to
	// what it was begun with.
	Sidecar bool
}

// StartS3 starts the server on the folder's files and returns once it answers.
func StartS3(ctx context.Context, f *Folder, cfg S3Config) (*S3, error) {
	binary, err := findVersitygw(cfg.Binary)
	if err != nil {
		return nil, err
	}
	// A port that is free now may be taken before the server listens on it.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		s, err := startS3(ctx, f, binary, cfg)
		if err == nil || attempt == attempts || ctx.Err() != nil {
			return s, err
		}
		cfg.Port = 0
	}
}

func startS3(ctx context.Context, f *Folder, binary string, cfg S3Config) (*S3, error) {
	port, err := FreePort(cfg.Port)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args := []string{
		"--port", address, "--health", "/health", "--region", Region, "--quiet", "posix",
		"--versioning-dir", filepath.Join(f.path, "s3", "versions"), // for buckets that ask for versions
	}
	if sidecar := filepath.Join(f.path, "s3", "sidecar"); cfg.Sidecar || !hasXattrs(sidecar) {
		args = append(args, "--sidecar", sidecar)
	}
	cmd := exec.Command(binary, append(args, filepath.Join(f.path, "s3", "data"))...)
	cmd.Dir = "/"
	cmd.Env = append(plainEnvironment(), "ROOT_ACCESS_KEY="+cfg.AccessKey, "ROOT_SECRET_KEY="+cfg.SecretKey)
	p, err := start("versitygw", cmd, f.Log("versitygw"), syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	s := &S3{Process: p, Endpoint: "http://" + address, Port: port}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the server, letting requests that are under way finish for a few
// seconds.
func (s *S3) Stop() error { return s.stop(5*time.Second, syscall.SIGTERM) }

func (s *S3) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.poll(ctx, func() bool { return answersOK(ctx, s.Endpoint+"/health") })
}

// answersOK says whether a GET is answered with 200.
func answersOK(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// FreePort returns the wished loopback port if nobody listens on it, else any
// free one; 0 wishes for nothing.
func FreePort(wish int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(wish)))
	if err != nil && wish != 0 {
		return FreePort(0)
	}
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func findVersitygw(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "versitygw")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("versitygw")
	if err != nil {
		return "", ErrNoVersitygw
	}
	return path, nil
}
