// Package testmetrics reads what was counted, for the tests that want to know.
package testmetrics

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fenceline/fenceline/internal/metrics"
)

// New declares all series for a part that is tested without the rest of the service.
func New(t testing.TB) *metrics.Metrics {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/nowhere") // which nobody connects to
	if err != nil {
		t.Fatalf("make a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	none := func() int { return 0 }
	return metrics.New(metrics.Sources{
		Version: "test", Pool: pool.Stat, WaitingForLeases: none, WaitingForChanges: none,
		State:   func(context.Context) (metrics.State, error) { return metrics.State{}, nil },
		Backlog: func(context.Context) (metrics.Backlog, error) { return metrics.Backlog{}, nil },
	})
}

// Counted gives the value of each series whose name begins so, and that is not 0; see Series.
func Counted(t testing.TB, m *metrics.Metrics, prefix string) map[string]float64 {
	t.Helper()
	page := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	counted := Series(Read(t, page.Body))
	for name, value := range counted {
		if value == 0 || !strings.HasPrefix(name, prefix) {
			delete(counted, name)
		}
	}
	return counted
}

// Read reads a page of metrics.
func Read(t testing.TB, page io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		t.Fatalf("read the metrics: %v", err)
	}
	return families
}

// Series gives the value of each series by its name as Prometheus writes it; of a histogram its sum and its count.
func Series(families map[string]*dto.MetricFamily) map[string]float64 {
	series := map[string]float64{}
	for name, family := range families {
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
