package main

import (
	"context"
	"fmt"

	"github.com/fenceline/fenceline/client"
)

// historyCmd lists the versions of a report.
type historyCmd struct {
	Report string `arg:"" help:"The report whose versions are listed, the newest first."`
	Limit  int    `default:"0" placeholder:"N" help:"List N versions at most; 0: all."`
	JSON   bool   `name:"json" help:"Print JSON."`
	remote
}

// Run prints the versions. A list that breaks off is an error, and nothing is printed of it.
func (c *historyCmd) Run(ctx context.Context, out *console) error {
	items := []*client.Publication{}
	for version, err := range c.client().History(ctx, c.Report) {
		if err != nil {
			return err
		}
		if items = append(items, version); len(items) == c.Limit {
			break
		}
	}
	if c.JSON {
		return printJSON(out.Out, struct {
			Items []*client.Publication `json:"items"`
		}{items})
	}
	table := newTable(out.Out)
	fmt.Fprintln(table, publicationHead)
	for _, version := range items {
		fmt.Fprintln(table, publicationLine(version))
	}
	return table.Flush()
}
