package database

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/fencing"
)

// ReportExists is nil if the report is known, and fencing.ErrReportNotFound if not: what a reader of an empty
// list wants to know.
func ReportExists(ctx context.Context, pool *pgxpool.Pool, report fencing.ReportID) error {
	const query = `SELECT report_id FROM report WHERE report_id = @report`
	type row struct{ ReportID string }
	_, found, err := Row[row](ctx, pool, query, pgx.NamedArgs{"report": report})
	if err == nil && !found {
		return fencing.ErrReportNotFound
	}
	return err
}
