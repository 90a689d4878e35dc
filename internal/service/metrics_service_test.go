package service_test

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/gc"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/internal/testservice"
)

// ofTheCollector picks what a scrape shows of the collector, but for the time of its last success.
func ofTheCollector(series map[string]float64) map[string]float64 {
	got := map[string]float64{}
	for _, name := range []string{
		`fenceline_collector_objects_total{action="condemned"}`, `fenceline_collector_objects_total{action="deleted"}`,
		`fenceline_collector_objects_total{action="put_off"}`, `fenceline_collector_objects_total{action="delete_failed"}`,
		`fenceline_collector_objects_total{action="braked"}`, `fenceline_collector_deleted_bytes_total`,
		`fenceline_collector_passes_total{outcome="completed"}`, `fenceline_collector_passes_total{outcome="failed"}`, `fenceline_collector_passes_total{outcome="paused"}`,
		`fenceline_collector_passes_total{outcome="stopped"}`, `fenceline_collector_running`, `fenceline_collector_paused`,
	} {
		if value := series[name]; value != 0 {
			got[name] = value
		}
	}
	return got
}

// pass runs a pass of the collector, and returns the error that it ends with.
func pass(t testing.TB, s *testservice.Service, o gc.Options) error {
	t.Helper()
	p, err := s.Collector.Begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Run(t.Context())
}

