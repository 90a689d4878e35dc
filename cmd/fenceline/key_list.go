package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/fenceline/fenceline/api"
)

// keyListCmd lists the keys.
type keyListCmd struct {
	databaseSettings
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints all keys, as a table or as JSON.
func (c *keyListCmd) Run(ctx context.Context, out *console) error {
	return c.withKeys(ctx, func(keys *api.Keys) error {
		found, err := keys.List(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(out.Out, listedKeys(found))
		}
		return printKeys(out.Out, found)
	})
}

// printKeys prints the keys for people. A key that is active and has been given an end in a rotation shows it
// beside its state.
func printKeys(to io.Writer, keys []api.ListedKey) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tROLE\tPATTERN\tCREATED\tEXPIRES\tLAST USED\tSTATE")
	for _, k := range keys {
		state := string(k.State)
		if k.State == api.KeyActive && k.RevokedAt != nil {
			state += " until " + keyTime(*k.RevokedAt)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			k.ID, k.Name, k.Role, k.Pattern, keyTime(k.CreatedAt), timeOrNever(k.ExpiresAt), timeOrNever(k.LastUsedAt), state)
	}
	return table.Flush()
}

func timeOrNever(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return keyTime(*t)
}

// keyJSON is a key as --json shows it; what has not come about is null.
type keyJSON struct {
	ID         string       `json:"id"`
	Name       string       `json:"name"`
	Role       api.Role     `json:"role"`
	Pattern    api.Pattern  `json:"pattern"`
	CreatedAt  time.Time    `json:"created_at"`
	ExpiresAt  *time.Time   `json:"expires_at"`
	RevokedAt  *time.Time   `json:"revoked_at"`
	LastUsedAt *time.Time   `json:"last_used_at"`
	State      api.KeyState `json:"state"`
}

// keyListJSON has the form of the service's lists.
type keyListJSON struct {
	Items []keyJSON `json:"items"`
}

func listedKeys(keys []api.ListedKey) keyListJSON {
	items := make([]keyJSON, 0, len(keys))
	for _, k := range keys {
		items = append(items, keyJSON{
			ID: k.ID, Name: k.Name, Role: k.Role, Pattern: k.Pattern, CreatedAt: k.CreatedAt.UTC(),
			ExpiresAt: inUTC(k.ExpiresAt), RevokedAt: inUTC(k.RevokedAt), LastUsedAt: inUTC(k.LastUsedAt), State: k.State,
		})
	}
	return keyListJSON{Items: items}
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
