package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/fenceline/fenceline/client"
)

// leaseCmd groups the commands that work with leases.
type leaseCmd struct {
	Acquire leaseAcquireCmd `cmd:"" help:"Acquire the lease of a report, and a fence with it."`
	Renew   leaseRenewCmd   `cmd:"" help:"Extend a lease."`
	Release leaseReleaseCmd `cmd:"" help:"End a lease before its time."`
	Show    leaseShowCmd    `cmd:"" help:"Show who holds a report, or what became of a lease."`
}

// leaseAcquireCmd acquires a lease.
type leaseAcquireCmd struct {
	Report  string        `arg:"" help:"The report to work on."`
	LeaseID string        `name:"lease-id" placeholder:"ID" help:"Id of the lease, a new one for each grant; random by default. Repeating a command with the same id gets the same fence."`
	Holder  string        `placeholder:"NAME" help:"Who holds it, for people to read; this host's name by default."`
	TTL     time.Duration `name:"ttl" default:"30s" help:"How long the lease lasts."`
	JSON    bool          `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run acquires the lease and prints it.
func (c *leaseAcquireCmd) Run(ctx context.Context, out *console) error {
	holder := c.Holder
	if holder == "" {
		holder = defaultHolder()
	}
	lease, err := c.client().Acquire(ctx, client.AcquireRequest{
		Report: c.Report, LeaseID: c.LeaseID, Holder: holder, TTL: c.TTL,
	})
	if err != nil {
		return err
	}
	return printLease(out, lease, c.JSON)
}

// leaseRenewCmd renews a lease.
type leaseRenewCmd struct {
	Report  string        `arg:"" help:"The report that is leased."`
	LeaseID string        `arg:"" name:"lease-id" help:"Id of the lease."`
	TTL     time.Duration `name:"ttl" help:"How long it is to last from now; by default as long as when it was acquired."`
	JSON    bool          `name:"json" help:"Print the answer as JSON."`
	remote
}

// Run renews the lease and prints it.
func (c *leaseRenewCmd) Run(ctx context.Context, out *console) error {
	lease, err := c.client().Resume(ctx, c.Report, c.LeaseID, c.TTL)
	if err != nil {
		return err
	}
	return printLease(out, lease, c.JSON)
}

// leaseReleaseCmd releases a lease.
type leaseReleaseCmd struct {
	Report  string `arg:"" help:"The report that is leased."`
	LeaseID string `arg:"" name:"lease-id" help:"Id of the lease."`
	remote
}

// Run releases the lease.
func (c *leaseReleaseCmd) Run(ctx context.Context, out *console) error {
	if err := c.client().Release(ctx, c.Report, c.LeaseID); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Out, "released %s of %s\n", c.LeaseID, c.Report)
	return err
}

// printLease prints a lease for people, or as JSON.
func printLease(out *console, lease *client.Capability, asJSON bool) error {
	if asJSON {
		return printJSON(out.Out, lease)
	}
	table := tabwriter.NewWriter(out.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "lease_id\t%s\n", lease.LeaseID())
	fmt.Fprintf(table, "fence\t%s\n", lease.Fence())
	fmt.Fprintf(table, "remaining\t%s\n", lease.Left().Round(time.Millisecond))
	return table.Flush()
}

// printJSON prints v as indented JSON.
func printJSON(to io.Writer, v any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
