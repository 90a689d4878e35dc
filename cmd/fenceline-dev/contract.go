package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/fenceline/fenceline/docs"
	"github.com/fenceline/fenceline/internal/contract"
	"github.com/fenceline/fenceline/internal/stack"
)

// contractCommand walks the page of the contract.
type contractCommand struct {
	Only      string        `help:"Walk only the tables whose heading has this in it."`
	Page      string        `type:"existingfile" help:"Another page than docs/contract.md as it was when this was built."`
	Retention time.Duration `default:"5s" help:"Keep objects for so long, and scale every other period with it (at least 2s)."`
}

// Run returns nil only if every row of the page is as it says.
func (c *contractCommand) Run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	rows, err := c.rows()
	if err != nil {
		return err
	}
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	// The collector runs when a case asks for it, and its brake holds back what is larger than all the rest, and nothing else:
	// what is collected is a handful of objects.
	p, err := startThrowaway(ctx, folder, c.Retention, false,
		"FENCELINE_GC_SCHEDULE=off", "FENCELINE_GC_BRAKE_SHARE=0.99", "FENCELINE_GC_BRAKE_MIN=1",
		"FENCELINE_LEASE_TTL_MAX=24h", "FENCELINE_RETENTION_LEASES=48h")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	server, err := walkedServer(ctx, p, folder)
	if err != nil {
		return err
	}
	began := time.Now()
	results := contract.Run(ctx, server, rows, contract.Cases())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return summarize(results, time.Since(began))
}

// rows are those that are to be walked.
func (c *contractCommand) rows() ([]contract.Row, error) {
	page := docs.Contract
	if c.Page != "" {
		text, err := os.ReadFile(c.Page)
		if err != nil {
			return nil, err
		}
		page = string(text)
	}
	rows := slices.DeleteFunc(contract.Rows(page), func(r contract.Row) bool { return !strings.Contains(r.Table, c.Only) })
	if len(rows) == 0 {
		return nil, errors.New("the page has no such table")
	}
	return rows, nil
}

// summarize prints a line a row, and below it what was wrong. It returns an [exitError] if anything was.
func summarize(results []contract.Result, took time.Duration) error {
	missing, wrong := 0, 0
	fmt.Printf("%-62s │ %-34s │ %-34s │ %s\n", "row", "expected", "seen", "ok")
	for _, r := range results {
		verdict := "yes"
		switch {
		case r.NoCase:
			verdict = "NO CASE"
			missing++
		case len(r.Failures) > 0:
			verdict = "NO"
			wrong++
		}
		fmt.Printf("%s │ %s │ %s │ %s\n", cut(r.Row.Table+": "+plain(r.Row.Answer), 62), cut(r.Expected, 34), cut(r.Seen, 34), verdict)
		if len(r.Failures) > 0 {
			fmt.Printf("    when %s\n", cut(plain(r.Row.When), 140))
		}
		for _, failure := range r.Failures {
			fmt.Println("    -", failure)
		}
	}
	fmt.Printf("\n%d rows in %v: %d as the contract says, %d not, %d without a case\n",
		len(results), took.Round(100*time.Millisecond), len(results)-missing-wrong, wrong, missing)
	if missing+wrong > 0 {
		return exitError{1}
	}
	return nil
}

func plain(cell string) string { return strings.ReplaceAll(cell, "`", "") }

// cut makes a text as wide as a column.
func cut(text string, width int) string {
	if n := utf8.RuneCountInString(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	return string([]rune(text)[:width-1]) + "…"
}
