package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/fenceline/fenceline/internal/verify"
)

// tellEvery is how often a line tells how far a verification has come, where there is no terminal.
const tellEvery = 10 * time.Second

// tally shows how far a verification has come: as a bar on a terminal, else as a line now and then.
type tally struct {
	to       io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
	began    time.Time
	told     time.Time
	before   int64 // objects that were looked at before this process began
	any      bool
}

func newTally(to io.Writer) *tally {
	file, ok := to.(*os.File)
	now := time.Now()
	return &tally{to: to, terminal: ok && term.IsTerminal(int(file.Fd())), began: now, told: now}
}

// say prints a remark.
func (t *tally) say(remark string) { fmt.Fprintln(t.to, remark) }

// aside prints something else, with no bar in its way.
func (t *tally) aside(print func()) {
	if t.bar != nil {
		_ = t.bar.Clear() // a bar that cannot be cleared is no reason to stop
	}
	print()
}

// moved tells how far the verification has come.
func (t *tally) moved(r verify.Record) {
	if !t.any {
		t.any, t.before = true, r.Objects-1
	}
	now := time.Now()
	if t.terminal {
		t.draw(now, r)
		return
	}
	if now.Sub(t.told) < tellEvery {
		return
	}
	t.told = now
	rate := float64(r.Objects-t.before) / max(now.Sub(t.began).Seconds(), 0.001)
	line := fmt.Sprintf("%d objects verified", r.Objects)
	if r.TotalObjects != nil {
		line = fmt.Sprintf("%d of %d objects verified", r.Objects, *r.TotalObjects)
	}
	line += fmt.Sprintf(", %.0f a second", rate)
	if r.TotalObjects != nil && rate > 0 {
		left := time.Duration(float64(max(*r.TotalObjects-r.Objects, 0)) / rate * float64(time.Second))
		line += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	t.say(fmt.Sprintf("%s; %d faults", line, r.Faults))
}

// draw moves the bar, which a verification that is over soon does not get.
func (t *tally) draw(now time.Time, r verify.Record) {
	if t.bar == nil && now.Sub(t.began) < showAfter {
		return
	}
	if t.bar == nil {
		total := int64(-1)
		if r.TotalObjects != nil {
			total = *r.TotalObjects
		}
		t.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(t.to), progressbar.OptionSetDescription("verifying"), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionThrottle(showAfter/10), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))
	}
	_ = t.bar.Set64(r.Objects) // a bar that cannot be drawn is no reason to stop
}

// end removes the bar.
func (t *tally) end() {
	if t.bar != nil {
		_ = t.bar.Finish()
	}
}
