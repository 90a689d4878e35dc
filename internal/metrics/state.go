package metrics

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
)

// Sources are what is asked at a scrape.
type Sources struct {
	Version string
	Pool    func() *pgxpool.Stat

	// How many requests wait in this process.
	WaitingForLeases, WaitingForChanges func() int

	// State asks the database, and Backlog what the collector has not done. Scrapes at the same time share one answer of each.
	State   func(context.Context) (State, error)
	Backlog func(context.Context) (Backlog, error)
}

// State is what the database tells, whichever instance brought it about.
type State struct {
	EpochVerified bool
	LastSuccess   *time.Time // when the last pass of the collector that completed did so; nil if none is on record
	Collecting    bool       // a pass is under way
	Paused        bool
	Frozen        int // freezes in force
	Verifying     bool
	LastVerified  *time.Time // when a verification of everything last completed; nil if none is on record
	VerifyFaults  int64      // objects that are shown, and were not as they were published when they were last looked at
}

// declareProcess declares what the process knows of itself without asking anybody.
func (m *Metrics) declareProcess(s Sources) {
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	counter := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
	}
	gauge("fenceline_build_info", "Always 1; the version is that of the program.",
		prometheus.Labels{"version": s.Version}, func() float64 { return 1 })

	const waiting, waitingHelp = "fenceline_waiting_requests", "Requests that wait now, for a lease to end or for a report to change."
	gauge(waiting, waitingHelp, prometheus.Labels{"waits_for": "lease"}, func() float64 { return float64(s.WaitingForLeases()) })
	gauge(waiting, waitingHelp, prometheus.Labels{"waits_for": "change"}, func() float64 { return float64(s.WaitingForChanges()) })

	gauge("fenceline_database_pool_acquired_connections", "Connections of the pool that are in use.",
		nil, func() float64 { return float64(s.Pool().AcquiredConns()) })
	gauge("fenceline_database_pool_idle_connections", "Connections of the pool that are open and not in use.",
		nil, func() float64 { return float64(s.Pool().IdleConns()) })
	gauge("fenceline_database_pool_total_connections", "Connections of the pool: in use, idle and being opened.",
		nil, func() float64 { return float64(s.Pool().TotalConns()) })
	gauge("fenceline_database_pool_max_connections", "Connections that the pool may have at most.",
		nil, func() float64 { return float64(s.Pool().MaxConns()) })
	counter("fenceline_database_pool_waits_total", "How often a statement had to wait for a connection, also for one that was opened for it.",
		func() float64 { return float64(s.Pool().EmptyAcquireCount()) })
	counter("fenceline_database_pool_wait_seconds_total", "How long statements have waited for a connection, all together.",
		func() float64 { return s.Pool().EmptyAcquireWaitTime().Seconds() })
	counter("fenceline_database_pool_abandoned_waits_total", "How often the time of a request was over before it had a connection.",
		func() float64 { return float64(s.Pool().CanceledAcquireCount()) })
}

// stateTimeout bounds the question to the database: a scrape has ten seconds by default, and the rest is to be served.
const stateTimeout = 2 * time.Second

// databaseState asks the database at a scrape. While it does not answer, what it would tell is absent.
type databaseState struct {
	ask func(context.Context) (State, error)
	one singleflight.Group // so that scrapes take one connection at most, however many there are

	up, verified, lastSuccess, collecting, paused, frozen *prometheus.Desc
	verifying, lastVerified, faults                       *prometheus.Desc
}

func newDatabaseState(ask func(context.Context) (State, error)) *databaseState {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &databaseState{
		ask: ask,
		up: desc("fenceline_database_up",
			"1 if the database has answered this scrape within 2 s, else 0, and then what it would have told is absent."),
		verified: desc("fenceline_epoch_verified",
			"1 if the database is the one whose identity was verified; 0 while all changes are refused until it is."),
		lastSuccess: desc("fenceline_collector_last_success_timestamp_seconds",
			"When a pass of the collector last completed, in whichever instance; absent if none is on record. Dry runs do not count."),
		collecting: desc("fenceline_collector_running",
			"1 if a pass of the collector is under way, in whichever instance."),
		paused: desc("fenceline_collector_paused", "1 if an operator has paused the collector."),
		frozen: desc("fenceline_freezes", "Freezes in force: patterns of reports that only resolve."),
		verifying: desc("fenceline_verify_running",
			"1 if a verification of the bytes in the storage is under way, in whichever instance or command."),
		lastVerified: desc("fenceline_verify_last_success_timestamp_seconds",
			"When a verification of everything that is shown last came to its end, whatever it found; absent if none is on record."),
		faults: desc("fenceline_verify_faults",
			"Objects that are shown, and whose bytes were missing or others than were published when they were last looked at; counted up to 10000."),
	}
}

// Describe implements prometheus.Collector.
func (s *databaseState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.up, s.verified, s.lastSuccess, s.collecting, s.paused, s.frozen, s.verifying, s.lastVerified, s.faults} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *databaseState) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	truth := map[bool]float64{true: 1}
	answer, err, _ := s.one.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
		defer cancel()
		return s.ask(ctx)
	})
	gauge(s.up, truth[err == nil])
	if err != nil {
		return
	}
	state := answer.(State)
	gauge(s.verified, truth[state.EpochVerified])
	if state.LastSuccess != nil {
		gauge(s.lastSuccess, float64(state.LastSuccess.UnixMilli())/1000)
	}
	gauge(s.collecting, truth[state.Collecting])
	gauge(s.paused, truth[state.Paused])
	gauge(s.frozen, float64(state.Frozen))
	gauge(s.verifying, truth[state.Verifying])
	if state.LastVerified != nil {
		gauge(s.lastVerified, float64(state.LastVerified.UnixMilli())/1000)
	}
	gauge(s.faults, float64(state.VerifyFaults))
}
