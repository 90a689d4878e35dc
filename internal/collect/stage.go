package collect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// staged is an object to be made.
type staged struct {
	spot
	reservedAt time.Time
	seal       bool
}

// stageDue makes objects that are due, by their numbers.
func (f *Field) stageDue(ctx context.Context, numbers []int) error {
	objects := make([]staged, len(numbers))
	step := duration / time.Duration(f.layout.grants)
	for i, n := range numbers {
		at := f.began.Add(time.Duration(n/perGrant)*step + time.Duration(n%perGrant)*time.Millisecond)
		objects[i] = staged{f.layout.due(n), at, sealed(n)}
	}
	return f.stage(ctx, objects)
}

// stageKept makes objects that have just been sealed, one a report.
func (f *Field) stageKept(ctx context.Context, numbers []int) error {
	objects := make([]staged, len(numbers))
	for i, n := range numbers {
		objects[i] = staged{f.layout.kept(n), f.now, true}
	}
	return f.stage(ctx, objects)
}

// stage does what reserve, a worker's upload and seal would have done. Whatever is written passes the triggers.
func (f *Field) stage(ctx context.Context, objects []staged) error {
	columns := []string{
		"report_id", "fence_epoch", "fence_counter", "object_id", "prefix", "state",
		"declared_size", "reserved_at", "upload_until", "eligible_at",
	}
	_, err := f.pool.CopyFrom(ctx, pgx.Identifier{"object"}, columns, pgx.CopyFromSlice(len(objects), func(i int) ([]any, error) {
		o := objects[i]
		content, _ := body(o.key(f.Storage.Prefix, f.epoch))
		return []any{
			o.report, f.epoch, o.counter, o.object, f.Storage.Prefix, "reserved",
			int64(len(content)), o.reservedAt, o.reservedAt.Add(urlLife), o.reservedAt.Add(retention),
		}, nil
	}))
	if err != nil {
		return err
	}
	var seals sealing
	for _, o := range objects {
		content, digest := body(o.key(f.Storage.Prefix, f.epoch))
		etag, err := f.put(ctx, o.key(f.Storage.Prefix, f.epoch), content)
		if err != nil {
			return err
		}
		if o.seal {
			seals.add(o, int64(len(content)), digest[:], etag)
		}
	}
	return f.seal(ctx, seals)
}

// sealing is what is written down of several objects, column by column.
type sealing struct {
	reports, objects, etags []string
	counters, sizes         []int64
	digests                 [][]byte
}

func (s *sealing) add(o staged, size int64, digest []byte, etag string) {
	s.reports, s.objects, s.etags = append(s.reports, o.report), append(s.objects, o.object), append(s.etags, etag)
	s.counters, s.sizes, s.digests = append(s.counters, o.counter), append(s.sizes, size), append(s.digests, digest)
}

// seal writes what seal would have, a second after each object was reserved.
func (f *Field) seal(ctx context.Context, s sealing) error {
	const query = `
		UPDATE object o
		SET state = 'sealed', size = s.size, sha256 = s.sha256, etag = s.etag,
		    sealed_at = o.reserved_at + interval '1 second', checked_epoch = @epoch,
		    eligible_at = o.eligible_at + interval '1 second'
		FROM unnest(@reports::text[], @counters::bigint[], @objects::text[], @sizes::bigint[], @digests::bytea[], @etags::text[])
		     AS s (report_id, fence_counter, object_id, size, sha256, etag)
		WHERE (o.report_id, o.fence_epoch, o.fence_counter, o.object_id) = (s.report_id, @epoch, s.fence_counter, s.object_id)`
	_, err := f.pool.Exec(ctx, query, pgx.NamedArgs{
		"epoch": f.epoch, "reports": s.reports, "counters": s.counters, "objects": s.objects,
		"sizes": s.sizes, "digests": s.digests, "etags": s.etags,
	})
	return err
}
