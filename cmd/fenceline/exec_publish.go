package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fenceline/fenceline/client"
)

// publish publishes what the command has written, as the version after that of the grant. A signal that asks to end ends
// it, as long as nothing was decided.
func (c *execCmd) publish(ctx context.Context, lease *client.Capability, signals <-chan os.Signal, errs io.Writer) error {
	ctx, stop := interruptible(ctx, signals, "publishing")
	defer stop()
	file, err := c.readOutput(ctx, lease)
	if err == nil {
		defer file.file.Close()
		err = c.stageAndPublish(ctx, lease, file, errs)
	}
	interrupted, ok := interruptionOf(ctx)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(exitError)):
		return err
	case ok && errors.Is(err, interrupted):
		return exitError{interrupted.code(), err}
	case ok:
		return exitError{interrupted.code(), errors.Join(interrupted, err)}
	}
	return publishExit(err)
}

// readOutput opens what the command has written, and reads it through while the lease lasts.
func (c *execCmd) readOutput(ctx context.Context, lease *client.Capability) (*source, error) {
	leased, stop := during(ctx, lease)
	defer stop()
	file, err := openSource(leased, c.Output, c.ContentType)
	if err != nil && leased.Err() != nil {
		return nil, context.Cause(leased)
	}
	if err != nil {
		return nil, exitError{exitExecOther, fmt.Errorf("nothing was published: the command's output: %w", err)}
	}
	if c.ObjectID != "" {
		file.objectID = c.ObjectID
	}
	return file, nil
}

// stageAndPublish uploads and publishes, while the lease lasts.
func (c *execCmd) stageAndPublish(ctx context.Context, lease *client.Capability, file *source, errs io.Writer) error {
	progress, finish := showProgress(errs, "uploading "+c.Output)
	leased, stop := during(ctx, lease)
	_, err := lease.Upload(leased, client.UploadRequest{
		ObjectID: file.objectID, Declaration: file.Declaration, Body: file.file, Progress: progress,
	})
	stop()
	finish()
	if err == nil {
		err = lease.Enough(killBefore)
	}
	if err != nil {
		if lost := context.Cause(lease.Context()); lost != nil && !errors.Is(err, client.ErrStaleFence) {
			err = lost // of which err is only a consequence
		}
		return err
	}
	version := lease.Version()
	_, err = lease.Publish(ctx, client.PublishRequest{ObjectID: file.objectID, ExpectedVersion: &version, Metadata: c.Metadata})
	if errors.Is(err, client.ErrOutcomeUnknown) {
		return exitError{exitExecUnavailable, err} // whatever else is said of it, it may have been published
	}
	return err
}

// during is ctx, ended also with the lease.
func during(ctx context.Context, lease *client.Capability) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })
	return ctx, func() {
		detach()
		cancel(nil)
	}
}

// releaseTimeout bounds the release at the end, in which nobody is interested.
const releaseTimeout = 5 * time.Second
