package main

import (
	"context"
	"time"

	"github.com/fenceline/fenceline/client"
)

// leaseShowCmd shows a lease.
type leaseShowCmd struct {
	Report  string `arg:"" help:"The report."`
	LeaseID string `arg:"" optional:"" name:"lease-id" help:"Id of the lease, live or ended; the live one by default."`
	JSON    bool   `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run prints the lease.
func (c *leaseShowCmd) Run(ctx context.Context, out *console) error {
	lease, err := c.lease(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, lease)
	}
	rows := [][2]string{{"report", lease.Report}, {"lease_id", lease.LeaseID}, {"state", lease.State}, {"holder", lease.Holder}}
	if lease.Fence != nil {
		rows = append(rows, [2]string{"fence", lease.Fence.String()})
	}
	rows = append(rows, [2]string{"granted", shownTime(lease.GrantedAt)})
	if lease.RemainingMS != nil {
		rows = append(rows, [2]string{"remaining", (time.Duration(*lease.RemainingMS) * time.Millisecond).String()})
	}
	rows = append(rows, [2]string{"ended", shownTime(lease.EndedAt)}, [2]string{"reason", lease.Reason})
	return printRows(out.Out, rows)
}

func (c *leaseShowCmd) lease(ctx context.Context) (*client.LeaseRecord, error) {
	if c.LeaseID == "" {
		return c.client().LiveLease(ctx, c.Report)
	}
	return c.client().Lease(ctx, c.Report, c.LeaseID)
}

// shownTime is a time for people, and nothing where there is none.
func shownTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
