package main

import (
	"context"
	"fmt"
)

// gcPauseCmd pauses the collector.
type gcPauseCmd struct{ remote }

// Run pauses it, whether or not it was paused already.
func (c *gcPauseCmd) Run(ctx context.Context, out *console) error {
	if err := c.client().PauseCollector(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out.Out, "the collector is paused: fenceline gc resume lets it go on")
	return err
}

// gcResumeCmd lets the collector go on.
type gcResumeCmd struct{ remote }

// Run resumes it, whether or not it was paused.
func (c *gcResumeCmd) Run(ctx context.Context, out *console) error {
	if err := c.client().ResumeCollector(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out.Out, "the collector goes on")
	return err
}
