package check

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/staging"
)

// object is what the checker needs to know of an object's row.
type object struct {
	ReportID  string
	Key       string
	State     string
	Size      *int64
	Sha256    []byte
	Etag      *string
	VersionID string
	Visible   bool   // its report shows it
	Kept      bool   // sealed, and not due yet
	Row       string // all of it, as JSON
}

const selectObjects = `
	SELECT report_id, key, state, size, sha256, etag,
	       coalesce(version_id, '') AS version_id,
	       coalesce((fence_epoch, fence_counter, object_id) = (visible_epoch, visible_counter, visible_object_id), false) AS visible,
	       state = 'sealed' AND (eligible_at IS NULL OR eligible_at > fenceline_now()) AS kept,
	       to_jsonb(o)::text AS row
	FROM object o
	JOIN report r USING (report_id)`

func (c *checker) readObjects(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, selectObjects)
	if err == nil {
		c.objects, err = pgx.CollectRows(rows, pgx.RowToStructByName[object])
	}
	return err
}

// present reads an object's row as it is now. Whatever looks wrong in the bucket is judged by it, since the
// service may have gone on after the snapshot: it says what held already when the bucket was looked at.
func (c *checker) present(ctx context.Context, key string) (o object, found bool, err error) {
	rows, err := c.pool.Query(ctx, selectObjects+` WHERE key = @key`, pgx.NamedArgs{"key": key})
	if err != nil {
		return object{}, false, err
	}
	o, err = pgx.CollectOneRow(rows, pgx.RowToStructByName[object])
	if errors.Is(err, pgx.ErrNoRows) {
		return object{}, false, nil
	}
	return o, err == nil, err
}

// readers is how many objects are looked at at the same time.
const readers = 8

// checkBytes reads and hashes what is visible, and looks whether the rest of what is kept is there.
func (c *checker) checkBytes(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	var mu sync.Mutex
	for _, o := range c.objects {
		if !o.Kept && !(o.Visible && o.State == "sealed") {
			continue
		}
		group.Go(func() error {
			wrong, err := c.look(ctx, o)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if o.Visible {
				c.report.Seen.Digests++
			}
			if wrong != "" {
				c.found(keptViolation(o, wrong))
			}
			return nil
		})
	}
	return group.Wait()
}

func keptViolation(o object, wrong string) Violation {
	promise := "what is kept has its bytes"
	if o.Visible {
		promise = "a visible object exists with the size and digest that were published"
	}
	return Violation{Guarantee: "G5", Promise: promise, Report: o.ReportID, Says: wrong, Rows: []string{o.Row}}
}

// look tells what is wrong with the bytes of one object; "" if nothing is.
func (c *checker) look(ctx context.Context, o object) (wrong string, err error) {
	if o.Visible {
		var sum string
		var size int64
		sum, size, err = c.bucket.Digest(ctx, o.Key, o.VersionID, *o.Etag)
		if err == nil && (size != *o.Size || sum != hex.EncodeToString(o.Sha256)) {
			return fmt.Sprintf("%s holds %d bytes with digest %s", o.Key, size, sum), nil
		}
	} else {
		var stat staging.Stat
		stat, err = c.bucket.Head(ctx, o.Key, o.VersionID)
		if err == nil && (stat.Size != *o.Size || stat.ETag != *o.Etag) {
			return fmt.Sprintf("%s holds %d bytes with ETag %s", o.Key, stat.Size, stat.ETag), nil
		}
	}
	switch {
	case errors.Is(err, staging.ErrBytesChanged):
		return o.Key + " holds other bytes than were sealed", nil
	case !errors.Is(err, staging.ErrNoBytes):
		return "", err
	}
	// Nothing comes back from being condemned: what is kept now was kept when its bytes were missing.
	now, found, err := c.present(ctx, o.Key)
	if err != nil || !found || !now.Kept {
		return "", err
	}
	return o.Key + " holds nothing", nil
}

// checkKeys lists the bucket, and finds what nobody knows or what should be gone.
func (c *checker) checkKeys(ctx context.Context) error {
	expected := make(map[string]bool, len(c.objects))
	for _, o := range c.objects {
		expected[o.Key] = o.State != "deleted"
	}
	for key, err := range c.bucket.Keys(ctx, c.cfg.Prefix+"reports/") {
		if err != nil {
			return err
		}
		c.report.Seen.Keys++
		if expected[key] {
			continue
		}
		if err := c.checkUnexpected(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkUnexpected(ctx context.Context, key string) error {
	now, known, err := c.present(ctx, key)
	if err != nil || known && now.State != "deleted" {
		return err // reserved since the snapshot
	}
	_, err = c.bucket.Head(ctx, key, "")
	if errors.Is(err, staging.ErrNoBytes) {
		return nil // deleted since it was listed
	}
	if err != nil {
		return err
	}
	v := Violation{Guarantee: "G6", Promise: "every key in the bucket is known to the catalog", Says: key + " is not"}
	if known {
		v.Promise, v.Says, v.Report = "what is deleted has no bytes", key+" still holds some", now.ReportID
		v.Rows = []string{now.Row}
	}
	c.found(v)
	return nil
}
