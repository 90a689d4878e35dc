package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/gc"
)

// progressOf is how far the phase of a pass has come, in the form of the service's answers; nil where none is under way.
func progressOf(p *gc.Progress) *client.CollectorProgress {
	if p == nil {
		return nil
	}
	shown := &client.CollectorProgress{Phase: p.Phase, Done: p.Done, Total: p.Total, PerSecond: p.PerSecond}
	if p.Remaining != nil {
		shown.RemainingMS = new(p.Remaining.Milliseconds())
	}
	return shown
}

// progressText says how far a phase has come, as far as that is known.
func progressText(p *client.CollectorProgress) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d", p.Phase, p.Done)
	if p.Total != nil {
		fmt.Fprintf(&text, " of %d", *p.Total)
	}
	if p.PerSecond != nil {
		fmt.Fprintf(&text, ", %.0f/s", *p.PerSecond)
	}
	if p.RemainingMS != nil {
		fmt.Fprintf(&text, ", %s left", (time.Duration(*p.RemainingMS) * time.Millisecond).Round(time.Second))
	}
	return text.String()
}

// phaseBar shows on a terminal how far the phase under way has come: a bar, or a spinner where nobody knows how much
// there is. A nil phaseBar shows nothing.
type phaseBar struct {
	to    *os.File
	phase string
	bar   *progressbar.ProgressBar
}

// barWidth leaves room for the text beside it in a line of eighty.
const barWidth = 20

// draw shows it, in place of what was shown before.
func (b *phaseBar) draw(p *client.CollectorProgress) {
	total := int64(-1)
	if p.Total != nil && *p.Total > 0 {
		total = *p.Total
	}
	if b.bar == nil || b.phase != p.Phase {
		b.clear()
		b.phase = p.Phase
		b.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(b.to), progressbar.OptionUseANSICodes(true), progressbar.OptionSetWidth(barWidth),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false), // they are in the text
			progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionClearOnFinish())
	}
	b.bar.Describe(progressText(p))
	if total > 0 { // it may have grown; a bar that cannot be drawn is no reason to stop
		b.bar.ChangeMax64(max(total, p.Done))
		_ = b.bar.Set64(p.Done)
	}
}

// clear takes it from the screen until it is drawn again.
func (b *phaseBar) clear() {
	if b == nil || b.bar == nil {
		return
	}
	_ = b.bar.Clear()
}
