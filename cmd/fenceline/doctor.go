package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/doctor"
)

// doctorCmd looks at what the service would run on.
type doctorCmd struct {
	databaseSettings
	poolSettings
	storageSettings
	scanSettings
	JSON bool `name:"json" help:"Print the findings as JSON."`
}

// Run prints what was found. It fails where something must not be used so.
func (c *doctorCmd) Run(ctx context.Context, out *console) error {
	if err := c.poolSettings.check(); err != nil {
		return err
	}
	stores, err := openStores(ctx, c.databaseSettings, c.storageSettings, 2, slog.New(slog.DiscardHandler)) // what matters is a finding
	if err != nil {
		return err
	}
	defer stores.close()
	d := doctor.Doctor{Pool: stores.pool, PoolSize: c.DatabasePool, Bucket: stores.bucket, NoScans: time.Duration(c.GCScanEvery) == gc.ScanNever}
	report, interrupted := d.Examine(ctx)
	if c.JSON {
		err = printJSON(out.Out, report)
	} else {
		err = printFindings(out.Out, report)
	}
	if err := errors.Join(interrupted, err); err != nil {
		return err
	}
	if report.Result == doctor.Failed {
		return exitError{code: exitOther, err: errors.New("something must not be used so: see what failed")}
	}
	return nil
}

// longestDetail is how much of a detail a table shows; all of it is in the JSON.
const longestDetail = 60

// printFindings prints a line a finding, and what all together means.
func printFindings(w io.Writer, r doctor.Report) error {
	table := newTable(w)
	fmt.Fprintln(table, "WHAT\tRESULT\tWHAT FOLLOWS")
	count := map[doctor.Result]int{}
	for _, f := range r.Findings {
		count[f.Result]++
		result := string(f.Result)
		if f.Detail != "" {
			result += ": " + shortened(f.Detail)
		}
		fmt.Fprintf(table, "%s: %s\t%s\t%s\n", f.About, f.Check, result, f.Follows)
	}
	err := table.Flush()
	if err == nil {
		_, err = fmt.Fprintf(w, "%d ok, %d warnings, %d failed\n", count[doctor.OK], count[doctor.Warning], count[doctor.Failed])
	}
	return err
}

// shortened is a text on one line that fits into a table. The end of an error says most.
func shortened(text string) string {
	all := []rune(strings.Join(strings.Fields(text), " "))
	if len(all) <= longestDetail {
		return string(all)
	}
	return "…" + string(all[len(all)-longestDetail+1:])
}
