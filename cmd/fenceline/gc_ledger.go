package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fenceline/fenceline/client"
)

// gcLedgerCmd exports what passes did.
type gcLedgerCmd struct {
	RunID   int64  `arg:"" name:"run" optional:"" help:"The pass, by its number. None: all on record that were no dry runs, the oldest first."`
	DryRuns bool   `help:"Also what dry runs would have done, which is left out of all on record."`
	Action  string `placeholder:"ACTION" help:"Only entries of this action: condemned, braked, deleted, delete_failed, …"`
	Format  string `enum:"csv,json" default:"csv" help:"csv: RFC 4180 with a header; json: a line for each entry. (${enum})"`
	remote
}

// Run writes entry after entry as they come, page by page.
func (c *gcLedgerCmd) Run(ctx context.Context, out *console) error {
	service := c.client()
	runs := []int64{c.RunID}
	if c.RunID == 0 {
		runs = nil
		for run, err := range service.CollectorRuns(ctx) {
			if err != nil {
				return err
			}
			if c.DryRuns || !run.DryRun {
				runs = append(runs, run.RunID)
			}
		}
		slices.Reverse(runs)
	}
	buffered := bufio.NewWriter(out.Out)
	write, finish := entryWriter(buffered, c.Format)
	for _, run := range runs {
		for entry, err := range service.CollectorEntries(ctx, run, c.Action) {
			if c.RunID == 0 && errors.Is(err, client.ErrNotFound) {
				fmt.Fprintf(out.Err, "run %d was forgotten meanwhile, and is left out\n", run)
				break
			}
			if err == nil {
				err = write(run, entry)
			}
			if err != nil { // what was written so far is whole lines
				return errors.Join(err, finish(), buffered.Flush())
			}
		}
	}
	if err := finish(); err != nil {
		return err
	}
	return buffered.Flush()
}

// ledgerColumns is the header of the export as CSV.
func ledgerColumns() []string {
	return []string{"run_id", "at", "action", "reason", "report", "fence", "object_id", "key", "size", "detail"}
}

// entryWriter is what writes an entry of a run in the format, and what ends the file.
func entryWriter(to io.Writer, format string) (write func(run int64, e *client.CollectorEntry) error, finish func() error) {
	if format == "json" {
		lines := json.NewEncoder(to)
		lines.SetEscapeHTML(false)
		return func(run int64, e *client.CollectorEntry) error {
			return lines.Encode(struct {
				RunID int64 `json:"run_id"`
				*client.CollectorEntry
			}{run, e})
		}, func() error { return nil }
	}
	rows := csv.NewWriter(to)
	rows.UseCRLF = true
	began := false
	begin := func() error {
		if began {
			return nil
		}
		began = true
		return rows.Write(ledgerColumns())
	}
	return func(run int64, e *client.CollectorEntry) error {
			if err := begin(); err != nil {
				return err
			}
			return rows.Write(ledgerRow(run, e))
		}, func() error {
			err := begin()
			rows.Flush()
			return errors.Join(err, rows.Error())
		}
}

// ledgerRow is an entry as a row; what is not known is empty. The detail is one line, so that each row is one.
func ledgerRow(run int64, e *client.CollectorEntry) []string {
	size, fence := "", ""
	if e.Size != nil {
		size = fmt.Sprint(*e.Size)
	}
	if !e.Fence.IsZero() {
		fence = e.Fence.String()
	}
	return []string{
		fmt.Sprint(run), e.At.UTC().Format(time.RFC3339Nano), e.Action, e.Reason, e.Report, fence, e.ObjectID, e.Key, size, strings.Join(strings.Fields(e.Detail), " "),
	}
}
