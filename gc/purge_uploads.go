package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// aborted is how far unfinished uploads have been aborted.
type aborted struct {
	to      time.Time // those of what was due until then
	unknown error     // why it could not be found out what there are; nil: it was
}

// abortUploads ends the unfinished uploads of everything that is due, before the bytes are deleted: what is completed
// meanwhile is deleted then. They are found by one listing of all that are unfinished, and not by one an object: of a
// million objects that were never sealed most have none. Those of an object that was not reserved in parts are its
// worker's own, by credentials for the storage. Nobody begins one any more for what is condemned.
func (p *Pass) abortUploads(ctx context.Context) (aborted, error) {
	const query = `
		WITH moment AS MATERIALIZED (SELECT fenceline_now() AS now)
		SELECT DISTINCT o.prefix, m.now
		FROM moment m
		JOIN object o ON o.state = 'condemned' AND ` + deleteDue + ` <= m.now
		WHERE o.sealed_at IS NULL OR o.part_size IS NOT NULL`
	type row struct {
		Prefix string
		Now    time.Time
	}
	if p.options.DryRun {
		return aborted{to: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, nil
	}
	prefixes, err := database.Rows[row](ctx, p.collector.pool, query, nil)
	if err != nil || len(prefixes) == 0 {
		return aborted{to: beginning}, err
	}
	done := aborted{to: prefixes[0].Now}
	for _, r := range prefixes {
		err := p.patiently(ctx, p.mayDelete(nil), func() error { return p.abortUnder(ctx, staging.Layout{Prefix: r.Prefix}.Root()) })
		switch {
		case err == nil:
		case errors.Is(err, errListing) && !stops(err) && !errors.Is(err, staging.ErrStorageUnavailable):
			done.unknown = err // the objects that can have none are deleted all the same
		default:
			return aborted{}, err
		}
	}
	return done, nil
}

// errListing reports that the storage would not say what uploads are unfinished.
var errListing = errors.New("find the unfinished uploads")

// abortUnder ends those of the unfinished uploads under a prefix whose objects are due.
func (p *Pass) abortUnder(ctx context.Context, prefix string) error {
	for page, err := range p.collector.bucket.Uploads(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("%w: %w", errListing, err)
		}
		if err := p.abortPage(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// abortPage ends those of a page of uploads whose objects are due, and writes down where that failed.
func (p *Pass) abortPage(ctx context.Context, page []staging.UploadRef) error {
	const query = selectDoomed + ` AND key = ANY(@keys)`
	keys := make([]string, len(page))
	for i, u := range page {
		keys[i] = u.Key
	}
	rows, err := p.doomed(ctx, query, pgx.NamedArgs{"keys": keys})
	if err != nil || len(rows) == 0 {
		return err
	}
	due := make(map[string]*doomed, len(rows))
	for _, d := range rows {
		due[d.Key] = d
	}
	failed := map[string]*doomed{}
	for _, u := range page {
		d := due[u.Key]
		if d == nil || !d.Unfinished {
			continue
		}
		may := p.mayDelete([]*doomed{d})
		err := p.patiently(ctx, may, func() error { return p.collector.bucket.AbortUpload(ctx, u.Key, u.UploadID, may) })
		switch {
		case errors.Is(err, errFrozenSince): // it is not deleted either
		case stops(err) || errors.Is(err, staging.ErrThrottled):
			return err
		case err != nil:
			d.failed(err)
			failed[d.Key] = d
		}
	}
	batch := make([]*doomed, 0, len(failed))
	for _, d := range failed {
		batch = append(batch, d)
	}
	return p.recordPurge(ctx, batch)
}