func TestThePassesOfTheCollectorAreCounted(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t, func(c *service.Config) { c.Metrics = true })
	fence := s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
	key := s.Do(t, "PUT", "/v1/reports/july/objects/"+fence+"/july.csv", map[string]any{"size": 5}).Want(t, 201).String(t, "key")
	s.Storage.Put(t, key, "hello")
	wantSeries := func(when string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, ofTheCollector(s.Series(t))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	if _, told := s.Series(t)["fenceline_collector_last_success_timestamp_seconds"]; told {
		t.Error("before any pass there is a last success")
	}

	s.DB.Advance(t, 25*time.Hour)
	if err := pass(t, s, gc.Options{By: "test", DryRun: true}); err != nil {
		t.Fatal(err)
	}
	wantSeries("after a dry run", map[string]float64{})
	if _, told := s.Series(t)["fenceline_collector_last_success_timestamp_seconds"]; told {
		t.Error("a dry run is shown as a success")
	}
	if err := pass(t, s, gc.Options{By: "test"}); err != nil {
		t.Fatal(err)
	}
	wantSeries("after the first pass", map[string]float64{
		`fenceline_collector_objects_total{action="condemned"}`: 1, `fenceline_collector_passes_total{outcome="completed"}`: 1,
	})
	s.DB.Advance(t, 25*time.Hour)
	if err := pass(t, s, gc.Options{By: "test"}); err != nil {
		t.Fatal(err)
	}
	collected := map[string]float64{
		`fenceline_collector_objects_total{action="condemned"}`: 1, `fenceline_collector_objects_total{action="deleted"}`: 1,
		`fenceline_collector_deleted_bytes_total`: 5, `fenceline_collector_passes_total{outcome="completed"}`: 2,
	}
	wantSeries("after the second pass", collected)

	last := testdb.Value[float64](t, s.DB, `SELECT extract(epoch FROM max(finished_at))::float8 FROM gc_run`)
	// Another instance shows the same time, and counts only what it did itself.
	other := testservice.StartOn(t, s.DB, func(c *service.Config) { c.Metrics, c.Bucket = true, s.Storage.Config })
	for name, instance := range map[string]*testservice.Service{"the one that ran it": s, "another": other} {
		if got := instance.Series(t)["fenceline_collector_last_success_timestamp_seconds"]; got < last-0.01 || got > last+0.01 {
			t.Errorf("%s shows the last success at %v, want %v", name, got, last)
		}
	}
	if diff := cmp.Diff(map[string]float64{}, ofTheCollector(other.Series(t))); diff != "" {
		t.Errorf("another instance (-want +got):\n%s", diff)
	}

	p, err := s.Collector.Begin(t.Context(), gc.Options{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	collected[`fenceline_collector_running`] = 1
	wantSeries("while a pass is under way", collected)
	s.Do(t, "POST", "/v1/gc/pause", nil).Want(t, 200)
	if err := p.Run(t.Context()); err == nil {
		t.Error("a pass went on while the collector was paused")
	}
	delete(collected, `fenceline_collector_running`)
	collected[`fenceline_collector_paused`], collected[`fenceline_collector_passes_total{outcome="paused"}`] = 1, 1
	wantSeries("while it is paused", collected)
}

func TestADoubtedIdentityAndFreezesShowInTheMetrics(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t, func(c *service.Config) { c.Metrics, c.API.Version = true, "v1.2.3" })
	s.Do(t, "POST", "/v1/freeze", map[string]any{"pattern": "july"}).Want(t, 200)
	series := s.Series(t)
	for name, want := range map[string]float64{
		"fenceline_epoch_verified": 1, "fenceline_database_up": 1, "fenceline_freezes": 1,
		`fenceline_build_info{version="v1.2.3"}`: 1, "fenceline_database_pool_max_connections": 20,
	} {
		if series[name] != want {
			t.Errorf("%s is %v, want %v", name, series[name], want)
		}
	}
	s.DB.Exec(t, `REVOKE EXECUTE ON FUNCTION verify_epoch FROM fenceline_service`) // so that nobody verifies it meanwhile
	s.DB.Exec(t, `VACUUM FULL report`)
	series = s.Series(t)
	if verified, told := series["fenceline_epoch_verified"]; !told || verified != 0 || series["fenceline_database_up"] != 1 {
		t.Errorf("in doubt it is %v (told: %v), and the database is up: %v", verified, told, series["fenceline_database_up"])
	}
}

// behind has a service reach its database through a proxy.
func behind(t testing.TB, db *testdb.DB) (*testproxy.Proxy, func(*service.Config)) {
	t.Helper()
	proxy := testproxy.New(t, "unix", db.Pool.Config().ConnConfig.Host+"/.s.PGSQL.5432")
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = proxy.Addr, "sslmode=disable"
	return proxy, func(c *service.Config) { c.Metrics, c.Database.URL = true, u.String() }
}

func TestAScrapeIsAnsweredWithinSecondsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*testproxy.Proxy){
		"it refuses": (*testproxy.Proxy).Refuse, "it is silent": (*testproxy.Proxy).BlackHole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := testdb.New(t)
			proxy, through := behind(t, db)
			s := testservice.StartOn(t, db, through)
			if up := s.Series(t)["fenceline_database_up"]; up != 1 {
				t.Fatalf("the database is up: %v", up)
			}
			away(proxy)
			began := time.Now()
			series := s.Series(t)
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("the scrape took %v", took)
			}
			if up, told := series["fenceline_database_up"]; !told || up != 0 {
				t.Errorf("the database is up: %v (told: %v)", up, told)
			}
			for _, name := range []string{
				"fenceline_epoch_verified", "fenceline_collector_last_success_timestamp_seconds", "fenceline_collector_paused",
			} {
				if value, told := series[name]; told {
					t.Errorf("%s is said to be %v, and nobody can know", name, value)
				}
			}
			for _, name := range []string{`fenceline_publishes_total{result="applied"}`, "fenceline_database_pool_max_connections", "go_goroutines"} {
				if _, told := series[name]; !told {
					t.Errorf("%s is not told any more", name)
				}
			}
		})
	}
}

func TestManyMayScrapeAtOnceWhileTheServiceWorks(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t, func(c *service.Config) { c.Metrics, c.Database.Pool = true, 4 })
	ctx, stop := context.WithCancel(t.Context())
	var work, scrapes sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000})
		}
	})
	for range 8 {
		scrapes.Go(func() {
			for range 10 {
				if up := s.Series(t)["fenceline_database_up"]; up != 1 {
					t.Errorf("the database is up: %v", up)
				}
			}
		})
	}
	scrapes.Wait()
	stop()
	work.Wait()
}
