package testservice

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics scrapes the service.
func (s *Service) Metrics(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	page := s.DoAs(t, "", http.MethodGet, "/metrics", nil).Want(t, http.StatusOK)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page.Body))
	if err != nil {
		t.Fatalf("read the metrics: %v", err)
	}
	return families
}

// Series scrapes the service, and gives the value of each series by its name as Prometheus writes it; of a histogram
// its sum and its count.
func (s *Service) Series(t testing.TB) map[string]float64 {
	t.Helper()
	series := map[string]float64{}
	for name, family := range s.Metrics(t) {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			suffix := ""
			if len(labels) > 0 {
				suffix = "{" + strings.Join(labels, ",") + "}"
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				series[name+suffix] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				series[name+suffix] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				series[name+"_sum"+suffix] = m.Histogram.GetSampleSum()
				series[name+"_count"+suffix] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return series
}
