package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fenceline/fenceline/client"
)

// gcShowCmd shows the record of a pass.
type gcShowCmd struct {
	RunID int64 `arg:"" name:"run" help:"The pass, by its number."`
	JSON  bool  `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run prints the record.
func (c *gcShowCmd) Run(ctx context.Context, out *console) error {
	run, err := c.client().CollectorRun(ctx, c.RunID)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, run)
	}
	if err := printRows(out.Out, runRows(run)); err != nil {
		return err
	}
	return printTallies(out.Out, run)
}

// runRows are what there is to say of a pass in a line each.
func runRows(r *client.CollectorRun) [][2]string {
	rows := [][2]string{
		{"run", fmt.Sprint(r.RunID)},
		{"notes", runNotes(r)},
		{"started", shownTime(r.StartedAt) + " by " + r.StartedBy},
		{"outcome", runOutcome(r)},
		{"finished", shownMoment(r.FinishedAt)},
		{"error", orNothing(r.Error)},
	}
	if r.Progress != nil {
		rows = append(rows, [2]string{"progress", progressText(r.Progress)}, [2]string{"moved", shownTime(r.MovedAt)})
	}
	rows = append(rows,
		[2]string{"condemned", shownCount(r.Condemned)},
		[2]string{"put off", fmt.Sprint(r.PutOff)},
		[2]string{"held back", shownCount(r.Braked)},
		[2]string{"deleted", shownCount(r.Deleted)},
		[2]string{"not deleted", fmt.Sprint(r.DeleteFailed)},
		[2]string{"forgotten", fmt.Sprintf("%d rows", r.Forgotten)},
		[2]string{"brake", fmt.Sprintf("%s of never published were condemned within the window; the share is %s, and at least %d objects",
			shownCount(r.Brake.Used), shownCount(r.Brake.Limit), r.Brake.AtLeast)})
	if r.ApprovedAt != nil {
		rows = append(rows, [2]string{"approved", shownMoment(r.ApprovedAt) + " by " + orNothing(r.ApprovedBy)})
	}
	if s := r.Scan; s != nil {
		seen := "the whole bucket"
		if !s.Completed {
			seen = "not to the end: the next run goes on"
		}
		rows = append(rows,
			[2]string{"scan", fmt.Sprintf("%d keys, %d unknown, %d returned; %s", s.Keys, s.Unknown, s.Returned, seen)},
			[2]string{"foreign keys", shownCount(s.Foreign.CollectorCount)},
			[2]string{"such as", strings.Join(s.Foreign.Sample, "  ")})
	}
	return rows
}

// printTallies prints what a pass did by reason, and what the storage said of deletes that failed.
func printTallies(to io.Writer, r *client.CollectorRun) error {
	table := newTable(to)
	if len(r.ByReason) > 0 {
		fmt.Fprintln(table, "\nACTION\tREASON\tOBJECTS\tBYTES")
	}
	for _, t := range r.ByReason {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", t.Action, t.Reason, t.Objects, t.Bytes)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	table = newTable(to)
	if len(r.Errors) > 0 {
		fmt.Fprintln(table, "\nOBJECTS\tLAST\tTHE STORAGE SAID")
	}
	for _, e := range r.Errors {
		fmt.Fprintf(table, "%d\t%s\t%s\n", e.Objects, shownTime(e.LastAt), e.Detail)
	}
	return table.Flush()
}
