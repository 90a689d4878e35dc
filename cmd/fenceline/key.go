package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/migrations"
)

// keyCmd works with API keys. Its commands talk to the database themselves: whoever may write to the database
// may make keys, and no key is needed to make the first one.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key, and print it: it cannot be shown again."`
	List   keyListCmd   `cmd:"" help:"List all keys and their states, the newest first; never the secrets."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key now. Repeating it does no harm."`
	Rotate keyRotateCmd `cmd:"" help:"Make a key like another, print it, and end the other after an overlap."`
}

type keyCreateCmd struct {
	databaseSettings
	Role      string         `required:"" enum:"reader,worker,operator" help:"What it may do: ${enum}."`
	Pattern   string         `default:"*" help:"Reports that it is for: * for all, july for one, sales.* for all that begin with sales."`
	Name      string         `required:"" help:"What people call it."`
	ExpiresIn *time.Duration `placeholder:"DURATION" help:"How long it lives, such as 2160h. None: until it is revoked."`
}

// Run makes a key. The key alone goes to standard output.
func (c *keyCreateCmd) Run(ctx context.Context, out *console) error {
	n := api.NewKey{Name: c.Name, Role: api.Role(c.Role), Pattern: api.Pattern(c.Pattern)}
	if c.ExpiresIn != nil {
		n.Life = *c.ExpiresIn
		if err := inBounds(period{"--expires-in", n.Life}); err != nil {
			return usageError{err}
		}
	}
	if err := n.Check(); err != nil {
		return usageError{err}
	}
	return c.withKeys(ctx, func(keys *api.Keys) error {
		key, secret, err := keys.Create(ctx, n)
		if err != nil {
			return err
		}
		return out.showKey(key, secret)
	})
}

// withKeys opens the keys of the database for as long as do works with them.
func (s databaseSettings) withKeys(ctx context.Context, do func(*api.Keys) error) error {
	pool, err := database.Open(ctx, database.Config{URL: s.DatabaseURL, Pool: 1})
	if err != nil {
		return usageError{err}
	}
	defer pool.Close()
	if err := migrations.Fits(ctx, pool); err != nil {
		return err
	}
	return do(api.NewKeys(pool, nil))
}

// showKey prints the secret of a new key, alone, and remarks what key it is.
func (out *console) showKey(key api.Key, secret string) error {
	if _, err := fmt.Fprintln(out.Out, secret); err != nil {
		return fmt.Errorf("print the secret of key %s: %w", key.ID, err)
	}
	life := ""
	if key.ExpiresAt != nil {
		life = ", until " + keyTime(*key.ExpiresAt)
	}
	fmt.Fprintf(out.Err, "key %s: %s for %s%s\n", key.ID, key.Role, key.Pattern, life)
	return nil
}

// keyTime is a time for people, to the second.
func keyTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
