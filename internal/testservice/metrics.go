package testservice

import (
	"bytes"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/fenceline/fenceline/internal/testmetrics"
)

// Metrics scrapes the service.
func (s *Service) Metrics(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	return testmetrics.Read(t, bytes.NewReader(s.DoAs(t, "", http.MethodGet, "/metrics", nil).Want(t, http.StatusOK).Body))
}

// Series scrapes the service, and gives the value of each series by its name; see [testmetrics.Series].
func (s *Service) Series(t testing.TB) map[string]float64 {
	t.Helper()
	return testmetrics.Series(s.Metrics(t))
}
