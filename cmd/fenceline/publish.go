package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/client"
)

// publishCmd publishes one file under a lease of its own.
type publishCmd struct {
	Report          string            `arg:"" help:"The report to publish; it comes into being with its first lease."`
	File            string            `arg:"" help:"The file whose bytes readers are to get."`
	ContentType     string            `placeholder:"TYPE" help:"Content type; by default told from the file's name or first bytes."`
	Filename        *string           `placeholder:"NAME" help:"Name under which readers save it; the file's own by default."`
	ExpectedVersion *int64            `placeholder:"N" help:"Publish only if N is the present version (0: none yet)."`
	Metadata        map[string]string `short:"m" placeholder:"KEY=VALUE" help:"Kept with the version and shown to readers."`
	Holder          string            `placeholder:"NAME" help:"Who publishes, for people to read; this host's name by default."`
	TTL             time.Duration     `name:"ttl" default:"30s" help:"How long the lease lasts without renewal; it is renewed during the upload."`
	JSON            bool              `name:"json" help:"Print the receipt as JSON."`
	remote
}

// Run acquires a lease, stages the file under its fence, publishes it and releases the
// lease.
func (c *publishCmd) Run(ctx context.Context, out *console) error {
	file, err := openSource(c.File, c.ContentType)
	if err != nil {
		return err
	}
	defer file.file.Close()
	if c.Filename != nil {
		file.Filename = *c.Filename
	}
	holder := c.Holder
	if holder == "" {
		holder = defaultHolder()
	}
	service := c.client()
	lease, err := service.Acquire(ctx, client.AcquireRequest{Report: c.Report, Holder: holder, TTL: c.TTL})
	if err != nil {
		return err
	}
	receipt, err := c.publish(ctx, service, lease, file)
	c.release(ctx, service, lease, out)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, receipt)
	}
	_, err = fmt.Fprintf(out.Out, "published %s version %d under fence %s: %s, %d bytes, sha256 %s\n",
		receipt.Report, receipt.Version, receipt.Fence, file.objectID, *file.Size, file.SHA256)
	return err
}

// publish stages the file while the lease is kept alive, and publishes it. Whether the
// fence still counts is then the service's to say: a publish is not cut off because the
// lease has run out.
func (c *publishCmd) publish(ctx context.Context, service *client.Client, lease *client.Lease, file *source) (*client.Publication, error) {
	leased, stop := keepAlive(ctx, service, lease, c.TTL)
	defer stop()
	if err := c.stage(leased, service, lease.Fence, file); err != nil {
		if lost := context.Cause(leased); errors.Is(lost, client.ErrLeaseLost) {
			return nil, fmt.Errorf("stage the file: %w", lost) // err only tells of the end of leased
		}
		return nil, err
	}
	return service.Publish(ctx, client.PublishRequest{
		Report: c.Report, Fence: lease.Fence, ObjectID: file.objectID,
		ExpectedVersion: c.ExpectedVersion, Metadata: c.Metadata,
	})
}

// stage reserves the object, uploads the file's bytes and seals them.
func (c *publishCmd) stage(ctx context.Context, service *client.Client, fence client.Fence, file *source) error {
	reserved, err := service.Reserve(ctx, client.ReserveRequest{
		Report: c.Report, Fence: fence, ObjectID: file.objectID, Declaration: file.Declaration,
	})
	if err != nil {
		return err
	}
	if err := service.Upload(ctx, reserved, file.file, *file.Size); err != nil {
		return err
	}
	_, err = service.Seal(ctx, c.Report, fence, file.objectID)
	return err
}

// releaseTimeout bounds the release at the end, in which nobody is interested.
const releaseTimeout = 5 * time.Second

// release ends the lease, signal or not. If that does not work the lease runs out by
// itself, so it is a remark and no failure.
func (c *publishCmd) release(ctx context.Context, service *client.Client, lease *client.Lease, out *console) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := service.Release(ctx, lease.Report, lease.ID); err != nil && !errors.Is(err, client.ErrLeaseLost) {
		fmt.Fprintf(out.Err, "fenceline: the lease runs out by itself: %s\n", oneLine(err))
	}
}
