package verify_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/verify"
	"github.com/fenceline/fenceline/staging"
)

func TestWhatHappenedBehindTheServiceIsFoundAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(*testing.T, *bundle, published)
		fault   string
		found   verify.Stat
	}{
		"deleted":     {func(t *testing.T, b *bundle, p published) { b.storage.Delete(t, p.Key) }, "missing", verify.Stat{}},
		"truncated":   {func(t *testing.T, b *bundle, p published) { b.storage.Put(t, p.Key, p.Body[:3]) }, "size", verify.Stat{Size: new(int64(3))}},
		"emptied":     {func(t *testing.T, b *bundle, p published) { b.storage.Put(t, p.Key, "") }, "size", verify.Stat{Size: new(int64(0))}},
		"overwritten": {func(t *testing.T, b *bundle, p published) { b.storage.Put(t, p.Key, strings.ToUpper(p.Body)) }, "changed", verify.Stat{Size: new(int64(5))}},
	} {
		for _, deep := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.next(t, "june", "stays")
				p := b.next(t, "july", "hello")
				c.happens(t, b, p)
				before := b.storage.Keys(t)
				v := b.verifier()
				got := look(t, v, verify.Options{Deep: deep})
				b.wantFaults(t, v, got, "july [1] "+c.fault)
				wantPresent(t, v, 1)
				f := got.Findings[0]
				if f.Key != p.Key || !f.Visible || *f.Published.Size != 5 || f.Published.SHA256 != sum("hello") || f.Published.ETag == "" {
					t.Errorf("told was %+v", f)
				}
				if diff := cmp.Diff(c.found.Size, f.Found.Size); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
				if got.Objects != 2 || got.Bytes != 10 || *got.TotalObjects != 2 || *got.TotalBytes != 10 {
					t.Errorf("the record counts %+v", got.Record)
				}
				if diff := cmp.Diff(before, b.storage.Keys(t)); diff != "" {
					t.Errorf("the bucket was changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestOnAVersionedBucketThePublishedVersionCounts(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testbucket.NewVersioned(t))
	p, hidden := b.next(t, "july", "hello"), b.next(t, "june", "world")
	b.storage.Put(t, p.Key, "other bytes") // readers get the published version still
	b.storage.Delete(t, hidden.Key)        // and so they do below a delete marker
	v := b.verifier()
	b.wantFaults(t, v, look(t, v, verify.Options{Deep: true}))

	o, err := b.objects.Object(t.Context(), p.Name)
	must(t, "read the object", err)
	if o.VersionID == "" {
		t.Fatal("the bucket keeps no versions")
	}
	_, err = b.bucket.Delete(t.Context(), []staging.ObjectRef{{Key: p.Key, VersionID: o.VersionID}}, nil)
	must(t, "remove the version", err)
	b.wantFaults(t, v, look(t, v, verify.Options{}), "july [1] missing")
}

func TestWhatIsPutBackIsNoFaultAnyMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, other := b.next(t, "july", "hello"), b.next(t, "june", "world")
	b.storage.Delete(t, p.Key)
	b.storage.Delete(t, other.Key)
	v := b.verifier()
	first := look(t, v, verify.Options{})
	b.wantFaults(t, v, first, "july [1] missing", "june [1] missing")

	b.storage.Put(t, p.Key, p.Body)
	second := look(t, v, verify.Options{})
	b.wantFaults(t, v, second, "june [1] missing")
	wantPresent(t, v, 1)
	written, err := v.Findings(t.Context(), second.VerificationID, catalog.Names{}, verify.After{}, 10)
	must(t, "list the findings", err)
	if old, err := v.Findings(t.Context(), first.VerificationID, catalog.Names{}, verify.After{}, 10); err != nil || old[0].Present || old[1].Present || !written[0].Present {
		t.Errorf("first %+v, second %+v, %v: want the second one's alone to be present", old, written, err)
	} else if !written[0].FirstAt.Equal(old[1].FirstAt) || !written[0].FoundAt.After(old[1].FoundAt) {
		t.Errorf("what is seen again was first seen at %v, want %v", written[0].FirstAt, old[1].FirstAt)
	}

	b.storage.Put(t, other.Key, other.Body)
	b.wantFaults(t, v, look(t, v, verify.Options{}))
	wantPresent(t, v, 0)
}

func TestAFaultIsOverOnceTheCatalogNoLongerShowsTheObject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.next(t, "july", "hello")
	b.storage.Delete(t, p.Key)
	v := b.verifier()
	look(t, v, verify.Options{})
	b.next(t, "july", "anew")
	wantPresent(t, v, 1) // it can be downloaded still
	b.erase(t, p)
	wantPresent(t, v, 0)
	b.wantFaults(t, v, look(t, v, verify.Options{}))
}

