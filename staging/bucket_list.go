package staging

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// ErrListingBroken reports that the storage's listing is not one to rely on: it
// said that there is more without saying where, gave a page twice, or its keys did not increase.
var ErrListingBroken = errors.New("the storage's listing is broken")

// Stored is what the storage holds under one key: bytes, on a versioned bucket one version of them, or a delete marker.
type Stored struct {
	Key       string
	VersionID string // empty on a bucket without versions
	Size      int64
	Marker    bool // a delete marker
}

// Layout is where this deployment's objects are in the bucket.
func (b *Bucket) Layout() Layout { return Layout{Prefix: b.prefix} }

// Stored lists all that is under the root of the layout after a key (empty: from the beginning), in byte order and page by page: on a
// bucket that keeps versions, or has kept them, every version and every delete marker. Whatever breaks off the
// listing is its last element, as an error: without one, the listing was whole. Errors: ErrListingBroken, ErrStorageUnavailable.
func (b *Bucket) Stored(ctx context.Context, after string) iter.Seq2[Stored, error] {
	return b.stored(ctx, listing{prefix: b.Layout().Root(), last: after})
}

// stored lists all that is stored as l says.
func (b *Bucket) stored(ctx context.Context, l listing) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		versioning, err := b.versioning(ctx)
		if err != nil {
			yield(Stored{}, fmt.Errorf("read whether the bucket keeps versions: %w", err))
			return
		}
		l := l // each range over it begins anew
		l.fetch = b.currentPage
		if versioning != VersioningOff {
			l.several, l.fetch = true, b.versionPage
		}
		l.walk(ctx, yield)
	}
}

// UploadKeys lists the keys under the root of the layout that have unfinished uploads in parts, each once, as Stored does.
func (b *Bucket) UploadKeys(ctx context.Context, after string) iter.Seq2[string, error] {
	return keysOf(func(yield func(Stored, error) bool) {
		l := listing{prefix: b.Layout().Root(), last: after, fetch: b.uploadKeyPage}
		l.walk(ctx, yield)
	})
}

// Keys lists the keys that can be read under prefix, which is taken as it
// stands, in byte order and page by page. Whatever breaks off the listing is
// its last element, as an error: without one, the listing was whole.
func (b *Bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return keysOf(func(yield func(Stored, error) bool) {
		l := listing{prefix: prefix, fetch: b.currentPage}
		l.walk(ctx, yield)
	})
}

func keysOf(all iter.Seq2[Stored, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for found, err := range all {
			if !yield(found.Key, err) {
				return
			}
		}
	}
}

// listing is one listing under way. It holds one page.
type listing struct {
	prefix  string
	size    int32  // of a page at most; 0: as the storage likes
	last    string // the key that was listed last
	several bool   // a key may be listed several times, one version after the other
	begun   bool   // it was listed here, and is not only where the listing was to begin
	first   string // the first version that was listed of it
	newest  string // and the one that was listed last
	fetch   func(context.Context, request) (listed, error)
}

// request is what is asked of the storage for one page.
type request struct {
	prefix string
	size   int32 // 0: as the storage likes
	cursor
}

// cursor is where a page begins: after a key, or where the storage said that it goes on.
type cursor struct{ after, token, version string }

// marker is where the page begins, for lists that go on at a key.
func (c cursor) marker() string {
	if c.after != "" {
		return c.after
	}
	return c.token
}

// most is the size as requests have it.
func (r request) most() *int32 {
	if r.size == 0 {
		return nil
	}
	return &r.size
}

// listed is one page, and where the next begins; nil: it is the last.
type listed struct {
	found []Stored
	next  *cursor
}

// mostEmptyPages is how many pages may say one after the other that there is more, and show nothing.
const mostEmptyPages = 100

// walk lists one by one.
func (l *listing) walk(ctx context.Context, yield func(Stored, error) bool) {
	l.pages(ctx, func(page []Stored, err error) bool {
		for _, found := range page {
			if !yield(found, nil) {
				return false
			}
		}
		return err == nil || yield(Stored{}, err)
	})
}

// pages lists page by page what is new in each. What breaks it off comes with what came before that on the same page.
func (l *listing) pages(ctx context.Context, yield func([]Stored, error) bool) {
	wrapped := func(err error) error { return fmt.Errorf("list what is under %q: %w", l.prefix, err) }
	for at, empty := (cursor{after: l.last}), 0; ; {
		page, err := l.fetch(ctx, request{l.prefix, l.size, at})
		if err != nil {
			yield(nil, wrapped(storageError(err)))
			return
		}
		news, err := l.news(page.found)
		if err != nil {
			yield(news, wrapped(err))
			return
		}
		if len(news) > 0 && !yield(news, nil) {
			return
		}
		empty++
		if len(news) > 0 {
			empty = 0
		}
		switch {
		case page.next == nil:
			return
		case *page.next == cursor{}:
			err = fmt.Errorf("%w: there is more, and not said where", ErrListingBroken)
		case *page.next == at:
			err = fmt.Errorf("%w: it goes on where it was", ErrListingBroken)
		case empty > mostEmptyPages:
			err = fmt.Errorf("%w: there is more, and nothing comes", ErrListingBroken)
		}
		if err != nil {
			yield(nil, wrapped(err))
			return
		}
		at = *page.next
	}
}

// news is what a page lists that was not listed before, up to the first that cannot come next.
func (l *listing) news(page []Stored) ([]Stored, error) {
	news := make([]Stored, 0, len(page))
	for i, found := range page {
		if l.repeats(found, i == 0) {
			continue
		}
		if err := l.follow(found); err != nil {
			return news, err
		}
		news = append(news, found)
	}
	return news, nil
}

// repeats tells what some servers list again of versions: all of the key after which the listing was to begin, and the one with which the
// page before ended.
func (l *listing) repeats(found Stored, begins bool) bool {
	return l.several && found.Key == l.last && (!l.begun || begins && found.VersionID == l.newest)
}

// follow refuses what cannot come next in a listing in byte order that goes on.
func (l *listing) follow(found Stored) error {
	switch {
	case !strings.HasPrefix(found.Key, l.prefix):
		return fmt.Errorf("%w: %q is not under it", ErrListingBroken, found.Key)
	case found.Key > l.last:
		l.last, l.begun, l.first = found.Key, true, found.VersionID
	case found.Key < l.last, !l.several, found.VersionID == l.first:
		return fmt.Errorf("%w: %q after %q", ErrListingBroken, found.Key, l.last)
	}
	l.newest = found.VersionID
	return nil
}

// keyIn reads a key of an answer. Keys are asked for in an encoding, since XML holds no control characters; a
// server that does not know it says nothing of one.
func keyIn(encoding types.EncodingType, key *string) (string, error) {
	if encoding != types.EncodingTypeUrl {
		return aws.ToString(key), nil
	}
	decoded, err := url.QueryUnescape(aws.ToString(key))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrListingBroken, err)
	}
	return decoded, nil
}
