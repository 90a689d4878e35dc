package main_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/fenceline/fenceline/internal/testservice"
)

// screen is what was written to a terminal.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

// watchScreen reads what is written to the terminal of this keyboard, until the test ends.
func watchScreen(keyboard *os.File) *screen {
	s := &screen{}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := keyboard.Read(buffer)
			s.mu.Lock()
			s.text.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil {
				return // the test has ended, and closed it
			}
		}
	}()
	return s
}

func (s *screen) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestOnATerminalAPassShowsABarAndTakesItAway(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	settings, p := slowly(t, leftovers(t, s, "left.csv"), s.Storage)
	keyboard, terminal := openTerminal(t)
	screen := watchScreen(keyboard)
	r := startAs(t, func(c *exec.Cmd) { c.Stdout, c.Stderr = terminal, terminal }, settings, "gc", "run")
	p.AwaitHeld(t)
	await(t, "the bar of the purge is drawn again and again, in one line", func() bool {
		text := screen.shows()
		_, bar, _ := strings.Cut(text, "condemn: 1")
		_, bar, _ = strings.Cut(bar, "\n")
		return strings.Count(bar, "purge: 0") > 2 && strings.Count(bar, "\r") > 2 && !strings.Contains(bar, "\n")
	})
	p.LetGo()
	r.ends(t, 0)
	await(t, "the summary is shown", func() bool { return strings.Contains(screen.shows(), "run 1: condemned 1") })
	// What comes after a bar begins at the beginning of its line, once the bar was erased.
	const eraseLine = "\x1b[2K\r"
	for _, line := range []string{"deleted reports/july/1.1/discarded.csv", "run 1: condemned 1"} {
		if text := screen.shows(); !strings.Contains(text, eraseLine+line) && !strings.Contains(text, "\n"+line) {
			t.Errorf("%q stands behind a bar: %q", line, text)
		}
	}
}
