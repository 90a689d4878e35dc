package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/stack"
)

// bigCommand uploads and reads back more bytes than fit into memory.
type bigCommand struct {
	Size   byteCount `default:"20GB" help:"How many bytes, such as 500MB, 20GB or 3GiB. The disk must have room for twice as many."`
	Stream bool      `help:"Upload them from a source that can be read only once, instead of at any place."`
	Memory byteCount `default:"200MiB" help:"How much memory the uploading process may have used at its peak."`
}

const bigReport = "big"

// Run returns nil only if readers got the bytes that were uploaded, and the upload kept within its memory.
func (c *bigCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	p, err := startForBig(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()

	fmt.Printf("%v are uploaded by a process of their own …\n", c.Size)
	uploaded, err := c.upload(ctx, p)
	if err != nil {
		return err
	}
	fmt.Printf("upload   %v\nseal     %v\npublish  %v\n",
		rate(c.Size, uploaded.Upload), rate(c.Size, uploaded.Seal), uploaded.Publish.Round(time.Millisecond))
	digest, err := newGenerated().digest(int64(c.Size)) // apart from the client, which has hashed too
	if err != nil {
		return err
	}
	read, err := c.readBack(ctx, p, digest)
	if err != nil {
		return err
	}
	fmt.Printf("read     %v, of the same digest\n", rate(c.Size, read))
	fmt.Printf("memory   %.1f MiB at the peak of the uploading process\n", float64(uploaded.PeakBytes)/(1<<20))
	if uploaded.PeakBytes > int64(c.Memory) {
		return fmt.Errorf("the upload has used more than %v of memory", c.Memory)
	}
	return nil
}

// startForBig starts a platform whose storage takes any number of parts.
func startForBig(ctx context.Context, folder *stack.Folder) (*platform, error) {
	settings, err := settings(0)
	if err != nil {
		return nil, err
	}
	port, err := stack.FreePort(0)
	if err != nil {
		return nil, err
	}
	return startPlatform(ctx, folder, platformConfig{
		postgres: throwawayPostgres(), sidecar: true, listen: fmt.Sprintf("127.0.0.1:%d", port), settings: settings,
	})
}

// upload has a child upload, whose memory is then that of an upload alone.
func (c *bigCommand) upload(ctx context.Context, p *platform) (bigUploaded, error) {
	self, err := os.Executable()
	if err != nil {
		return bigUploaded{}, err
	}
	cmd := exec.CommandContext(ctx, self, "big-upload", "--size", strconv.FormatInt(int64(c.Size), 10), fmt.Sprintf("--stream=%t", c.Stream))
	cmd.Env = environment(nil, p.clientVariables())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return bigUploaded{}, fmt.Errorf("upload: %w", err)
	}
	var uploaded bigUploaded
	if err := json.Unmarshal(out, &uploaded); err != nil {
		return bigUploaded{}, fmt.Errorf("what the upload told: %w", err)
	}
	return uploaded, nil
}

// readBack reads the newest version as readers do, and compares its digest with that of the bytes that were to be
// uploaded.
func (c *bigCommand) readBack(ctx context.Context, p *platform, digest string) (time.Duration, error) {
	started := time.Now()
	reader := client.New(client.Config{URL: p.service.URL, Key: p.state.Keys["reader"], UserAgent: "fenceline-big"})
	content, err := reader.Open(ctx, bigReport)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	n, err := io.Copy(io.Discard, content) // which fails where the bytes are not those published
	switch {
	case err != nil:
		return 0, err
	case n != int64(c.Size) || content.SHA256 != digest:
		return 0, fmt.Errorf("%d bytes with SHA-256 %s were read, uploaded were %d with %s", n, content.SHA256, c.Size, digest)
	}
	return time.Since(started), nil
}

// rate says how long so many bytes took, and how many that are in a second.
func rate(size byteCount, took time.Duration) string {
	return fmt.Sprintf("%v, %.0f MB/s", took.Round(time.Millisecond), float64(size)/1e6/took.Seconds())
}

// byteCount is a number of bytes on the command line.
type byteCount int64

// UnmarshalText reads 20GB, 3GiB and the like.
func (b *byteCount) UnmarshalText(text []byte) error {
	number, factor := string(text), int64(1)
	for unit, n := range map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if before, ok := strings.CutSuffix(number, unit); ok {
			number, factor = before, n
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > 5<<40/factor {
		return fmt.Errorf("%q is no number of bytes up to 5TiB, such as 20GB", text)
	}
	*b = byteCount(n * factor)
	return nil
}

// String is the number in the largest unit that loses little.
func (b byteCount) String() string {
	switch {
	case b >= 1e9:
		return fmt.Sprintf("%.4gGB", float64(b)/1e9)
	case b >= 1e6:
		return fmt.Sprintf("%.4gMB", float64(b)/1e6)
	}
	return fmt.Sprintf("%d bytes", int64(b))
}
