package main

import (
	"context"
	"fmt"

	"github.com/fenceline/fenceline/client"
)

// gcRunsCmd lists the passes on record.
type gcRunsCmd struct {
	Limit int  `default:"20" help:"List N passes at most; 0: all."`
	JSON  bool `name:"json" help:"Print JSON."`
	remote
}

// Run prints the passes.
func (c *gcRunsCmd) Run(ctx context.Context, out *console) error {
	items := []*client.CollectorRun{}
	for run, err := range c.client().CollectorRuns(ctx) {
		if err != nil {
			return err
		}
		if items = append(items, run); len(items) == c.Limit {
			break
		}
	}
	if c.JSON {
		return printJSON(out.Out, struct {
			Items []*client.CollectorRun `json:"items"`
		}{items})
	}
	table := newTable(out.Out)
	fmt.Fprintln(table, "RUN\tSTARTED\tBY\tOUTCOME\tCONDEMNED\tHELD BACK\tDELETED\tBYTES\tFAILED\tNOTES")
	for _, r := range items {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", r.RunID, shownTime(r.StartedAt), r.StartedBy, runOutcome(r),
			r.Condemned.Objects, r.Braked.Objects, r.Deleted.Objects, r.Deleted.Bytes, r.DeleteFailed, runNotes(r))
	}
	return table.Flush()
}

// runOutcome is how a pass ended, or the phase in which it is.
func runOutcome(r *client.CollectorRun) string {
	if r.Outcome == nil {
		return "in " + r.Phase
	}
	return *r.Outcome
}

// runNotes says what sets a pass apart.
func runNotes(r *client.CollectorRun) string {
	switch {
	case r.ReportOnly && r.ApprovedAt == nil:
		return "report only"
	case r.DryRun && !r.ReportOnly:
		return "dry run"
	case r.ApprovedAt != nil:
		return "approved"
	}
	return ""
}
