package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fenceline/fenceline/client"
)

// gcStatusCmd shows how collecting stands.
type gcStatusCmd struct {
	JSON bool `name:"json" help:"Print that part of the service's status as JSON."`
	remote
}

// Run prints it.
func (c *gcStatusCmd) Run(ctx context.Context, out *console) error {
	status, err := c.client().Status(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, struct {
			PausedSince *time.Time              `json:"gc_paused_since"`
			LastRun     *client.CollectorRun    `json:"last_gc_run"`
			Collector   client.CollectorOutlook `json:"collector"`
			Warnings    []string                `json:"warnings"`
		}{status.PausedSince, status.LastRun, status.Collector, status.Warnings})
	}
	if err := printRows(out.Out, statusRows(status)); err != nil {
		return err
	}
	return printOverdue(out.Out, status.Collector.Overdue)
}

// statusRows are what there is to say in a line each.
func statusRows(s *client.Status) [][2]string {
	state := "collecting"
	if s.Collector.ReportOnly {
		state = "reporting only, until a run is approved: fenceline gc approve RUN"
	}
	if s.PausedSince != nil {
		state = "paused since " + shownMoment(s.PausedSince)
	}
	last := "none"
	if r := s.LastRun; r != nil {
		last = fmt.Sprintf("%d, %s, started %s", r.RunID, runOutcome(r), shownTime(r.StartedAt))
	}
	scanned := shownMoment(s.Collector.LastCompleteScanAt)
	if scanned == "" {
		scanned = "never"
	}
	rows := [][2]string{{"collector", state}, {"last run", last}, {"last complete scan", scanned}}
	if len(s.Collector.HeldBack) == 0 {
		rows = append(rows, [2]string{"held back", "nothing"})
	}
	for _, h := range s.Collector.HeldBack {
		rows = append(rows, [2]string{"held back", fmt.Sprintf("%s by run %d: fenceline gc approve %d", shownCount(h.CollectorCount), h.RunID, h.RunID)})
	}
	rows = append(rows, [2]string{"stuck", fmt.Sprintf("%d objects that could not be deleted", s.Collector.Stuck)})
	overdue := fmt.Sprintf("%d objects", s.Collector.Overdue.Objects)
	if s.Collector.Overdue.Objects > 0 {
		overdue += fmt.Sprintf(", the first for %s", shownAge(s.Collector.Overdue.OldestMS))
	}
	rows = append(rows, [2]string{"overdue", overdue})
	for _, w := range s.Warnings {
		rows = append(rows, [2]string{"warning", w})
	}
	return rows
}

// printOverdue prints how many objects should have gone longer ago than what.
func printOverdue(to io.Writer, o client.CollectorOverdue) error {
	if o.Objects == 0 {
		return nil
	}
	table := newTable(to)
	fmt.Fprintln(table, "\nOVERDUE FOR\tOBJECTS")
	for _, age := range o.ByAge {
		fmt.Fprintf(table, "over %s\t%d\n", shownAge(age.OlderThanMS), age.Objects)
	}
	return table.Flush()
}

// shownAge is a number of milliseconds for people.
func shownAge(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}
