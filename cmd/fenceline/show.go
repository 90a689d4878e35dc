package main

import (
	"context"

	"github.com/fenceline/fenceline/client"
)

// showCmd shows what a report is.
type showCmd struct {
	Report  string `arg:"" help:"The report to show."`
	Version int64  `placeholder:"N" help:"Show version N instead of the newest one."`
	JSON    bool   `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run prints the version.
func (c *showCmd) Run(ctx context.Context, out *console) error {
	var shown *client.Publication
	var err error
	if c.Version != 0 {
		shown, err = c.client().Publication(ctx, c.Report, c.Version)
	} else {
		shown, err = c.client().Report(ctx, c.Report)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, shown)
	}
	return printRows(out.Out, publicationRows(shown))
}
