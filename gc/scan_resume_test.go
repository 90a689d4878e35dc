package gc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

// fill puts n unknown objects into the bucket, which are one byte long each.
func (b *bundle) fill(t testing.TB, n int) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { b.storage.Put(t, keyOf(nameOf("july", "1.1", fmt.Sprintf("%06d", i))), "x"); return nil })
	}
	must(t, "fill the bucket", group.Wait())
}

// found is how many objects are recorded that no worker has reserved.
func (b *bundle) found(t testing.TB) int {
	t.Helper()
	return testdb.Value[int](t, b.db, "SELECT count(found_at) FROM object")
}

func TestAScanThatDiesAnywhereIsTakenUpByTheNext(t *testing.T) {
	t.Parallel()
	const objects, batch = 9, 2
	for at := 1; at < objects; at += 2 {
		for death, die := range map[string]func(*testing.T, *bundle, context.CancelFunc, *stop) error{
			"cancelled":                   func(_ *testing.T, _ *bundle, cancel context.CancelFunc, _ *stop) error { cancel(); return nil },
			"an error":                    func(*testing.T, *bundle, context.CancelFunc, *stop) error { return staging.ErrStorageUnavailable },
			"the process ended, and woke": func(_ *testing.T, _ *bundle, _ context.CancelFunc, s *stop) error { return s.wait() },
		} {
			t.Run(fmt.Sprintf("%s at %d", death, at), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				late := b.collected(t)
				b.storage.Put(t, keyOf(late), "back")
				b.fill(t, objects)
				cfg := func(cfg *gc.Config) { cfg.Batch, cfg.Silence = batch, silence }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := newStop(t)
				d := &deletes{Bucket: b.bucket, listed: func(n int, _ bool) error {
					if n == at {
						return die(t, b, cancel, s)
					}
					return nil
				}}
				p, err := b.collectorOn(d, scans, cfg).Begin(t.Context(), gc.Options{Scan: true})
				must(t, "begin", err)
				dying := async(func() error { return p.Run(ctx) })
				if strings.HasPrefix(death, "the process") {
					s.arrived(t)
				} else if err := await(t, "its end", dying); err == nil {
					t.Fatal("it did not die")
				}
				if got := b.found(t); got > at || got < at-batch {
					t.Errorf("%d were recorded at key %d", got, at)
				}
				if !strings.Contains(b.keys(t), keyOf(late)) {
					t.Error("something was deleted on the strength of half a listing")
				}

				b.db.Advance(t, silence+time.Second)
				listed := 0
				next := &deletes{Bucket: b.bucket, listed: func(n int, _ bool) error { listed = n; return nil }}
				run := scan(t, b.collectorOn(next, scans, cfg))
				s.letGo()
				if strings.HasPrefix(death, "the process") {
					if err := await(t, "its end", dying); !errors.Is(err, gc.ErrRunEnded) {
						t.Errorf("the one that woke ended in %v", err)
					}
				}
				if want := [4]int64{objects + 1, objects, 1, 0}; counts(t, run) != want || b.found(t) != objects {
					t.Errorf("keys, unknown, returned, foreign: %v with %d rows, want %v", counts(t, run), b.found(t), want)
				}
				if at > batch && listed > objects+1-at+batch {
					t.Errorf("the next pass listed %d keys, and not from where the first had come to (%d)", listed, at)
				}
			})
		}
	}
}

func TestOfTwoScansAtOnceOneIsUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fill(t, 4)
	s := newStop(t)
	d := &deletes{Bucket: b.bucket, listed: func(n int, _ bool) error {
		if n == 2 {
			return s.wait()
		}
		return nil
	}}
	p, err := b.collectorOn(d, scans).Begin(t.Context(), gc.Options{Scan: true})
	must(t, "begin", err)
	first := async(func() error { return p.Run(t.Context()) })
	s.arrived(t)
	for _, dry := range []bool{false, true} {
		if _, err := b.collector(scans).Begin(t.Context(), gc.Options{Scan: true, DryRun: dry}); !errors.Is(err, gc.ErrAlreadyRunning) {
			t.Errorf("a second began: %v", err)
		}
	}
	s.letGo()
	must(t, "the first", await(t, "the first", first))
	if n := b.found(t); n != 4 {
		t.Errorf("%d were found, want 4", n)
	}
}

