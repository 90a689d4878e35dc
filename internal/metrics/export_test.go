package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry is what a scrape gathers.
func (m *Metrics) Registry() prometheus.Gatherer { return m.registry }
