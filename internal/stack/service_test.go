package stack_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/stack"
)

func TestAServiceThatIsKilledComesBackAtTheSameAddress(t *testing.T) {
	t.Parallel()
	s := startService(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, watched := s.PID(), watch(ctx, s)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitAnswer(t, s, first)
	cancel()
	if err := <-watched; err != nil {
		t.Errorf("Watch returned %v", err)
	}
}

func TestWithoutRestartTheDeathOfTheServiceIsReported(t *testing.T) {
	t.Parallel()
	s, err := stack.StartService(t.Context(), claim(t, newDir(t)), serviceConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	watched := watch(t.Context(), s)
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("Watch returned %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("Stop reports it again: %v", err)
	}
}

func TestTheDeathOfAServiceThatNobodyWatchesIsReportedAtTheStop(t *testing.T) {
	t.Parallel()
	s, err := stack.StartService(t.Context(), claim(t, newDir(t)), serviceConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("Stop returned %v", err)
	}
}

func TestAServiceThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := stack.StartService(t.Context(), claim(t, newDir(t)), serviceConfig(t, "STACK_TEST_BROKEN=1"))
	if err == nil || !strings.Contains(err.Error(), "a bad setting") {
		t.Errorf("StartService returned %v", err)
	}
}

// startService starts one that is restarted.
func startService(t *testing.T) *stack.Service {
	t.Helper()
	cfg := serviceConfig(t)
	cfg.Restart = true
	s, err := stack.StartService(t.Context(), claim(t, newDir(t)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func serviceConfig(t *testing.T, environment ...string) stack.ServiceConfig {
	t.Helper()
	port, err := stack.FreePort(0)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return stack.ServiceConfig{Binary: binary, Listen: fmt.Sprintf("127.0.0.1:%d", port), Environment: environment}
}

func watch(ctx context.Context, s *stack.Service) <-chan error {
	watched := make(chan error, 1)
	go func() { watched <- s.Watch(ctx) }()
	return watched
}

// awaitAnswer waits until another process than the former one is ready.
func awaitAnswer(t *testing.T, s *stack.Service, former int) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		pid, err := os.ReadFile(s.PIDFile)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSpace(string(pid)); text != "" && text != fmt.Sprint(former) {
			if resp, err := http.Get(s.URL + "/readyz"); err == nil {
				_ = resp.Body.Close()
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the service has not come back")
		}
	}
}
