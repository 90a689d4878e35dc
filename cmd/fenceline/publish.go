package main

import (
	"context"
	"fmt"
	"io"
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
	Metadata        map[string]string `short:"m" mapsep:"none" placeholder:"KEY=VALUE" help:"Kept with the version and shown to readers."`
	Holder          string            `placeholder:"NAME" help:"Who publishes, for people to read; this host's name by default."`
	TTL             time.Duration     `name:"ttl" default:"30s" help:"How long the lease lasts without renewal; it is renewed during the upload."`
	JSON            bool              `name:"json" help:"Print the receipt as JSON."`
	remote
}

// Run publishes the file and prints the receipt.
func (c *publishCmd) Run(ctx context.Context, out *console) error {
	file, err := openSource(ctx, c.File, c.ContentType)
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
	receipt, err := c.publish(ctx, holder, file, out.Err)
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
// fence still counts is then the service's to say: a publish is begun, too, if the lease
// has just run out.
func (c *publishCmd) publish(ctx context.Context, holder string, file *source, errs io.Writer) (receipt *client.Publication, err error) {
	request := client.AcquireRequest{Report: c.Report, Holder: holder, TTL: c.TTL}
	err = c.client().Hold(ctx, request, func(leased context.Context, k *client.Capability) error {
		progress, finish := showProgress(errs, "uploading "+c.File)
		_, err := k.Upload(leased, client.UploadRequest{ObjectID: file.objectID, Declaration: file.Declaration, Body: file.file, Progress: progress})
		finish()
		if err != nil {
			return err
		}
		receipt, err = k.Publish(ctx, client.PublishRequest{
			ObjectID: file.objectID, ExpectedVersion: c.ExpectedVersion, Metadata: c.Metadata,
		})
		return err
	})
	return receipt, err
}
