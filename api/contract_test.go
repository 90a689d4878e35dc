package api_test

import (
	"testing"

	"github.com/fenceline/fenceline/internal/testservice"
)

func TestAWorkerPublishesAndAReaderResolves(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	a := s.DoAs(t, s.Worker, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 30000}).Want(t, 201)
	t.Log(string(a.Body))
	o := s.DoAs(t, s.Worker, "PUT", "/v1/reports/july/objects/"+a.String(t, "fence")+"/july.csv", map[string]any{"content_type": "text/csv"}).Want(t, 201)
	t.Log(string(o.Body))
	s.Storage.Put(t, o.String(t, "key"), "hello")
	p := s.DoAs(t, s.Worker, "POST", "/v1/reports/july/publications", map[string]any{"fence": a.String(t, "fence"), "object_id": "july.csv"}, "Idempotency-Key", "k1").Want(t, 201)
	t.Log(string(p.Body))
	t.Log(string(s.DoAs(t, s.Reader, "GET", "/v1/reports/july", nil).Want(t, 200).Body))
	c := s.DoAs(t, s.Reader, "GET", "/v1/reports/july/content", nil).Want(t, 200)
	t.Log(string(c.Body), c.Header)
	t.Log(string(s.Do(t, "GET", "/v1/status", nil).Want(t, 200).Body))
	t.Log(string(s.Do(t, "POST", "/v1/gc/runs", nil).Want(t, 202).Body))
}
