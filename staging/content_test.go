package staging_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

// read reads an object, or a part of it, to the end or to the error at which it breaks off.
func (b *bundle) read(t testing.TB, name fencing.ObjectName, part staging.Range) (string, error) {
	t.Helper()
	body, err := b.objects.Open(t.Context(), name, part)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var got bytes.Buffer
	_, err = io.Copy(&got, body)
	return got.String(), err
}

func TestOpenGivesTheWholeOrAPart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := strings.Repeat("0123456789", 100_000)
	name := b.sealed(t, body)
	for what, tc := range map[string]struct {
		part staging.Range
		want string
	}{
		"the whole":       {staging.Range{}, body},
		"from the middle": {staging.Range{Offset: 999_990}, body[999_990:]},
		"a middle part":   {staging.Range{Offset: 5, Length: 7}, body[5:12]},
		"the first byte":  {staging.Range{Length: 1}, body[:1]},
		"over the end":    {staging.Range{Offset: 999_995, Length: 100}, body[999_995:]},
	} {
		got, err := b.read(t, name, tc.part)
		if err != nil || got != tc.want {
			t.Errorf("%s: %d bytes, error %v; want %d bytes", what, len(got), err, len(tc.want))
		}
	}
}

func TestBytesThatWereChangedBehindTheServiceAreAnErrorAndNotRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *testbucket.Bucket, string){
		"others, as many": func(t *testing.T, s *testbucket.Bucket, key string) { s.Put(t, key, "others") },
		"fewer":           func(t *testing.T, s *testbucket.Bucket, key string) { s.Put(t, key, "few") },
		"more":            func(t *testing.T, s *testbucket.Bucket, key string) { s.Put(t, key, "sealed and more") },
		"none":            func(t *testing.T, s *testbucket.Bucket, key string) { s.Delete(t, key) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			object := b.sealed(t, "sealed")
			change(t, b.storage, "reports/july/"+object.Fence.String()+"/july.csv")
			for _, part := range []staging.Range{{}, {Offset: 1, Length: 1}} {
				got, err := b.read(t, object, part)
				if !errors.Is(err, staging.ErrDamaged) || got != "" {
					t.Errorf("read was %q, error %v; want nothing, and that it is damaged", got, err)
				}
			}
		})
	}
}

func TestOnAVersionedBucketReadersGetTheSealedVersion(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testbucket.NewVersioned(t))
	name := b.sealed(t, "sealed")
	must(t, "publish", b.publish(t.Context(), name))
	key := "reports/july/" + name.Fence.String() + "/july.csv"
	b.storage.Put(t, key, "newer!")
	if got, err := b.read(t, name, staging.Range{}); err != nil || got != "sealed" {
		t.Errorf("read was %q, error %v; want what was sealed", got, err)
	}
	download, _, err := b.objects.PresignDownload(t.Context(), name)
	must(t, "sign a download", err)
	if got, _ := fetch(t, download.URL); got != "sealed" {
		t.Errorf("downloaded was %q, want what was sealed", got)
	}
	b.storage.Delete(t, key) // leaves a marker before both
	if got, err := b.read(t, name, staging.Range{}); err != nil || got != "sealed" {
		t.Errorf("read was %q behind a delete marker, error %v; want what was sealed", got, err)
	}
	b.nextEpoch(t)
	o, err := b.objects.Seal(t.Context(), name)
	must(t, "look at it again in a new epoch", err)
	if o.SHA256 != sum("sealed") {
		t.Errorf("sealed again it is %+v, want the sealed version", o)
	}
}

// TestTheEndOfBytesThatAreNotTheSealedOnesIsWithheld has the row tell another digest, or another size, than the
// bytes have whose ETag it tells: as if the storage gave other bytes under the same ETag.
func TestTheEndOfBytesThatAreNotTheSealedOnesIsWithheld(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789abcdef", 1<<16)
	for name, tc := range map[string]struct {
		size   int
		digest string
		want   error
	}{
		"the sealed ones": {len(body), sum(body), nil},
		"another digest":  {len(body), sum("other"), staging.ErrDamaged},
		"fewer":           {len(body) + 1, sum(body), staging.ErrDamaged},
		"more":            {len(body) - 1, sum(body), staging.ErrDamaged},
		"none expected":   {0, sum(""), staging.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := b.grant(t, "july")
			object := fencing.ObjectName{Report: "july", Fence: g.Fence, Object: "made"}
			etag, _ := b.storage.Put(t, "reports/july/"+g.Fence.String()+"/made", body)
			digest, err := hex.DecodeString(tc.digest)
			must(t, "decode the digest", err)
			b.db.Exec(t, `
				INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, reserved_at, upload_until, eligible_at)
				VALUES ('july', $1, $2, 'made', '', 'reserved', fenceline_now(), fenceline_now(), fenceline_now())`,
				g.Fence.Epoch, g.Fence.Counter)
			b.db.Exec(t, `
				UPDATE object SET state = 'sealed', size = $1, sha256 = $2, etag = $3, sealed_at = fenceline_now(), checked_epoch = 1
				WHERE object_id = 'made'`, tc.size, digest, etag)
			got, err := b.read(t, object, staging.Range{})
			if !errors.Is(err, tc.want) {
				t.Errorf("the read ended in %v, want %v", err, tc.want)
			}
			if whole := len(got) == len(body); whole != (tc.want == nil) {
				t.Errorf("%d of %d bytes were passed on", len(got), len(body))
			}
		})
	}
}

func TestOnlyWhatIsSealedIsRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name, r := b.reserved(t, staging.Declaration{})
	if status := send(t, r.Upload, "x"); status != http.StatusOK {
		t.Fatalf("the upload was answered %d", status)
	}
	_, err := b.read(t, name, staging.Range{})
	wantError(t, err, fencing.ErrObjectGone)
	_, _, err = b.objects.PresignDownload(t.Context(), name)
	wantError(t, err, fencing.ErrObjectGone)

	_, err = b.objects.Discard(t.Context(), name)
	must(t, "discard", err)
	_, err = b.read(t, name, staging.Range{})
	wantError(t, err, fencing.ErrObjectGone)
	name.Object = "forgotten" // or never known: a version that shows it has outlived its tombstone
	_, err = b.read(t, name, staging.Range{})
	wantError(t, err, fencing.ErrObjectGone)
}
