package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Operation is what is counted by its result.
type Operation string

// The operations that are counted.
const (
	Publish Operation = "publish"
	Acquire Operation = "acquire"
	Renew   Operation = "renew"
	Release Operation = "release"
)

// Interrupted stands for the code of a request that did not end by itself: its client went away, or the instance
// shuts down. That is no fault, and would drown those that are `unavailable`.
const Interrupted = "interrupted"

// neverGranted is the reason of a fence that is above every grant: the answer needs none.
const neverGranted = "never_granted"

// generalCodes can answer every request that changes something.
func generalCodes() []string {
	return []string{
		"body_too_large", "forbidden", "internal", Interrupted, "invalid_request", "rate_limited", "unauthenticated",
		"unavailable", "unsupported_media_type",
	}
}

// declareAnswers declares what is counted by its result. All results begin at 0, so that the first one of each is
// an increase.
func (m *Metrics) declareAnswers() {
	m.answers = map[Operation]*prometheus.CounterVec{}
	for _, o := range []struct {
		operation  Operation
		name, help string
		results    []string
	}{
		{
			Publish, "fenceline_publishes_total", "Publishes by the answer's result or the problem's code.",
			[]string{
				"applied", "duplicate", "expected_version_required", "fence_not_granted", "frozen", "grant_already_used",
				"idempotency_key_reused", "invalid_fence", "lease_not_live", "missing_fence", "missing_idempotency_key",
				"object_gone", "object_incomplete", "object_mismatch", "object_not_found", "report_not_found", "stale_fence",
				"version_conflict", "version_not_found",
			},
		},
		{
			Acquire, "fenceline_acquires_total", "Requests for a lease by the answer's result or the problem's code; acquired includes repeated answers.",
			[]string{"acquired", "busy", "counter_exhausted", "frozen", "lease_id_reused", "lease_lost"},
		},
		{
			Renew, "fenceline_renewals_total", "Renewals of leases by the answer's result or the problem's code.",
			[]string{"renewed", "lease_lost", "lease_not_found"},
		},
		{
			Release, "fenceline_releases_total", "Releases of leases by the answer's result or the problem's code.",
			[]string{"released", "already_released", "lease_lost"},
		},
	} {
		m.answers[o.operation] = m.counters(o.name, o.help, "result", slices.Concat(o.results, generalCodes())...)
	}
}

// declareRequests declares what is known of all requests, and of the fences and renewals among them.
func (m *Metrics) declareRequests() {
	m.problems = m.counters("fenceline_problems_total",
		"Requests that ended in a problem, by its code, also where the answer had begun. interrupted: the client went away, or the instance shuts down.",
		"code", slices.Concat(generalCodes(), []string{
			"already_running", "busy", "counter_exhausted", "epoch_mismatch", "erased", "expected_version_required", "fence_not_granted", "frozen",
			"grant_already_used", "idempotency_key_reused", "invalid_fence", "lease_id_reused", "lease_lost", "lease_not_found",
			"lease_not_live", "method_not_allowed", "missing_fence", "missing_idempotency_key", "not_found", "not_published",
			"nothing_held_back",
			"object_damaged", "object_exists", "object_gone", "object_id_reused", "object_in_use", "object_incomplete",
			"object_mismatch", "object_not_found", "paused", "range_not_satisfiable", "report_not_found", "run_not_found",
			"stale_fence", "version_conflict", "version_not_found", "withdrawn",
		})...)

	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fenceline_stale_refusals_total",
		Help: "Changes of workers that were refused for their fence: each is work that was done for nothing.",
	}, []string{"code", "reason"})
	for _, reason := range []string{"superseded", "revoked", "epoch_closed"} {
		m.refusals.WithLabelValues("stale_fence", reason)
	}
	m.refusals.WithLabelValues("fence_not_granted", neverGranted)

	m.validityLeft = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "fenceline_renewal_validity_left_seconds",
		Help: "Validity that a lease still had when its renewal was decided, by the database's clock, of each renewal that was acknowledged.",
		// A ttl is from 1 s to 24 h, and a third of it is what a renewal in time leaves at least.
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1200, 3600, 3 * 3600, 8 * 3600, 16 * 3600, 24 * 3600},
	})
	m.requestTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "fenceline_http_request_duration_seconds",
		Help: "Time from the request's headers to the end of its answer, by the route's pattern. Waiting is part of it: on the routes of a lease and of a report up to 60 s (wait_ms) are what the client asked for; a download takes as long as its client reads.",
		// What waits and what reads bytes takes minutes.
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300},
	}, []string{"route", "method", "status_class"})
	m.registry.MustRegister(m.refusals, m.validityLeft, m.requestTime)
}

// counters declares a counter with one label, whose known values begin at 0.
func (m *Metrics) counters(name, help, label string, known ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, value := range known {
		c.WithLabelValues(value)
	}
	m.registry.MustRegister(c)
	return c
}
