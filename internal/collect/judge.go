package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
)

// Judge looks at what is left, in the rows, the ledger and the bucket, and at how it went.
func (f *Field) Judge(ctx context.Context) (Result, error) {
	f.tell("looking at what is left")
	err := errors.Join(f.rates(ctx), f.judgeRows(ctx), f.judgeLedger(ctx), f.judgeBucket(ctx), f.judgeKept(ctx), f.judgeVersions(ctx))
	if err != nil {
		return f.result, fmt.Errorf("look at what is left: %w", err)
	}
	if got := len(f.result.Kills); got != f.Kills {
		f.broken("the collector was killed %d times, and not %d", got, f.Kills)
	}
	for _, p := range f.result.Phases {
		if f.Spread > 0 && !(p.Ratio() >= 1-f.Spread) {
			f.broken("%s: the last %d objects went at %.0f a second, the first at %.0f", p.Name, p.Edge, p.Last, p.First)
		}
	}
	if f.Memory > 0 && f.result.PeakRSS > f.Memory {
		f.broken("the collector had %d bytes in use, more than %d", f.result.PeakRSS, f.Memory)
	}
	return f.result, f.pool.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&f.result.DiskDatabase)
}

func (f *Field) broken(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.result.Broken = append(f.result.Broken, fmt.Sprintf(format, args...))
}

// judgeRows compares the rows with what was made: what was due is deleted, for the right reason, and nothing else is.
func (f *Field) judgeRows(ctx context.Context) error {
	const query = `
		SELECT count(*) FILTER (WHERE due) AS due,
		       count(*) FILTER (WHERE due AND state = 'deleted') AS deleted,
		       count(*) FILTER (WHERE due AND condemned_reason IS DISTINCT FROM
		                        CASE WHEN sealed_at IS NULL THEN 'never_sealed' ELSE 'never_published' END) AS wrong,
		       count(*) FILTER (WHERE NOT due AND condemned_at IS NOT NULL) AS others,
		       count(*) FILTER (WHERE starts_with(object_id, @kept) AND state = 'sealed') AS kept,
		       count(*) FILTER (WHERE starts_with(object_id, @unknown)) AS recorded
		FROM (SELECT *, starts_with(object_id, @due) AS due FROM object) o`
	type answer struct{ Due, Deleted, Wrong, Others, Kept, Recorded int }
	got, _, err := database.Row[answer](ctx, f.pool, query, pgx.NamedArgs{"due": dueName, "kept": keptName, "unknown": unknownName})
	if err != nil {
		return err
	}
	f.result.Recorded = got.Recorded
	if got.Due != f.Objects || got.Deleted != f.Objects {
		f.broken("rows: of %d objects that were due %d are there, and %d are deleted", f.Objects, got.Due, got.Deleted)
	}
	if got.Wrong > 0 {
		f.broken("rows: %d objects that were due have another reason than they must", got.Wrong)
	}
	if got.Others > 0 {
		f.broken("rows: %d objects were condemned that were not due", got.Others)
	}
	if got.Kept != f.layout.reports {
		f.broken("rows: of %d objects that are kept %d are still sealed", f.layout.reports, got.Kept)
	}
	if got.Recorded != f.Unknown {
		f.broken("rows: of %d unknown keys %d were recorded", f.Unknown, got.Recorded)
	}
	return nil
}

// judgeLedger tells whether each object that was due was condemned once and deleted once, and no other ever.
func (f *Field) judgeLedger(ctx context.Context) error {
	const query = `
		SELECT count(*) FILTER (WHERE due) AS due,
		       count(*) FILTER (WHERE due AND (condemned, deleted) IS DISTINCT FROM (1, 1)) AS wrong,
		       count(*) FILTER (WHERE NOT due) AS others
		FROM (SELECT starts_with(object_id, @due) AS due, count(*) FILTER (WHERE action = 'condemned') AS condemned,
		             count(*) FILTER (WHERE action = 'deleted') AS deleted
		      FROM gc_ledger
		      WHERE action IN ('condemned', 'deleted')
		      GROUP BY report_id, fence_epoch, fence_counter, object_id) o`
	type answer struct{ Due, Wrong, Others int }
	got, _, err := database.Row[answer](ctx, f.pool, query, pgx.NamedArgs{"due": dueName})
	if got.Due != f.Objects || got.Wrong > 0 {
		f.broken("ledger: of %d objects that were due it knows %d, and %d of them not as condemned once and deleted once", f.Objects, got.Due, got.Wrong)
	}
	if got.Others > 0 {
		f.broken("ledger: %d objects were condemned or deleted that were not due", got.Others)
	}
	return err
}

// judgeBucket compares the keys with what was made and what was published.
func (f *Field) judgeBucket(ctx context.Context) error {
	seen := map[string]int{}
	listed, err := f.list(ctx, func(key string) {
		name := path.Base(key)
		kind, _, _ := strings.Cut(name, "-")
		seen[kind+"-"]++
	})
	if err != nil {
		return err
	}
	f.result.ListedAfter = listed
	if left := seen[dueName]; left > 0 {
		f.broken("bucket: the bytes of %d objects that were due are still there", left)
	}
	for _, k := range []struct {
		kind, what string
		want       int
	}{
		{keptName, "objects that are kept", f.layout.reports},
		{foreignName, "foreign keys", f.Foreign},
		{unknownName, "unknown keys", f.Unknown},
	} {
		if got := seen[k.kind]; got != k.want {
			f.broken("bucket: of %d %s %d are there", k.want, k.what, got)
		}
	}
	if got := seen[publishedName]; got < len(f.published) {
		f.broken("bucket: of %d published objects %d are there", len(f.published), got)
	}
	return nil
}

// list lists the whole bucket.
func (f *Field) list(ctx context.Context, each func(key string)) (Listing, error) {
	started, n := time.Now(), 0
	for key, err := range f.bucket.Keys(ctx, "") {
		if err != nil {
			return Listing{}, err
		}
		n++
		each(key)
	}
	return Listing{n, since(started)}, nil
}

// judgeKept looks at the bytes of every object that is kept.
func (f *Field) judgeKept(ctx context.Context) error {
	return f.each(ctx, f.layout.reports, func(n int) {
		key := f.layout.kept(n).key(f.Storage.Prefix, f.epoch)
		content, _ := body(key)
		if stat, err := f.bucket.Head(ctx, key, ""); err != nil || stat.Size != int64(len(content)) {
			f.broken("bucket: the kept object %s: %d bytes, %v", key, stat.Size, err)
		}
	})
}

// judgeVersions reads every version whose publish was acknowledged as readers do.
func (f *Field) judgeVersions(ctx context.Context) error {
	f.result.Checked = len(f.published)
	return f.each(ctx, len(f.published), func(n int) {
		p := f.published[n]
		content, err := f.service.OpenVersion(ctx, p.report, p.version)
		if err == nil {
			_, err = io.Copy(io.Discard, content) // which fails where the bytes are not those published
			_ = content.Close()
		}
		if err != nil || content.SHA256 != p.digest {
			f.broken("version %d of %s does not resolve to what was published: %v", p.version, p.report, err)
		}
	})
}

// each does n things, several at once. What they find broken is written down one after the other.
func (f *Field) each(ctx context.Context, n int, do func(int)) error {
	var next atomic.Int64
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			for ctx.Err() == nil {
				if i := int(next.Add(1)) - 1; i < n {
					do(i)
					continue
				}
				return
			}
		})
	}
	all.Wait()
	return ctx.Err()
}
