package staging_test

import (
	"errors"
	"io"
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
			storage := &overwritingStorage{
				t: t, bucket: tc.bucket, next: proxyTo(t, tc.bucket),
				first: tc.first, last: tc.last, status: tc.status,
			}
			err := behind(t, tc.bucket, storage).ProbeConditionalCreate(t.Context())
			if !errors.Is(err, staging.ErrOverwrites) {
				t.Errorf("got error %v, want ErrOverwrites", err)
			}
			if left := tc.bucket.Versions(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestProbeThatWasDisturbedProvesNothing(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	var creates atomic.Int32
	proxy := proxyTo(t, b)
	bucket := behind(t, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && creates.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
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
	bucket := behind(t, b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	err := bucket.ProbeConditionalCreate(t.Context())
	if !errors.Is(err, staging.ErrStorageUnavailable) || errors.Is(err, staging.ErrOverwrites) {
		t.Errorf("got error %v, want ErrStorageUnavailable alone", err)
	}
}

func TestProbeTakesAConflictForARefusal(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	var creates atomic.Int32
	proxy := proxyTo(t, b)
	bucket := behind(t, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && creates.Add(1) == 1 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	if err := bucket.ProbeConditionalCreate(t.Context()); err != nil {
		t.Error(err)
	}
}

// overwritingStorage is a storage that, for some of the creates, writes whatever
// the condition says. It writes with its own credentials: the condition is part
// of the client's signature.
type overwritingStorage struct {
	t           *testing.T
	bucket      *testbucket.Bucket
	next        http.Handler
	creates     atomic.Int32
	first, last int32
	status      int
}

func (s *overwritingStorage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		s.next.ServeHTTP(w, r)
		return
	}
	if n := s.creates.Add(1); n < s.first || n > s.last {
		s.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("read create: %v", err)
	}
	etag, version := s.bucket.Put(s.t, strings.TrimPrefix(r.URL.Path, "/"+s.bucket.Config.Bucket+"/"), string(body))
	w.Header().Set("ETag", etag)
	if version != "" {
		w.Header().Set("X-Amz-Version-Id", version)
	}
	w.WriteHeader(s.status)
}