// brokenListings are storages whose listing of 2500 keys cannot be relied on, or ends early.
var brokenListings = map[string]func(page int, status *int, answer string) string{
	"the token is dropped": func(_ int, _ *int, answer string) string {
		return regexp.MustCompile(`<NextContinuationToken>[^<]*</NextContinuationToken>`).ReplaceAllString(answer, "")
	},
	"the second page has the keys of the first": func(page int, _ *int, answer string) string {
		if page == 2 {
			return strings.ReplaceAll(answer, "/1.1/001", "/1.1/000")
		}
		return answer
	},
	"503 at the third page": func(page int, status *int, answer string) string {
		if page >= 3 {
			*status = http.StatusServiceUnavailable
			return ""
		}
		return answer
	},
	"the third page is cut off": func(page int, _ *int, answer string) string {
		if page >= 3 {
			return answer[:len(answer)/2]
		}
		return answer
	},
}

func TestAListingThatEndsEarlyLeadsToNoDelete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	late := b.collected(t)
	b.storage.Put(t, keyOf(late), "back")
	b.fill(t, 2500)
	for name, fault := range brokenListings {
		page := 0
		proxy := b.storage.Proxy(t)
		proxy.ModifyResponse = func(r *http.Response) error {
			if !r.Request.URL.Query().Has("list-type") {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			page++
			text := fault(page, &r.StatusCode, string(body))
			r.Body = io.NopCloser(bytes.NewReader([]byte(text)))
			r.ContentLength = int64(len(text))
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			return nil
		}
		d := &deletes{Bucket: b.storage.Behind(t, proxy).Open(t), sent: func(refs []staging.ObjectRef) { t.Errorf("%s: a delete was sent: %v", name, refs) }}
		b.db.Exec(t, "UPDATE gc_scan SET began_at = NULL, run_id = NULL, part = NULL, after_key = NULL")
		run, err := runScan(t.Context(), t, b.collectorOn(d, scans, instant), gc.Options{})
		if err == nil || run.ScanCompleted || run.Outcome == nil || *run.Outcome != "failed" || run.ScanReturned != 0 {
			t.Errorf("%s: ended in %v with %+v, want that it failed", name, err, run)
		}
	}
	if n := testdb.Value[int](t, b.db, "SELECT count(*) FROM gc_scan WHERE completed_at IS NOT NULL"); n != 0 {
		t.Error("a scan counts as complete")
	}
	run := scan(t, b.collector(scans, instant))
	if b.found(t) != 2500 || run.ScanReturned != 1 {
		t.Errorf("%d found and %d removed at the end, want 2500 and 1", b.found(t), run.ScanReturned)
	}
}

func TestAListingOfOneKeyAPageIsWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	late := b.collected(t)
	b.storage.Put(t, keyOf(late), "back")
	for range 2 {
		b.storage.BeginUpload(t, keyOf(nameOf("may", "1.1", "upload")))
		b.storage.BeginUpload(t, keyOf(nameOf("june", "1.1", "upload")))
	}
	b.fill(t, 30)
	d := &deletes{Bucket: b.storage.Behind(t, b.storage.Resigning(t, testbucket.PagesOf("1"))).Open(t)}
	if run := scan(t, b.collectorOn(d, scans, instant)); counts(t, run) != [4]int64{31, 32, 1, 0} {
		t.Errorf("keys, unknown, returned, foreign: %v, want 31, 32, 1, 0", counts(t, run))
	}
}
