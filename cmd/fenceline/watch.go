package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// watchCmd follows a report.
type watchCmd struct {
	Report string `arg:"" help:"The report to follow."`
	After  int64  `default:"0" placeholder:"N" help:"Begin with the first version that follows N; 0: with the present one."`
	Count  int    `default:"0" placeholder:"N" help:"End after N versions; 0: go on until interrupted."`
	JSON   bool   `name:"json" help:"Print each version as a line of JSON."`
	remote
}

// Run prints a line a version, as each becomes visible.
func (c *watchCmd) Run(ctx context.Context, out *console) error {
	lines := json.NewEncoder(out.Out)
	lines.SetEscapeHTML(false)
	seen := 0
	for version, err := range c.client().Updates(ctx, c.Report, c.After) {
		if err == nil && c.JSON {
			err = lines.Encode(version)
		} else if err == nil {
			// Not a table: its columns would be known only at its end.
			what := "withdrawn"
			if version.Object != nil {
				what = fmt.Sprintf("%d bytes, sha256 %s", version.Object.Size, version.Object.SHA256)
			}
			_, err = fmt.Fprintf(out.Out, "%s %s version %d under fence %s: %s\n", shownTime(version.PublishedAt), version.Report, version.Version, version.Fence, what)
		}
		if err != nil {
			return err
		}
		if seen++; seen == c.Count {
			return nil
		}
	}
	return nil
}
