package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/fenceline/fenceline/client"
)

// gcApproveCmd releases what a pass has held back.
type gcApproveCmd struct {
	RunID int64 `arg:"" name:"run" help:"The pass that holds something back, by its number."`
	Yes   bool  `short:"y" help:"Do not ask. Needed where standard input is no terminal."`
	JSON  bool  `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run shows what is to be released, asks, and approves.
func (c *gcApproveCmd) Run(ctx context.Context, out *console) error {
	if !c.Yes && !term.IsTerminal(int(os.Stdin.Fd())) {
		return usageError{errors.New("nobody can be asked here, since standard input is no terminal: look at the run, and then give --yes")}
	}
	service := c.client()
	run, err := service.CollectorRun(ctx, c.RunID)
	if err != nil {
		return err
	}
	if !c.Yes {
		showHeldBack(out, run)
		if err := confirm(ctx, out); err != nil {
			return err
		}
	}
	got, err := service.ApproveCollectorRun(ctx, c.RunID)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, got)
	}
	before := ""
	if got.Result == "already_approved" {
		before = " before"
	}
	if run.ReportOnly {
		_, err = fmt.Fprintf(out.Out, "run %d was approved%s: the collector may begin, and the next pass collects\n", got.RunID, before)
		return err
	}
	_, err = fmt.Fprintf(out.Out, "run %d was approved%s: the next pass condemns what it holds back, %s, each judged again\n",
		got.RunID, before, shownCount(got.CollectorCount))
	return err
}

// showHeldBack shows what an approval would release.
func showHeldBack(out *console, run *client.CollectorRun) {
	if run.ReportOnly {
		fmt.Fprintf(out.Err, "Run %d of %s only reported. It would have condemned %s, and deleted %s.\n"+
			"Once it is approved the collector begins.\n", run.RunID, shownTime(run.StartedAt), shownCount(run.Condemned), shownCount(run.Deleted))
	} else {
		fmt.Fprintf(out.Err, "Run %d of %s held back %s:\n", run.RunID, shownTime(run.StartedAt), shownCount(run.Braked))
	}
	for _, t := range run.ByReason {
		if t.Action == "braked" || run.ReportOnly {
			fmt.Fprintf(out.Err, "  %s %s: %s\n", t.Action, t.Reason, shownCount(t.CollectorCount))
		}
	}
	fmt.Fprintf(out.Err, "Each object is in: fenceline gc ledger %d\n", run.RunID)
}

// errNotApproved reports that the question was not answered with yes.
var errNotApproved = errors.New("not approved: nothing was changed")

// confirm asks on the terminal.
func confirm(ctx context.Context, out *console) error {
	fmt.Fprint(out.Err, "Approve? Type yes: ")
	answered := make(chan string, 1)
	go func() { // a read of a terminal cannot be broken off; the program ends soon
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // its end is no yes
		answered <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out.Err)
		return ctx.Err()
	case line := <-answered:
		if strings.TrimSpace(line) != "yes" {
			return errNotApproved
		}
	}
	return nil
}
