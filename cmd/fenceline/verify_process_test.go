package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// publishMany makes so many versions of july, all of which can be downloaded.
func publishMany(t *testing.T, s *testservice.Service, n int) {
	t.Helper()
	var puts errgroup.Group
	puts.SetLimit(8)
	for i := range n {
		puts.Go(func() error {
			s.Storage.Put(t, fmt.Sprintf("reports/july/1.1/o%d", i), "hello")
			return nil
		})
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	etag, _ := s.Storage.Put(t, "reports/july/1.1/o0", "hello")
	s.DB.Exec(t, fmt.Sprintf(`
		DO $do$
		BEGIN
			PERFORM acquire('july', 'a7', 'A', 600000);
			FOR n IN 0..%d LOOP
				PERFORM reserve('july', 1, 1, 'o' || n, '', NULL, NULL, NULL, NULL, 3600000, 86400000, 'test');
				PERFORM seal('july', 1, 1, 'o' || n, 5, sha256('hello'), '%s', NULL, 86400000);
				PERFORM publish(jsonb_build_array(jsonb_build_object('report', 'july', 'epoch', 1, 'counter', 1,
					'object_id', 'o' || n, 'idempotency_key', 'k' || n, 'expected_version', n)));
			END LOOP;
		END
		$do$`, n-1, etag))
	if versions := testdb.Value[int](t, s.DB, "SELECT count(*) FROM publication"); versions != n {
		t.Fatalf("%d versions were published, want %d", versions, n)
	}
}

// counted is the storage with its requests for objects counted; from the one that is the last on it says nothing.
type counted struct {
	*testbucket.Bucket
	mu      sync.Mutex
	times   map[string]int
	all     int
	reached chan struct{}
}

func count(t *testing.T, storage *testbucket.Bucket, last int) *counted {
	c := &counted{times: map[string]int{}, reached: make(chan struct{})}
	next, ended := storage.Proxy(t), make(chan struct{})
	c.Bucket = storage.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/reports/") {
			c.mu.Lock()
			c.times[r.URL.Path]++
			c.all++
			n := c.all
			c.mu.Unlock()
			if n == last {
				close(c.reached)
			}
			if n >= last && last > 0 {
				select {
				case <-ended:
				case <-r.Context().Done():
				}
				return
			}
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(ended) })
	return c
}

func (c *counted) await(t *testing.T) {
	t.Helper()
	select {
	case <-c.reached:
	case <-time.After(patience):
		t.Fatal("it does not get so far")
	}
}

func TestAVerificationThatIsKilledGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	const versions, half = 2500, 1250
	s := testservice.Start(t)
	publishMany(t, s, versions)
	s.Storage.Delete(t, "reports/july/1.1/o1") // the second in order
	s.Storage.Delete(t, "reports/july/1.1/o999")

	first := count(t, s.Storage, half)
	killed := start(t, verifySettings(s.DB, first.Bucket), "verify")
	first.await(t)
	killed.signal(t, syscall.SIGKILL)
	_ = killed.Wait() // it was killed

	noted := testdb.Value[int](t, s.DB, "SELECT objects FROM verify_run")
	if noted < half-150 || noted > half {
		t.Errorf("%d objects were noted before the kill", noted)
	}
	s.DB.Advance(t, time.Minute) // by which it counts as dead
	second := count(t, s.Storage, 0)
	resumed := start(t, verifySettings(s.DB, second.Bucket), "verify")
	resumed.ends(t, 9, "verification 1 goes on where it stopped", fmt.Sprintf("%d objects have been looked at", noted), "2 of 2500 objects")
	if out := resumed.out(); strings.Count(out, "MISSING: july") != 2 || !strings.Contains(out, "verification 1 completed: 2500 objects (12500 bytes), 2 faults") {
		t.Errorf("it printed %q", out)
	}
	if want := versions - noted; len(second.times) != want {
		t.Errorf("%d objects were asked for after %d were noted, want %d", len(second.times), noted, want)
	}
	for path, times := range second.times {
		if times != 1 && !strings.HasSuffix(path, "/o999") { // what is missing is looked at twice
			t.Errorf("%s was asked for %d times", path, times)
		}
	}
	all := map[string]bool{}
	for _, c := range []*counted{first, second} {
		for path := range c.times {
			all[path] = true
		}
	}
	if len(all) != versions {
		t.Errorf("%d objects were asked for in all, want %d", len(all), versions)
	}
}

func TestAVerificationThatIsInterruptedSaysSoAndMakesRoom(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	publishMany(t, s, 300)
	storage := count(t, s.Storage, 150)
	interrupted := start(t, verifySettings(s.DB, storage.Bucket), "verify")
	storage.await(t)

	second := start(t, verifySettings(s.DB, s.Storage), "verify", "--restart")
	second.ends(t, 5, "counts as under way: waiting", "a verification is under way: number 1")

	interrupted.signal(t, syscall.SIGINT)
	interrupted.ends(t, 130, "interrupted", "goes on from there")
	if out := interrupted.out(); !strings.Contains(out, "verification 1 stopped: ") || !strings.Contains(out, " of 300 objects") {
		t.Errorf("it printed %q", out)
	}
	start(t, verifySettings(s.DB, s.Storage), "verify").ends(t, 0, "verification 1 goes on")
	anew := fenceline(t, verifySettings(s.DB, s.Storage), "verify").ends(t, 0, "verification 2 completed: 300 objects")
	if strings.Contains(anew.Remark, "goes on") {
		t.Errorf("what was completed was gone on with: %s", anew.Remark)
	}
}

func TestReadingALargeObjectTakesNoMemory(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	s := testservice.Start(t)
	fence := s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
	key := s.Do(t, "PUT", "/v1/reports/july/objects/"+fence+"/data", map[string]any{}).Want(t, 201).String(t, "key")
	s.Storage.Put(t, key, strings.Repeat("0123456789abcdef", size/16))
	s.Do(t, "POST", "/v1/reports/july/publications", map[string]any{"fence": fence, "object_id": "data"}, "Idempotency-Key", "k1").Want(t, 201)

	peak := func(args ...string) int64 {
		r := start(t, verifySettings(s.DB, s.Storage), append([]string{"verify"}, args...)...)
		r.ends(t, 0)
		if out := r.out(); !strings.Contains(out, "1 objects (67108864 bytes") {
			t.Errorf("it printed %q", out)
		}
		return r.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	}
	if asked, read := peak(), peak("--deep"); read > asked+size/2 {
		t.Errorf("reading %d bytes took %d bytes of memory more than asking for them", size, read-asked)
	}
}
