package main

import (
	"context"
	"fmt"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/migrations"
)

// keyCmd works with API keys.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key, and print it: it cannot be shown again."`
}

type keyCreateCmd struct {
	databaseSettings
	Role    string `required:"" enum:"reader,worker,operator" help:"What it may do: ${enum}."`
	Pattern string `default:"*" help:"Reports that it is for: * for all, july for one, sales.* for all that begin with sales."`
	Name    string `required:"" help:"What people call it."`
}

// Run makes a key. The key alone goes to standard output.
func (c *keyCreateCmd) Run(ctx context.Context, out *console) error {
	role, err := api.ParseRole(c.Role)
	if err != nil {
		return usageError{err}
	}
	pattern, err := api.ParsePattern(c.Pattern)
	if err != nil {
		return usageError{err}
	}
	pool, err := database.Open(ctx, database.Config{URL: c.DatabaseURL, Pool: 1})
	if err != nil {
		return usageError{err}
	}
	defer pool.Close()
	if err := migrations.Fits(ctx, pool); err != nil {
		return err
	}
	key, secret, err := api.NewKeys(pool).Create(ctx, api.NewKey{Name: c.Name, Role: role, Pattern: pattern})
	if err != nil {
		return fmt.Errorf("create key %q: %w", c.Name, err)
	}
	fmt.Fprintf(out.Err, "key %s: %s for %s\n", key.ID, key.Role, key.Pattern)
	_, err = fmt.Fprintln(out.Out, secret)
	return err
}
