package staging_test

import (
	"errors"
	"testing"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/staging"
)

func TestABucketBelongsToOneCatalogAlone(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	one, other := testdb.New(t), testdb.New(t)
	for range 2 { // as at the first start, and at every later one
		if err := staging.Claim(t.Context(), one.Pool, storage.Open(t)); err != nil {
			t.Fatalf("claim for the first catalog: %v", err)
		}
	}
	if err := staging.Claim(t.Context(), other.Pool, storage.Open(t)); !errors.Is(err, staging.ErrForeignBucket) {
		t.Errorf("claim for another catalog: %v, want ErrForeignBucket", err)
	}

	elsewhere := storage.Config
	elsewhere.Prefix = "other/"
	bucket, err := staging.OpenBucket(t.Context(), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if err := staging.Claim(t.Context(), other.Pool, bucket); err != nil {
		t.Errorf("claim for another catalog under a prefix of its own: %v", err)
	}
}

func TestOfTwoCatalogsThatClaimABucketAtOnceOneGetsIt(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	claims := make(chan error, 8)
	for range cap(claims) {
		db := testdb.New(t)
		go func() { claims <- staging.Claim(t.Context(), db.Pool, storage.Open(t)) }()
	}
	won := 0
	for range cap(claims) {
		switch err := <-claims; {
		case err == nil:
			won++
		case !errors.Is(err, staging.ErrForeignBucket):
			t.Errorf("claim: %v, want ErrForeignBucket", err)
		}
	}
	if won != 1 {
		t.Errorf("%d catalogs got the bucket, want one", won)
	}
}

// With two buckets for one catalog, the objects of either would be missing to whoever looks into the other.
func TestACatalogTakesNoSecondBucketButACopyOfItsOwn(t *testing.T) {
	t.Parallel()
	db, first, second := testdb.New(t), testbucket.New(t), testbucket.New(t)
	claim := func(storage *testbucket.Bucket) error { return staging.Claim(t.Context(), db.Pool, storage.Open(t)) }
	if err := claim(first); err != nil {
		t.Fatal(err)
	}
	if err := claim(second); !errors.Is(err, staging.ErrSecondBucket) {
		t.Errorf("an empty bucket: %v, want ErrSecondBucket", err)
	}
	if keys := second.Keys(t); len(keys) != 0 {
		t.Errorf("the refused bucket holds %q", keys)
	}
	if err := claim(first); err != nil {
		t.Errorf("the first bucket, again: %v", err)
	}
	second.Put(t, "owner", first.Get(t, "owner")) // as a copy of all objects has it
	for range 2 {
		if err := claim(second); err != nil {
			t.Errorf("a copy in the place of the first: %v", err)
		}
	}
}
