package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// ErrErased reports that the bytes of a version were erased at an operator's wish.
var ErrErased = errors.New("the version was erased")

// ErrVersionInUse reports that an object is visible or held, so that it cannot be erased.
var ErrVersionInUse = errors.New("the version's object is visible or held")

// Hold keeps a version's object from the collector until Unhold; repeated it does nothing. Errors:
// fencing.ErrReportNotFound, ErrVersionNotFound, fencing.ErrObjectNotFound for a withdrawal, fencing.ErrObjectGone,
// fencing.ErrFrozen, database.ErrUnavailable.
func (c *Catalog) Hold(ctx context.Context, report fencing.ReportID, version int64, by string) error {
	return c.hold(ctx, report, version, true, by)
}

// Unhold lifts a hold; repeated it does nothing. If nothing else keeps the object, its retention begins now.
// Errors: as Hold, without fencing.ErrObjectGone.
func (c *Catalog) Unhold(ctx context.Context, report fencing.ReportID, version int64, by string) error {
	return c.hold(ctx, report, version, false, by)
}

func (c *Catalog) hold(ctx context.Context, report fencing.ReportID, version int64, hold bool, by string) error {
	const query = `SELECT status FROM hold_version(@report, @version, @hold, @by)`
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{
		"report": report, "version": version, "hold": hold, "by": by,
	})
	if err == nil && got.Status != "held" && got.Status != "not_held" {
		err = statusError(got.Status)
	}
	if err != nil {
		return fmt.Errorf("%s version %d of %q: %w", map[bool]string{true: "hold", false: "lift the hold of"}[hold], version, report, err)
	}
	return nil
}

// Erase condemns the object of a version: every version that shows it says so from then on, and the collector
// deletes its bytes once the grace is over. Rows and receipts stay; repeated it does nothing. Errors:
// fencing.ErrReportNotFound, ErrVersionNotFound, fencing.ErrObjectNotFound for a withdrawal, ErrVersionInUse,
// fencing.ErrObjectGone where the collector came first, fencing.ErrFrozen, database.ErrUnavailable.
func (c *Catalog) Erase(ctx context.Context, report fencing.ReportID, version int64, reason, by string) error {
	const query = `SELECT status FROM erase_version(@report, @version, @reason, @by, @grace_ms)`
	type answer struct{ Status string }
	got, err := database.Change[answer](ctx, c.pool, query, pgx.NamedArgs{
		"report": report, "version": version, "reason": reason, "by": by, "grace_ms": c.cfg.PurgeGrace.Milliseconds(),
	})
	if err == nil && got.Status != "erased" {
		err = statusError(got.Status)
	}
	if err != nil {
		return fmt.Errorf("erase version %d of %q: %w", version, report, err)
	}
	return nil
}