// rotten is the bucket with other bytes than are shown by length and ETag, once rot is set.
func rotten(t *testing.T, b *bundle, rot *bool) *staging.Bucket {
	return b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet || !*rot || !strings.Contains(r.URL.Path, "/reports/") {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(strings.ToUpper(answer.Body.String()))) // who hung up needs no answer
	})
}

func TestBytesThatRotAreFoundByReadingThemAndOverOnlyByReadingThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.next(t, "july", "hello")
	rot := true
	v := b.verifierOn(rotten(t, b, &rot))
	b.wantFaults(t, v, look(t, v, verify.Options{}))
	got := look(t, v, verify.Options{Deep: true})
	b.wantFaults(t, v, got, "july [1] digest")
	if got.Findings[0].Found.SHA256 != sum("HELLO") {
		t.Errorf("found was %+v", got.Findings[0].Found)
	}
	look(t, v, verify.Options{}) // which cannot know
	wantPresent(t, v, 1)
	rot = false
	b.wantFaults(t, v, look(t, v, verify.Options{Deep: true}))
	wantPresent(t, v, 0)
}

func TestEachObjectIsLookedAtOnceHoweverManyVersionsShowIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.next(t, "july", "one")
	b.next(t, "july", "two")
	g := b.grant(t, "july")
	_, err := b.catalog.Publish(t.Context(), catalog.Request{Report: "july", Fence: g.Fence, FromVersion: 1, IdempotencyKey: uuid.NewString()})
	must(t, "roll back", err)
	// What nobody can download is nobody's loss.
	staged := fencing.ObjectName{Report: "july", Fence: g.Fence, Object: "staged"}
	reserved, err := b.objects.Reserve(t.Context(), staged, staging.Declaration{})
	must(t, "reserve", err)
	b.storage.Put(t, reserved.Key, "staged")
	_, err = b.objects.Seal(t.Context(), staged)
	must(t, "seal", err)
	b.storage.Delete(t, reserved.Key)
	b.storage.Delete(t, first.Key)

	var requests asked
	v := b.verifierOn(b.through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		requests.note(r)
		next.ServeHTTP(w, r)
	}))
	got := look(t, v, verify.Options{})
	b.wantFaults(t, v, got, "july [3 1] missing")
	if !got.Findings[0].Visible || got.Objects != 2 || len(requests.times) != 2 {
		t.Errorf("%+v, %v", got, requests.times)
	}
}

func TestARunOverSomeReportsSaysNothingOfTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, report := range []fencing.ReportID{"sales.a", "sales", "sales.b", "salesx"} {
		b.storage.Delete(t, b.next(t, report, "hello").Key)
	}
	v := b.verifier()
	look(t, v, verify.Options{})
	wantPresent(t, v, 4)
	sales := verify.Options{Pattern: "sales.*", Names: catalog.Names{From: "sales.", Below: "sales/"}}
	got := look(t, v, sales)
	b.wantFaults(t, v, got, "sales.a [1] missing", "sales.b [1] missing")
	if got.Objects != 2 || *got.TotalObjects != 2 {
		t.Errorf("the record counts %+v", got.Record)
	}
	wantPresent(t, v, 4)
	s, err := v.Situation(t.Context())
	must(t, "read the situation", err)
	if all := testTime(t, b, 1); s.LastCompletedAt == nil || !s.LastCompletedAt.Equal(all) || s.DeepLastCompletedAt != nil {
		t.Errorf("the last look at everything was at %v, deep at %v; want %v and never", s.LastCompletedAt, s.DeepLastCompletedAt, all)
	}
}

// testTime is when a run ended.
func testTime(t testing.TB, b *bundle, id int64) time.Time {
	t.Helper()
	r, err := b.verifier().Record(t.Context(), id)
	must(t, "read the record", err)
	return *r.FinishedAt
}
