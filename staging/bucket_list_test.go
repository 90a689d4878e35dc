package staging_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestKeysAreListedInByteOrderAndUnderThePrefixAlone(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	want := []string{"reports/a-b/1.1/x", "reports/a.b/1.1/x", "reports/a/1.1/x", "reports/a/1.10/x", "reports/a/1.2/x", "reports/a0/1.1/x"}
	for _, key := range append([]string{"epochs/1", "report", "reportsx/a/1.1/x"}, want...) {
		storage.Put(t, key, "x")
	}
	var got []string
	for key, err := range storage.Open(t).Keys(t.Context(), "reports/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestAListingThatCannotBeHadEndsInAnError(t *testing.T) {
	t.Parallel()
	missing := testbucket.New(t).Config
	missing.Bucket += "-missing"
	bucket, err := staging.OpenBucket(t.Context(), missing)
	if err != nil {
		t.Fatal(err)
	}
	var failures []error
	for _, err := range bucket.Keys(t.Context(), "reports/") {
		failures = append(failures, err)
	}
	if len(failures) != 1 || failures[0] == nil || errors.Is(failures[0], staging.ErrNoBytes) {
		t.Errorf("listed %v", failures)
	}
}
