package gc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// beginScan takes up the scan that is under way, or begins one.
func (p *Pass) beginScan(ctx context.Context) (*scan, error) {
	const query = `SELECT status, part, after_key FROM begin_scan(@run)`
	type answer struct {
		Status   *string
		Part     *string
		AfterKey []byte
	}
	got, err := database.Change[answer](ctx, p.collector.pool, query, pgx.NamedArgs{"run": p.ID})
	if err != nil {
		return nil, err
	}
	if got.Status != nil {
		return nil, stepError(*got.Status)
	}
	s := &scan{pass: p, layout: p.collector.bucket.Layout()}
	s.startAt(*got.Part, string(got.AfterKey))
	if !strings.HasPrefix(s.after, s.layout.Root()) { // of another prefix, or the beginning
		s.startAt(scanObjects, s.layout.Root())
	}
	return s, nil
}

// startAt goes on in a part, after a key.
func (s *scan) startAt(part, after string) {
	s.part, s.after, s.recordedAt = part, after, time.Now()
	s.rows = &rowStream{pool: s.pass.collector.pool, end: s.layout.End(), size: s.pass.collector.cfg.Batch}
}

// moveTo writes down that a part of the scan is done, and begins the next.
func (s *scan) moveTo(ctx context.Context, part string) error {
	s.startAt(part, s.layout.Root())
	return s.record(ctx, s.after)
}

// pause writes down what was seen where that has become enough. All is done with up to the key.
func (s *scan) pause(ctx context.Context, after string) error {
	if s.listed < mostListed && len(s.found)+len(s.returned) < s.pass.collector.cfg.Batch && time.Since(s.recordedAt) < longestUnrecorded {
		return nil
	}
	if err := s.record(ctx, after); err != nil {
		return err
	}
	return s.pass.inTime(ctx) // behind what was written down: however little it was, the next pass need not see it again
}

// record writes down what was seen up to a key. Should it break off half-way, the same is seen again, and what was recorded
// is known then.
func (s *scan) record(ctx context.Context, after string) error {
	const query = `SELECT status FROM record_scan(@run, @part, @after, @keys, @objects, @bytes, @sample)`
	type answer struct{ Status string }
	if err := s.recordFound(ctx); err != nil {
		return err
	}
	if err := s.noteLeftovers(ctx); err != nil {
		return err
	}
	got, err := database.Change[answer](ctx, s.pass.collector.pool, query, pgx.NamedArgs{
		"run": s.pass.ID, "part": s.part, "after": []byte(after), "keys": s.seen,
		"objects": s.tally.objects, "bytes": s.tally.bytes, "sample": s.tally.sample,
	})
	if err != nil {
		return err
	}
	if got.Status != "recorded" {
		return stepError(got.Status)
	}
	s.listed, s.seen, s.tally, s.recordedAt = 0, 0, foreign{}, time.Now()
	return nil
}

// recordFound has the database record what no row knew, unless one does by now.
func (s *scan) recordFound(ctx context.Context) error {
	const query = `
		SELECT status, report_id, fence_epoch, fence_counter, object_id, key, size
		FROM record_found(@run, @prefix, @keys, @retention_ms)`
	err := s.write(ctx, query, s.found, "unknown", pgx.NamedArgs{
		"prefix": s.layout.Prefix, "retention_ms": s.pass.collector.cfg.Unknown.Milliseconds(),
	})
	if err == nil {
		s.found = s.found[:0]
	}
	return err
}

// noteLeftovers notes at the rows what is there although they say that it is not. A dry run is told of what it would remove.
func (s *scan) noteLeftovers(ctx context.Context) error {
	const query = `
		SELECT status, report_id, fence_epoch, fence_counter, object_id, key, size
		FROM note_leftovers(@run, @uploads, @keys, @spared_ms)`
	err := s.write(ctx, query, s.returned, "returned", pgx.NamedArgs{
		"uploads": s.part == scanUploads, "spared_ms": s.pass.collector.cfg.Staged.Milliseconds(),
	})
	if err == nil {
		s.returned = s.returned[:0]
	}
	return err
}

// write has one of the functions write down what was seen, and tells what it answers.
func (s *scan) write(ctx context.Context, query string, what []sighting, reason string, args pgx.NamedArgs) error {
	if len(what) == 0 {
		return nil
	}
	keys, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode what was seen: %w", err)
	}
	args["run"], args["keys"] = s.pass.ID, string(keys)
	written, err := database.Changes[answered](ctx, s.pass.collector.pool, query, args)
	if err != nil {
		return err
	}
	for _, row := range written {
		if row.ReportID == nil {
			return stepError(row.Status)
		}
		s.pass.tell(row.entry(reason))
	}
	return nil
}

// mostSamples is how many foreign keys a record shows.
const mostSamples = 10

// add counts what is not ours. What is shown of its key is text that the database can hold.
func (f *foreign) add(stored staging.Stored) {
	f.objects++
	f.bytes += stored.Size
	if len(f.sample) < mostSamples {
		f.sample = append(f.sample, strings.ToValidUTF8(strings.ReplaceAll(stored.Key, "\x00", "\uFFFD"), "\uFFFD"))
	}
}
