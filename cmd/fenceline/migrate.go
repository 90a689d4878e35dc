package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/migrations"
)

// migrateCmd brings the database's schema up or down.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply what is missing. Several may do so at once."`
	Down   migrateDownCmd   `cmd:"" help:"Remove the schema, and all that it holds."`
	Status migrateStatusCmd `cmd:"" help:"Show how far the schema is. Exit code 1 if this program does not fit it."`
}

type migrateUpCmd struct{ databaseSettings }

// Run applies the migrations.
func (c *migrateUpCmd) Run(ctx context.Context, out *console) error {
	version, err := migrations.Up(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out.Out, "the schema is at version %d\n", version)
	return err
}

type migrateDownCmd struct {
	databaseSettings
	Destroy bool `help:"Do so although there are reports: their fences and versions will be forgotten."`
}

// Run removes the schema.
func (c *migrateDownCmd) Run(ctx context.Context, out *console) error {
	err := migrations.Down(ctx, c.DatabaseURL, c.Destroy)
	if errors.Is(err, migrations.ErrReportsExist) {
		return fmt.Errorf("%w (--destroy does it all the same)", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out.Out, "the schema is removed")
	return err
}

type migrateStatusCmd struct{ databaseSettings }

// Run shows the state, and fails where this program does not fit.
func (c *migrateStatusCmd) Run(ctx context.Context, out *console) error {
	pool, err := database.Open(ctx, database.Config{URL: c.DatabaseURL, Pool: 1})
	if err != nil {
		return usageError{err}
	}
	defer pool.Close()
	state, err := migrations.ReadState(ctx, pool)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out.Out, "schema version:        %d\nthis program's:        %d\nworks with programs of: %d or later\n",
		state.Applied, migrations.Newest(), state.CompatibleFrom)
	return errors.Join(err, state.Check())
}
