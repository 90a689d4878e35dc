package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
)

// Visible is what the readers of a report see: its newest publication. It sees every publish that was
// acknowledged before it was asked. Errors: fencing.ErrReportNotFound, ErrNotPublished, ErrWithdrawn
// (*WithdrawnError), database.ErrUnavailable.
func (c *Catalog) Visible(ctx context.Context, report fencing.ReportID) (Publication, error) {
	const query = selectPublications + ` WHERE report_id = @report AND p.version = r.version`
	row, found, err := database.Row[receiptRow](ctx, c.pool, query, pgx.NamedArgs{"report": report})
	p := row.publication(report)
	switch {
	case err == nil && !found:
		err = c.notPublished(ctx, report)
	case err == nil && p.Object == nil:
		err = &WithdrawnError{Version: p.Version, Fence: p.Fence, PublishedAt: p.PublishedAt}
	}
	if err != nil {
		return Publication{}, fmt.Errorf("resolve %q: %w", report, err)
	}
	return p, nil
}

// Version reads one publication of a report. Errors: fencing.ErrReportNotFound, ErrVersionNotFound,
// database.ErrUnavailable.
func (c *Catalog) Version(ctx context.Context, report fencing.ReportID, version int64) (Publication, error) {
	const query = selectPublications + ` WHERE report_id = @report AND p.version = @version`
	row, found, err := database.Row[receiptRow](ctx, c.pool, query, pgx.NamedArgs{"report": report, "version": version})
	if err == nil && !found {
		if err = database.ReportExists(ctx, c.pool, report); err == nil {
			err = ErrVersionNotFound
		}
	}
	if err != nil {
		return Publication{}, fmt.Errorf("read version %d of %q: %w", version, report, err)
	}
	return row.publication(report), nil
}

// Versions lists the publications of a report, newest first: at most limit of them, below the version
// before (0: from the newest on). Errors: fencing.ErrReportNotFound, database.ErrUnavailable.
func (c *Catalog) Versions(ctx context.Context, report fencing.ReportID, before int64, limit int) ([]Publication, error) {
	const query = selectPublications + `
		WHERE report_id = @report AND (@before::bigint = 0 OR p.version < @before::bigint)
		ORDER BY p.version DESC
		LIMIT @limit`
	return c.list(ctx, report, query, pgx.NamedArgs{"report": report, "before": before, "limit": limit})
}

// VersionByKey lists the publication that an idempotency key made, or none. None does not prove that nothing
// will come: the request may still be on its way. Errors: fencing.ErrReportNotFound, database.ErrUnavailable.
func (c *Catalog) VersionByKey(ctx context.Context, report fencing.ReportID, key string) ([]Publication, error) {
	const query = selectPublications + ` WHERE report_id = @report AND p.idempotency_key = @key`
	return c.list(ctx, report, query, pgx.NamedArgs{"report": report, "key": key})
}

// Names is a range of reports' ids in byte order: from the first on, and below the end if there is one.
type Names struct {
	From  string
	Below string // empty: no end
}

// Reports lists the newest publication of each report in the range of names, by name: at most limit of them,
// after the name given. Reports without any are left out. Error: database.ErrUnavailable.
func (c *Catalog) Reports(ctx context.Context, names Names, after fencing.ReportID, limit int) ([]Publication, error) {
	const query = selectPublications + `
		WHERE p.version = r.version
		  AND report_id >= @from AND (@below = '' OR report_id < @below) AND report_id > @after
		ORDER BY report_id
		LIMIT @limit`
	rows, err := database.Rows[receiptRow](ctx, c.pool, query, pgx.NamedArgs{
		"from": names.From, "below": names.Below, "after": after, "limit": limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list reports: %w", err)
	}
	return publications(rows), nil
}

func (c *Catalog) list(ctx context.Context, report fencing.ReportID, query string, args pgx.NamedArgs) ([]Publication, error) {
	rows, err := database.Rows[receiptRow](ctx, c.pool, query, args)
	if err == nil && len(rows) == 0 {
		err = database.ReportExists(ctx, c.pool, report)
	}
	if err != nil {
		return nil, fmt.Errorf("list the versions of %q: %w", report, err)
	}
	return publications(rows), nil
}

func publications(rows []receiptRow) []Publication {
	found := make([]Publication, len(rows))
	for i, row := range rows {
		found[i] = row.publication(row.ReportID)
	}
	return found
}

// notPublished tells why nothing is visible of a report.
func (c *Catalog) notPublished(ctx context.Context, report fencing.ReportID) error {
	if err := database.ReportExists(ctx, c.pool, report); err != nil {
		return err
	}
	return ErrNotPublished
}
