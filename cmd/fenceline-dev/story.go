package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/stack"
)

// story is the stage of the demo: what its scenes have seen so far.
type story struct {
	platform *platform
	folder   *stack.Folder
	env      []string // of the workers
	step     int

	a, b           *actor
	fenceA, fenceB client.Fence
	keyA, keyB     string // of the objects, in the bucket
}

func newStory(p *platform, f *stack.Folder) *story {
	return &story{platform: p, folder: f, env: environment(nil, p.clientVariables())}
}

// end leaves no worker behind.
func (s *story) end() {
	for _, worker := range []*actor{s.a, s.b} {
		if worker != nil {
			worker.kill()
		}
	}
}

// tell says what was just seen, as the numbered step.
func (s *story) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Printf("%2d  %s\n", s.step, strings.ReplaceAll(text, "\n", "\n    "))
}

// show prints what went over the wire, or what stands in a file.
func (s *story) show(what any) {
	text := strings.TrimRight(fmt.Sprint(what), "\n")
	fmt.Printf("      %s\n", strings.ReplaceAll(text, "\n", "\n      "))
}

// startWorker writes the worker's file and starts the worker.
func (s *story) startWorker(name, leaseID string) (*actor, error) {
	file := filepath.Join(s.folder.Path(), "report-of-"+name+".csv")
	if err := os.WriteFile(file, []byte(bytesOf(name)), 0o600); err != nil {
		return nil, err
	}
	return startActor(name, s.env,
		"--report", demoReport, "--lease-id", leaseID, "--holder", "worker-"+name, "--ttl", demoTTL.String(), file)
}

// bytesOf is the report as a worker computes it.
func bytesOf(worker string) string {
	return "month,total,computed by\njuly," + map[string]string{"A": "100", "B": "200"}[worker] + "," + worker + "\n"
}

// ask sends a GET to the service.
func (s *story) ask(ctx context.Context, path string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.platform.service.URL+path, nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.platform.state.Keys["operator"])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{http.MethodGet, path, resp.StatusCode, strings.TrimSpace(string(body))}, err
}

// askUntil repeats the GET until the answer is as hoped, and gives up after a
// while.
func (s *story) askUntil(ctx context.Context, path string, hoped func(answer) bool, patience time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last answer
	for {
		got, err := s.ask(ctx, path)
		switch {
		case ctx.Err() != nil:
			return last, fmt.Errorf("after %v still %s", patience, last)
		case err != nil:
			return got, err
		case hoped(got):
			return got, nil
		}
		last = got
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// read fetches the report as a reader does.
func (s *story) read(ctx context.Context) (version int64, text string, err error) {
	reader := client.New(client.Config{URL: s.platform.service.URL, Key: s.platform.state.Keys["reader"]})
	report, err := reader.Report(ctx, demoReport)
	if err != nil {
		return 0, "", err
	}
	content, err := reader.Open(ctx, demoReport)
	if err != nil {
		return 0, "", err
	}
	defer content.Close()
	bytes, err := io.ReadAll(content)
	return report.Version, string(bytes), err
}

// inBucket says whether the S3 server has a file for the key.
func (s *story) inBucket(key string) bool {
	_, err := os.Stat(filepath.Join(s.folder.Path(), "s3", "data", bucketName, key))
	return err == nil
}
