package staging_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/fencing"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestSealWritesDownWhatIsThere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		declared staging.Declaration
		put      func(*testing.T, *bundle, staging.Reservation)
	}{
		"uploaded as declared": {
			staging.Declaration{Size: new(int64(4)), SHA256: sum("a,b\n")},
			func(t *testing.T, _ *bundle, r staging.Reservation) { send(t, r.Upload, "a,b\n") },
		},
		"nothing was declared, and the bytes are read": {
			staging.Declaration{},
			func(t *testing.T, _ *bundle, r staging.Reservation) { send(t, r.Upload, "a,b\n") },
		},
		"the storage has a checksum of checksums, and the bytes are read": {
			staging.Declaration{SHA256: sum("a,b\n")},
			func(t *testing.T, b *bundle, r staging.Reservation) { b.storage.PutMultipart(t, r.Key, "a,b\n") },
		},
		"put with credentials of the worker's own": {
			staging.Declaration{Size: new(int64(4))},
			func(t *testing.T, b *bundle, r staging.Reservation) { b.storage.Put(t, r.Key, "a,b\n") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			object, r := b.reserved(t, tc.declared)
			tc.put(t, b, r)
			first, err := b.objects.Seal(t.Context(), object)
			must(t, "seal", err)
			if first.State != staging.Sealed || *first.Size != 4 || first.SHA256 != sum("a,b\n") || first.ETag == "" {
				t.Errorf("sealed was %+v, want 4 bytes and their digest", first)
			}
			again, err := b.objects.Seal(t.Context(), object)
			must(t, "seal again", err)
			if *again.Size != *first.Size || again.SHA256 != first.SHA256 || again.ETag != first.ETag {
				t.Errorf("sealed again it is %+v, want the same", again)
			}
		})
	}
}

func TestTheTimeForASealGrowsWithItsObject(t *testing.T) {
	t.Parallel()
	const slow = 6_000_000 // bytes a second
	for _, size := range []int64{0, 1 << 30, 20 << 30, staging.MaxObjectSize} {
		if limit := staging.ReadLimit(size); limit.Seconds()*slow < float64(size) || limit < 15*time.Minute || limit > staging.LongestSeal {
			t.Errorf("%d bytes may take %v, of at most %v", size, limit, staging.LongestSeal)
		}
	}
}

func TestAnEmptyObjectIsSealedAndRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name, r := b.reserved(t, staging.Declaration{Size: new(int64(0)), SHA256: sum("")})
	if status := send(t, r.Upload, ""); status != http.StatusOK {
		t.Fatalf("the upload was answered %d", status)
	}
	o, err := b.objects.Seal(t.Context(), name)
	must(t, "seal", err)
	if *o.Size != 0 || o.SHA256 != sum("") {
		t.Errorf("sealed was %+v, want nothing and its digest", o)
	}
	if body, err := b.read(t, name, staging.Range{}); err != nil || body != "" {
		t.Errorf("read was %q, error %v; want nothing", body, err)
	}
}

func TestSealRefusesBytesThatAreNotThereOrNotTheDeclaredOnes(t *testing.T) {
	t.Parallel()
	const bytes = "a,b\n"
	size := staging.Declaration{Size: new(int64(len(bytes)))}
	digest := staging.Declaration{SHA256: sum(bytes)}
	both := staging.Declaration{Size: size.Size, SHA256: digest.SHA256}
	for name, tc := range map[string]struct {
		declared staging.Declaration
		body     string // empty: none is put
		want     error
	}{
		"no bytes":                                  {both, "", staging.ErrIncomplete},
		"no bytes, and nothing declared":            {staging.Declaration{}, "", staging.ErrIncomplete},
		"fewer than the declared size":              {size, "a,b", staging.ErrMismatch},
		"more than the declared size":               {size, "a,b\nc", staging.ErrMismatch},
		"another digest than the declared one":      {digest, "a,c\n", staging.ErrMismatch},
		"fewer than declared, with another digest":  {both, "a,b", staging.ErrMismatch},
		"as many as declared, with another digest":  {both, "a,c\n", staging.ErrMismatch},
		"the declared ones, which are no fault":     {both, bytes, nil},
		"as many as declared, which are no fault":   {size, "a,c\n", nil},
		"any, where nothing was declared, no fault": {staging.Declaration{}, "a,c\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			object, r := b.reserved(t, tc.declared)
			if tc.body != "" {
				b.storage.Put(t, r.Key, tc.body)
			}
			_, err := b.objects.Seal(t.Context(), object)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			wantError(t, b.publish(t.Context(), object), tc.want)
			if tc.want == nil {
				return
			}
			b.wantState(t, object, staging.Reserved)
			mismatch, ok := errors.AsType[*staging.MismatchError](err)
			if ok != errors.Is(tc.want, staging.ErrMismatch) {
				t.Errorf("the error %v does not tell what was expected", err)
			}
			if ok && (mismatch.Expected.SHA256 != tc.declared.SHA256 || *mismatch.Actual.Size != int64(len(tc.body))) {
				t.Errorf("the mismatch tells %v", mismatch)
			}
		})
	}
}

func TestSealOfWhatIsGoneOrUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name := b.sealed(t, "x")
	_, err := b.objects.Discard(t.Context(), name)
	must(t, "discard", err)
	_, err = b.objects.Seal(t.Context(), name)
	wantError(t, err, fencing.ErrObjectGone)
	name.Object = "other"
	_, err = b.objects.Seal(t.Context(), name)
	wantError(t, err, fencing.ErrObjectNotFound)
}

// TestSealAndDiscardHaveAnOrder has a seal, which has looked at the bytes already, wait at the report's lock.
func TestSealAndDiscardHaveAnOrder(t *testing.T) {
	t.Parallel()
	for _, sealFirst := range []bool{true, false} {
		b := setup(t)
		name, r := b.reserved(t, staging.Declaration{})
		send(t, r.Upload, "x")
		letGo := b.db.HoldReport(t, "july")
		sealing, discarding := make(chan error, 1), make(chan error, 1)
		both := []func(){
			func() { _, err := b.objects.Seal(t.Context(), name); sealing <- err },
			func() { _, err := b.objects.Discard(t.Context(), name); discarding <- err },
		}
		if !sealFirst {
			// It looks at the object first, without a lock, and then has to find it condemned under the lock.
			both[0], both[1] = both[1], both[0]
		}
		for i, call := range both {
			go call()
			b.db.AwaitWaiting(t, i+1)
		}
		letGo()
		must(t, "discard", <-discarding)
		if err := <-sealing; sealFirst {
			must(t, "seal", err)
		} else {
			wantError(t, err, fencing.ErrObjectGone)
		}
		b.wantState(t, name, staging.Condemned)
	}
}

// TestTwoSealsOfOtherBytesAgreeOnOne changes the bytes between the looks of two seals at them.
func TestTwoSealsOfOtherBytesAgreeOnOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name, r := b.reserved(t, staging.Declaration{})
	letGo := b.db.HoldReport(t, "july")
	ended := []chan error{make(chan error, 1), make(chan error, 1)}
	for i, body := range []string{"first", "other"} {
		b.storage.Put(t, r.Key, body)
		go func() {
			_, err := b.objects.Seal(t.Context(), name)
			ended[i] <- err
		}()
		b.db.AwaitWaiting(t, i+1)
	}
	letGo()
	must(t, "seal", <-ended[0])
	wantError(t, <-ended[1], staging.ErrMismatch)
	_, err := b.read(t, name, staging.Range{})
	wantError(t, err, staging.ErrDamaged)
}

func TestInANewEpochTheBytesAreLookedAtBeforeTheyAreShown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*testing.T, *testbucket.Bucket, string)
		want   error
	}{
		"unchanged":     {func(*testing.T, *testbucket.Bucket, string) {}, nil},
		"other bytes":   {func(t *testing.T, s *testbucket.Bucket, key string) { s.Put(t, key, "other") }, staging.ErrMismatch},
		"more bytes":    {func(t *testing.T, s *testbucket.Bucket, key string) { s.Put(t, key, "first and more") }, staging.ErrMismatch},
		"no bytes left": {func(t *testing.T, s *testbucket.Bucket, key string) { s.Delete(t, key) }, fencing.ErrObjectGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first := b.sealed(t, "first")
			must(t, "publish", b.publish(t.Context(), first))
			g := first.Fence
			_, err := b.catalog.Publish(t.Context(), catalog.Request{
				Report: "july", Fence: g, Withdraw: true, IdempotencyKey: "withdraw", ExpectedVersion: new(int64(1)),
			})
			must(t, "withdraw", err)
			tc.change(t, b.storage, "reports/july/"+g.String()+"/july.csv")
			b.nextEpoch(t)

			_, err = b.catalog.Publish(t.Context(), catalog.Request{
				Report: "july", Fence: g, FromVersion: 1, IdempotencyKey: "back", ExpectedVersion: new(int64(2)),
			})
			if !errors.Is(err, tc.want) {
				t.Errorf("the roll-back ended in %v, want %v", err, tc.want)
			}
			if visible, err := b.catalog.Visible(t.Context(), "july"); (err == nil) != (tc.want == nil) {
				t.Errorf("visible is %+v, error %v", visible, err)
			}
		})
	}
}

func TestSealIsUnavailableWhileTheDatabaseIsInDoubt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	name, r := b.reserved(t, staging.Declaration{})
	send(t, r.Upload, "x")
	b.db.Exec(t, "VACUUM FULL report")
	_, err := b.objects.Seal(t.Context(), name)
	wantError(t, err, database.ErrEpochInDoubt)
	_, err = b.objects.Discard(t.Context(), name)
	wantError(t, err, database.ErrEpochInDoubt)
}
