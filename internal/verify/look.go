package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// Fault is in what way the bytes of an object are not as they were published.
type Fault string

// The faults. For Unreadable the storage had no usable answer about this one object, although it answers about others.
const (
	Missing    Fault = "missing"    // nothing is there, or not the version that was published
	Size       Fault = "size"       // it has another length
	Changed    Fault = "changed"    // it has the length, and another ETag: readers are refused
	Digest     Fault = "digest"     // the bytes are others, although length and ETag are right
	Unreadable Fault = "unreadable" // it cannot be asked for, or not be read
)

// seen is what was seen of one object.
type seen struct {
	Fault  Fault // empty: it is as it was published
	Read   bool  // only a reading has shown it
	Found  staging.Stat
	Detail string
	gone   bool // the catalog does not show it any more
}

// errAway reports that the storage does not answer, or not as the catalog's bucket, so that nothing can be said of any object.
var errAway = errors.New("the storage is away")

// attempts is how often the storage is asked about one object that has no answer.
const attempts = 4

// judge looks at one object in the storage, and where it is not as it was published, at the catalog once more: somebody may have
// erased it meanwhile, or the collector taken it. Bytes go only after the catalog says so, and never back; so what it still shows
// after the look was to be there during the look.
func (v *Verifier) judge(ctx context.Context, o shown, deep bool) (seen, error) {
	got, err := v.look(ctx, o, deep)
	if err == nil && (got.Fault == Missing || got.Fault == Unreadable) {
		// It may be the bucket that is away, or another that stands in its place: this is then no fault of the object's.
		if err := v.ours(ctx); err != nil {
			return seen{}, err
		}
		got, err = v.look(ctx, o, deep)
	}
	if err != nil || got.Fault == "" {
		return got, err
	}
	still, err := v.again(ctx, o.Name)
	if err != nil {
		return seen{}, err
	}
	if !still {
		return seen{gone: true}, nil
	}
	return got, nil
}

// ours tells whether the storage answers, with the catalog's own bucket.
func (v *Verifier) ours(ctx context.Context) error {
	err := v.retry(ctx, func() error {
		claimed, err := staging.Claimed(ctx, v.pool, v.bucket)
		if err == nil && !claimed {
			err = fmt.Errorf("nothing in it says that it is this catalog's: %w", staging.ErrNoBytes)
		}
		return err
	})
	if err != nil && !errors.Is(err, database.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

// look asks the storage about one object; an error is one of the caller's own, such as its end.
func (v *Verifier) look(ctx context.Context, o shown, deep bool) (seen, error) {
	var stat staging.Stat
	err := v.retry(ctx, func() (err error) {
		stat, err = v.bucket.Head(ctx, o.Key, o.VersionID)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return seen{}, ctx.Err()
	case errors.Is(err, staging.ErrNoBytes):
		return seen{Fault: Missing}, nil
	case err != nil:
		return seen{Fault: Unreadable, Detail: shorten(err)}, nil
	case stat.Size != o.Size:
		return seen{Fault: Size, Found: stat}, nil
	case stat.ETag != o.ETag, o.VersionID != "" && stat.VersionID != o.VersionID:
		return seen{Fault: Changed, Found: stat}, nil
	case stat.SHA256 != "" && stat.SHA256 != o.SHA256:
		return seen{Fault: Digest, Found: stat}, nil
	case !deep:
		return seen{Found: stat}, nil
	}
	return v.read(ctx, o, stat)
}

// read hashes the bytes of an object that has its length and ETag.
func (v *Verifier) read(ctx context.Context, o shown, stat staging.Stat) (seen, error) {
	var sum string
	err := v.retry(ctx, func() (err error) {
		sum, _, err = v.bucket.Digest(ctx, o.Key, o.VersionID, o.ETag)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return seen{}, ctx.Err()
	case errors.Is(err, staging.ErrNoBytes):
		return seen{Fault: Missing}, nil
	case errors.Is(err, staging.ErrBytesChanged):
		return seen{Fault: Changed, Found: stat, Read: true, Detail: shorten(err)}, nil
	case err != nil:
		return seen{Fault: Unreadable, Found: stat, Read: true, Detail: shorten(err)}, nil
	}
	stat.SHA256 = sum
	if sum != o.SHA256 {
		return seen{Fault: Digest, Found: stat, Read: true}, nil
	}
	return seen{Found: stat}, nil
}

// retry asks again, for a while, what had no answer.
func (v *Verifier) retry(ctx context.Context, ask func() error) error {
	wait := v.cfg.Patience
	for n := 1; ; n++ {
		err := ask()
		if !errors.Is(err, staging.ErrStorageUnavailable) || n == attempts {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		wait *= 2
	}
}

// longestDetail bounds what is kept of an error.
const longestDetail = 500

func shorten(err error) string {
	text := []rune(err.Error())
	return string(text[:min(len(text), longestDetail)])
}
