package gc

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/staging"
)

// What [Config.ScanEvery] may be other than a time.
const (
	// ScanAlways has every pass scan.
	ScanAlways time.Duration = time.Nanosecond
	// ScanNever has no pass by schedule scan.
	ScanNever time.Duration = -1
)

// lister is what a scan needs of the storage.
type lister interface {
	// Layout is where the deployment's objects are in the bucket.
	Layout() staging.Layout
	// Stored lists what is under the layout's root after a key, and UploadKeys the keys of unfinished uploads there.
	Stored(ctx context.Context, after string) iter.Seq2[staging.Stored, error]
	UploadKeys(ctx context.Context, after string) iter.Seq2[string, error]
}

// The parts of a scan, in their order. The position within one is the last key that is done with.
const (
	scanObjects   = "objects"
	scanUploads   = "uploads"
	scanLeftovers = "leftovers"
	scanDone      = "done"
	scanBroken    = "broken"
)

// scanDue tells whether a pass by schedule is to scan: the last complete scan is too long ago.
func (c *Collector) scanDue(ctx context.Context) (bool, error) {
	const query = `
		SELECT coalesce(completed_at + @every_ms * interval '1 millisecond' <= fenceline_now(), true) AS due FROM gc_scan`
	type row struct{ Due bool }
	if c.cfg.ScanEvery < 0 {
		return false, nil
	}
	got, _, err := database.Row[row](ctx, c.pool, query, pgx.NamedArgs{"every_ms": c.cfg.ScanEvery.Milliseconds()})
	return got.Due, err
}

// scan compares what the bucket holds with the rows, from where the scan under way has come to: what no row knows is
// recorded, and what the rows say is gone is removed once the listing was whole. It goes through both as streams, in the
// order of keys, and holds a page of each.
func (p *Pass) scan(ctx context.Context) error {
	s, err := p.beginScan(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
		next string
	}{
		{scanObjects, s.objects, scanUploads},
		{scanUploads, s.uploads, scanLeftovers},
		{scanLeftovers, s.leftovers, scanDone},
	} {
		if part.name != s.part {
			continue
		}
		err := part.run(ctx)
		if errors.Is(err, staging.ErrListingBroken) {
			err = errors.Join(err, s.moveTo(ctx, scanBroken))
		}
		if err != nil {
			return err
		}
		if err := s.moveTo(ctx, part.next); err != nil {
			return err
		}
		if err := s.pass.inTime(ctx); err != nil && part.next != scanDone {
			return err
		}
	}
	return nil
}

// scan is one scan under way.
type scan struct {
	pass   *Pass
	layout staging.Layout
	part   string
	after  string // the last key of the part that is done with
	rows   *rowStream

	// What was seen since it was last written down, and when that was.
	recordedAt time.Time
	listed     int // keys that the listing showed
	seen       int // of them, those of what is stored
	tally      foreign
	found      []sighting // known by no row
	returned   []sighting // under a row that says it is not there
}

// foreign is what is not ours: under a key that no object of ours has, or a version that is not the sealed one.
type foreign struct {
	objects, bytes int64
	sample         []string
}

// sighting is an object's key with something under it.
type sighting struct {
	ReportID     fencing.ReportID `json:"report_id"`
	FenceEpoch   int32            `json:"fence_epoch"`
	FenceCounter int64            `json:"fence_counter"`
	ObjectID     fencing.ObjectID `json:"object_id"`
	Key          string           `json:"key"`
	Size         int64            `json:"size"`
}

func sightingOf(name fencing.ObjectName, key string, size int64) sighting {
	return sighting{
		ReportID: name.Report, FenceEpoch: name.Fence.Epoch, FenceCounter: name.Fence.Counter, ObjectID: name.Object,
		Key: key, Size: size,
	}
}

// How many keys are listed, and how long, before that is written down.
const (
	mostListed        = 1000
	longestUnrecorded = 5 * time.Second
)

// objects goes through what is stored.
func (s *scan) objects(ctx context.Context) error {
	last, done := s.after, s.after // of the last there may be more, where the bucket keeps versions
	for stored, err := range s.pass.collector.bucket.Stored(ctx, s.after) {
		if err != nil {
			if done != last {
				s.seen-- // it will be listed once more
			}
			return s.brokenOff(ctx, done, err)
		}
		if stored.Key != last {
			if err := s.pause(ctx, last); err != nil {
				return err
			}
			s.listed, s.seen = s.listed+1, s.seen+1
		}
		if err := s.compare(ctx, stored, stored.Key == last); err != nil {
			return err
		}
		if stored.Key != last {
			done, last = last, stored.Key
		}
		if stored.VersionID == "" {
			done = last
		}
	}
	return s.record(ctx, last)
}

// brokenOff writes down what was seen up to a key, unless it was the listing itself that cannot be relied on, so that a
// listing which often breaks off comes to its end all the same.
func (s *scan) brokenOff(ctx context.Context, done string, err error) error {
	if errors.Is(err, staging.ErrListingBroken) {
		return err
	}
	return errors.Join(err, s.record(ctx, done))
}

// compare compares one thing that is stored with what the rows say. again: its key was seen already, with another version.
func (s *scan) compare(ctx context.Context, stored staging.Stored, again bool) error {
	name, ours := s.layout.Name(stored.Key)
	if !ours {
		s.tally.add(stored)
		return nil
	}
	row, known, err := s.rows.at(ctx, stored.Key)
	switch {
	case err != nil:
		return err
	case !known:
		s.found = see(s.found, again, sightingOf(name, stored.Key, stored.Size))
	case row.State == staging.Deleted:
		s.returned = see(s.returned, again, sightingOf(name, stored.Key, stored.Size))
	case row.State == staging.Sealed && !row.holds(stored):
		s.tally.add(stored)
	}
	return nil
}

// see adds what was seen; again: to that of the same key.
func see(all []sighting, again bool, x sighting) []sighting {
	if n := len(all); again && n > 0 && all[n-1].Key == x.Key {
		all[n-1].Size += x.Size
		return all
	}
	return append(all, x)
}

// uploads goes through the keys of unfinished uploads in parts. Those of what is reserved are in progress, and those of what is
// condemned go with it.
func (s *scan) uploads(ctx context.Context) error {
	last := s.after
	for key, err := range s.pass.collector.bucket.UploadKeys(ctx, s.after) {
		if err != nil {
			return s.brokenOff(ctx, last, err)
		}
		if err := s.pause(ctx, last); err != nil {
			return err
		}
		last = key
		s.listed++
		name, ours := s.layout.Name(key)
		if !ours {
			s.tally.add(staging.Stored{Key: key})
			continue
		}
		row, known, err := s.rows.at(ctx, key)
		switch {
		case err != nil:
			return err
		case !known:
			s.found = append(s.found, sightingOf(name, key, 0))
		case row.State == staging.Deleted, row.State == staging.Sealed:
			s.returned = append(s.returned, sightingOf(name, key, 0))
		}
	}
	return s.record(ctx, last)
}
