package staging_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/staging"
)

func TestProbePassesAStorageThatKeepsItsWord(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*testbucket.Bucket{
		"without versions": testbucket.New(t),
		"with versions":    testbucket.NewVersioned(t),
	} {
		b.Config.Prefix = "team/"
		bucket := b.Open(t)
		if err := bucket.ProbeConditionalCreate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := b.Versions(t); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

func TestProbeFindsAStorageThatOverwrites(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bucket      *testbucket.Bucket
		first, last int32 // of the 21 creates, those that are treated so
		status      int
	}{
		"always":                    {testbucket.NewVersioned(t), 1, 21, http.StatusOK},
		"only in a race":            {testbucket.New(t), 1, 20, http.StatusOK},
		"but not in a race":         {testbucket.NewVersioned(t), 21, 21, http.StatusOK},
		"and says that it does not": {testbucket.New(t), 21, 21, http.StatusPreconditionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage := tc.bucket.Overwriting(t, tc.first, tc.last, tc.status)
			err := tc.bucket.Behind(t, storage).Open(t).ProbeConditionalCreate(t.Context())
			if !errors.Is(err, staging.ErrOverwrites) {
				t.Errorf("got error %v, want ErrOverwrites", err)
			}
			if left := tc.bucket.Versions(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestProbeFindsAStorageThatIgnoresCase(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	next := b.Proxy(t)
	folding := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && r.URL.Path == strings.ToLower(r.URL.Path) {
			w.Header().Set("ETag", `"the other one"`)
			return
		}
		next.ServeHTTP(w, r)
	})
	if err := b.Behind(t, folding).Open(t).ProbeConditionalCreate(t.Context()); !errors.Is(err, staging.ErrFoldsCase) {
		t.Errorf("got error %v, want ErrFoldsCase", err)
	}
	if left := b.Versions(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProbeThatWasDisturbedProvesNothing(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	var creates atomic.Int32
	proxy := b.Proxy(t)
	bucket := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && creates.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})).Open(t)
	err := bucket.ProbeConditionalCreate(t.Context())
	if !errors.Is(err, staging.ErrStorageUnavailable) || errors.Is(err, staging.ErrOverwrites) {
		t.Errorf("got error %v, want ErrStorageUnavailable alone", err)
	}
	if left := b.Versions(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProbeOfAStorageThatIsAwayProvesNothing(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	bucket := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})).Open(t)
	err := bucket.ProbeConditionalCreate(t.Context())
	if !errors.Is(err, staging.ErrStorageUnavailable) || errors.Is(err, staging.ErrOverwrites) {
		t.Errorf("got error %v, want ErrStorageUnavailable alone", err)
	}
}

func TestProbeTakesAConflictForARefusal(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	var creates atomic.Int32
	proxy := b.Proxy(t)
	bucket := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && creates.Add(1) == 1 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		proxy.ServeHTTP(w, r)
	})).Open(t)
	if err := bucket.ProbeConditionalCreate(t.Context()); err != nil {
		t.Error(err)
	}
}
