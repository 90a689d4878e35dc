package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/api"
)

// keyRevokeCmd ends a key. It asks nothing, since scripts and incidents have no time to answer.
type keyRevokeCmd struct {
	ID string `arg:"" name:"id" help:"Id of the key, or the whole key, wherever it was found."`
	databaseSettings
}

// Run ends the key, and tells when it ended.
func (c *keyRevokeCmd) Run(ctx context.Context, out *console) error {
	return c.withKeys(ctx, func(keys *api.Keys) error {
		id := api.KeyID(c.ID)
		endedAt, err := keys.Revoke(ctx, id)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out.Out, "revoked %s: it opens nothing since %s\n", id, keyTime(endedAt))
		return err
	})
}

// keyRotateCmd replaces a key.
type keyRotateCmd struct {
	ID string `arg:"" name:"id" help:"Id of the key that is to be replaced, or the whole key."`
	databaseSettings
	Overlap time.Duration `default:"24h" help:"How long the old key goes on beside the new one, so that those who use it can change over; 0s: not at all."`
}

// Run makes the successor, prints it alone to standard output, and then gives the old key its end.
func (c *keyRotateCmd) Run(ctx context.Context, out *console) error {
	if c.Overlap < 0 || c.Overlap > longestPeriod {
		return usageError{fmt.Errorf("--overlap=%s must be from 0s to ten years", c.Overlap)}
	}
	return c.withKeys(ctx, func(keys *api.Keys) error {
		id := api.KeyID(c.ID)
		endsAt, err := keys.Rotate(ctx, id, c.Overlap, out.showKey)
		if err != nil {
			return err
		}
		fmt.Fprintf(out.Err, "key %s, which it replaces, ends at %s\n", id, keyTime(endsAt))
		return nil
	})
}
