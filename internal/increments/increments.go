// Package increments lets workers add one to a number in a published file, again and again, each time with `fenceline exec`,
// and suspends them at random past their leases. Of lost updates and of updates that nobody was told of the number would
// tell: in the end it must be exactly how often a worker was told that its publish was applied.
package increments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/stack"
)

// Config says what is to happen.
type Config struct {
	Program string   // the path of fenceline
	Env     []string // of the workers, with the address and the key of the service, and fenceline on the PATH
	Folder  string   // for their files
	Service client.Config
	Workers int
	Times   int     // how often each tries
	Share   float64 // of the tries that are suspended
	Seed    uint64
}

// Result is what came of it.
type Result struct {
	Codes     map[int]int // how often exec ended with each code
	Suspended int         // how many tries were suspended before they had ended
	Number    int         // in the published file
	Version   int64       // of the report
	Broken    []string    // what is not as it must be
}

const (
	report = "counter"
	// ttl is the shortest with which exec has time to renew.
	ttl = 3 * time.Second
)

// script reads the number and writes the next one. A report that is not there yet (6) is 0; one that cannot be read must
// not be taken for that.
const script = `n=$(fenceline get counter 2>/dev/null); case $? in 0) ;; 6) n=0 ;; *) exit 99 ;; esac; echo $((n + 1)) > "$0"`

// Run lets the workers work, and compares. The error says that it could not be done.
func Run(ctx context.Context, cfg Config) (Result, error) {
	r := Result{Codes: map[int]int{}}
	var mu sync.Mutex
	var running sync.WaitGroup
	failures := make([]error, cfg.Workers)
	for i := range cfg.Workers {
		w := &worker{Config: cfg, output: filepath.Join(cfg.Folder, fmt.Sprintf("counter-%d", i)), random: rand.New(rand.NewPCG(cfg.Seed, uint64(i)))}
		running.Go(func() {
			for range cfg.Times {
				code, suspended, err := w.try(ctx)
				if err != nil {
					failures[i] = err
					return
				}
				mu.Lock()
				r.Codes[code]++
				if suspended {
					r.Suspended++
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	if err := errors.Join(failures...); err != nil {
		return r, err
	}
	return r, r.judge(ctx, cfg)
}

// judge reads the number, and says what is broken.
func (r *Result) judge(ctx context.Context, cfg Config) error {
	service := client.New(cfg.Service)
	newest, err := service.Report(ctx, report)
	if err != nil {
		return err
	}
	r.Version = newest.Version
	path := filepath.Join(cfg.Folder, "final")
	get := exec.CommandContext(ctx, cfg.Program, "get", report, "--output", path)
	get.Env = cfg.Env
	if said, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("read the number: %w: %s", err, said)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if r.Number, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return fmt.Errorf("read the number: %w", err)
	}
	if applied := r.Codes[0]; r.Number != applied || r.Version != int64(applied) {
		r.Broken = append(r.Broken, fmt.Sprintf("%d were told that they have published, the number is %d and the version %d", applied, r.Number, r.Version))
	}
	// Lost leases, stale fences and versions that have moved on are what suspending leads to, and busy what it leads the
	// others to. Nothing else is to happen where the network is whole.
	for _, code := range slices.Sorted(maps.Keys(r.Codes)) {
		if !slices.Contains([]int{0, 4, 120, 121, 122}, code) {
			r.Broken = append(r.Broken, fmt.Sprintf("%d tries ended with %d", r.Codes[code], code))
		}
	}
	return nil
}

// worker is one that adds.
type worker struct {
	Config
	output string
	random *rand.Rand
	usual  time.Duration // how long a try takes that nobody disturbs
}

// try adds one, or not.
func (w *worker) try(ctx context.Context) (code int, suspended bool, err error) {
	if ctx.Err() != nil {
		return 0, false, context.Cause(ctx)
	}
	cmd := exec.Command(w.Program, "exec", "--report", report, "--output", w.output, "--ttl", ttl.String(), "--wait", "1m",
		"--holder", filepath.Base(w.output), "--", "sh", "-c", script, w.output)
	cmd.Env = w.Env
	began := time.Now()
	ended, err := stack.StartBound(cmd, syscall.SIGKILL)
	if err != nil {
		return 0, false, err
	}
	if w.random.Float64() < w.Share {
		suspended = w.suspend(cmd)
	}
	err = <-ended
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, false, err
	}
	if !suspended {
		w.usual = (3*w.usual + time.Since(began)) / 4
	}
	return cmd.ProcessState.ExitCode(), suspended, nil
}

// suspend stops a try somewhere on its way, for longer than its lease, and lets it go on. It tells whether the try had
// not ended before.
func (w *worker) suspend(cmd *exec.Cmd) bool {
	<-time.After(time.Duration(w.random.Int64N(int64(w.usual + time.Millisecond))))
	if cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	<-time.After(ttl + time.Duration(w.random.Int64N(int64(time.Second))))
	return cmd.Process.Signal(syscall.SIGCONT) == nil
}
