package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/client"
)

// rollbackCmd makes an older version's bytes visible again.
type rollbackCmd struct {
	Report   string            `arg:"" help:"The report to roll back."`
	Version  int64             `arg:"" help:"The version whose bytes readers are to get again, as a new version."`
	Metadata map[string]string `short:"m" mapsep:"none" placeholder:"KEY=VALUE" help:"Kept with the new version and shown to readers."`
	Holder   string            `placeholder:"NAME" help:"Who rolls back, for people to read; this host's name by default."`
	Wait     time.Duration     `default:"0s" help:"How long to wait for another worker's lease to end, up to 1m."`
	JSON     bool              `name:"json" help:"Print the receipt as JSON."`
	remote
}

// rollbackTTL is how long the lease lasts: nothing is uploaded under it.
const rollbackTTL = 30 * time.Second

// Run publishes the old version as the one after the present one, whichever that was at the grant.
func (c *rollbackCmd) Run(ctx context.Context, out *console) error {
	request := client.AcquireRequest{Report: c.Report, Holder: c.Holder, TTL: rollbackTTL, Wait: c.Wait}
	if request.Holder == "" {
		request.Holder = defaultHolder()
	}
	var receipt *client.Publication
	err := c.client().Hold(ctx, request, func(ctx context.Context, k *client.Capability) (err error) {
		present := k.Version()
		receipt, err = k.Publish(ctx, client.PublishRequest{FromVersion: c.Version, ExpectedVersion: &present, Metadata: c.Metadata})
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, receipt)
	}
	_, err = fmt.Fprintf(out.Out, "published %s version %d under fence %s: version %d again\n", receipt.Report, receipt.Version, receipt.Fence, c.Version)
	return err
}
