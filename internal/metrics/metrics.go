// Package metrics declares every series that the service shows at /metrics, with its name, its help and its labels,
// and counts what the other parts tell it. No label is ever the name of a report, a holder or a key: each has a
// number of values that is known beforehand.
package metrics

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Metrics counts what happens in one process. A nil one counts nothing, so that no part has to ask whether somebody
// wants to know.
type Metrics struct {
	registry *prometheus.Registry

	answers      map[Operation]*prometheus.CounterVec
	problems     *prometheus.CounterVec
	refusals     *prometheus.CounterVec
	validityLeft prometheus.Histogram
	requestTime  *prometheus.HistogramVec

	storageCalls *prometheus.CounterVec
	storageTime  *prometheus.HistogramVec

	collected      *prometheus.CounterVec
	collectedBytes prometheus.Counter
	passes         *prometheus.CounterVec
}

// New declares all the series in a registry of its own. Nothing of sources is asked before the first scrape.
func New(sources Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.declareAnswers()
	m.declareRequests()
	m.declareStorage()
	m.declareCollector()
	m.declareProcess(sources)
	m.registry.MustRegister(newDatabaseState(sources.State), newBacklog(sources.Backlog))
	return m
}

// Handler answers a scrape, in Prometheus's text format. What cannot be told now is left out, the rest is served; log
// hears why.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:   promhttp.ContinueOnError,
		ErrorLog:        slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		AcceptedFormats: []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain)},
	})
}

// Request is one request that was answered.
type Request struct {
	Route     string // the pattern of its route; empty where nothing is at the address
	Method    string
	Status    int
	Took      time.Duration
	Operation Operation // empty for a request that is not counted by its result
	Result    string    // what the answer says; empty for a problem
	Code      string    // of the problem; empty if there was none
}

// Request counts one.
func (m *Metrics) Request(r Request) {
	if m == nil {
		return
	}
	if r.Route == "" { // whoever asks for what is not there chooses the method too
		r.Route, r.Method = unknown, unknown
	}
	m.requestTime.WithLabelValues(r.Route, r.Method, strconv.Itoa(r.Status/100)+"xx").Observe(r.Took.Seconds())
	if r.Code != "" {
		m.problems.WithLabelValues(r.Code).Inc()
		r.Result = r.Code
	}
	if counted, ok := m.answers[r.Operation]; ok && r.Result != "" {
		counted.WithLabelValues(r.Result).Inc()
	}
}

// unknown is the route and the method of a request for which there is no route.
const unknown = "unknown"

// FenceRefused counts a change that was refused for its fence. An empty reason is that of a fence that was never granted.
func (m *Metrics) FenceRefused(code, reason string) {
	if m == nil {
		return
	}
	if reason == "" {
		reason = neverGranted
	}
	m.refusals.WithLabelValues(code, reason).Inc()
}

// Renewed notes how much validity a lease still had when its renewal was decided.
func (m *Metrics) Renewed(left time.Duration) {
	if m != nil {
		m.validityLeft.Observe(left.Seconds())
	}
}

// StorageCall counts one call of the storage, all its attempts together.
func (m *Metrics) StorageCall(operation string, result StorageResult, took time.Duration) {
	if m == nil {
		return
	}
	m.storageCalls.WithLabelValues(operation, string(result)).Inc()
	m.storageTime.WithLabelValues(operation).Observe(took.Seconds())
}

// Collected counts what a pass of the collector did with one object; bytes count where they were deleted.
func (m *Metrics) Collected(action string, bytes int64) {
	if m == nil {
		return
	}
	m.collected.WithLabelValues(action).Inc()
	if action == actionDeleted {
		m.collectedBytes.Add(float64(bytes))
	}
}

// PassEnded counts a pass of the collector by its outcome.
func (m *Metrics) PassEnded(outcome string) {
	if m != nil {
		m.passes.WithLabelValues(outcome).Inc()
	}
}
