package api_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/internal/service"
)

// showingMetrics has a service serve its metrics.
func showingMetrics(c *service.Config) { c.Metrics = true }

func TestThereAreNoMetricsUnlessTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.DoAs(t, "", "GET", "/metrics", nil).Refused(t, 404, "not_found")
	w.Do(t, "GET", "/metrics", nil).Refused(t, 404, "not_found")
}

func TestMetricsAreServedAsTextToWhoeverAsks(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	for _, accept := range []string{"", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "application/openmetrics-text"} {
		got := w.DoAs(t, "", "GET", "/metrics", nil, "Accept", accept).Want(t, 200)
		if kind := got.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
			t.Errorf("asked for %q, got %q", accept, kind)
		}
	}
	w.DoAs(t, "", "GET", "/metrics?x=1", nil).Refused(t, 400, "invalid_request")
	w.DoAs(t, "", "HEAD", "/metrics", nil).Want(t, 200)
	w.DoAs(t, "", "POST", "/metrics", nil).Refused(t, 405, "method_not_allowed")
}

// increases are the counters of requests that differ between two scrapes, and by how much. What depends on
// time, on the machine or on the way of the bytes is left out.
func increases(before, after map[string]float64) map[string]float64 {
	differ := map[string]float64{}
	for name, value := range after {
		left := !strings.HasPrefix(name, "fenceline_") || strings.HasPrefix(name, "fenceline_http_") ||
			strings.HasPrefix(name, "fenceline_database_") || strings.HasPrefix(name, "fenceline_storage_") || strings.Contains(name, "_sum")
		if !left && value != before[name] {
			differ[name] = value - before[name]
		}
	}
	return differ
}

func TestEachAnswerIsCountedByItsResult(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	before := w.Series(t)

	stale := w.grant(t, "july", "a7") // 30 s
	w.DB.Advance(t, 10*time.Second)
	renew := "/v1/reports/july/leases/a7/renew"
	w.DoAs(t, w.Worker, "POST", renew, nil).Want(t, 200)
	object := w.DoAs(t, w.Worker, "PUT", "/v1/reports/july/objects/"+stale+"/july.csv", doc{}).Want(t, 201)
	w.Storage.Put(t, object.String(t, "key"), "hello")
	publish := func(fence, key string) doc {
		return w.DoAs(t, w.Worker, "POST", "/v1/reports/july/publications", doc{"fence": fence, "object_id": "july.csv"}, "Idempotency-Key", key).JSON(t)
	}
	for _, want := range []string{"applied", "duplicate"} {
		if got := publish(stale, "k1")["result"]; got != want {
			t.Fatalf("the publish was answered %v, want %s", got, want)
		}
	}
	w.DoAs(t, w.Worker, "PUT", "/v1/reports/july/leases/b9", doc{"holder": "B", "ttl_ms": 30000}).Refused(t, 409, "busy")
	for range 2 {
		w.DoAs(t, w.Worker, "DELETE", "/v1/reports/july/leases/a7", nil).Want(t, 200)
	}
	w.DoAs(t, w.Worker, "POST", renew, nil).Refused(t, 410, "lease_lost")
	w.grant(t, "july", "b9")
	if got := publish(stale, "k2")["code"]; got != "stale_fence" {
		t.Fatalf("the stale publish was answered %v", got)
	}
	w.DoAs(t, w.Worker, "PUT", "/v1/reports/july/objects/"+stale+"/late.csv", doc{}).Refused(t, 409, "stale_fence")
	w.DoAs(t, w.Worker, "PUT", "/v1/reports/july/objects/1.99/made-up.csv", doc{}).Refused(t, 409, "fence_not_granted")
	w.DoAs(t, w.Reader, "DELETE", "/v1/reports/july/leases/b9", nil).Refused(t, 403, "forbidden")
	w.Do(t, "POST", "/v1/reports/july/lease/revoke", doc{"reason": "test", "fence": "1.99"}).Refused(t, 409, "fence_not_granted") // no worker's work
	w.Do(t, "POST", "/v1/reports/july/lease/revoke", doc{"reason": "test"}).Want(t, 200)
	w.DoAs(t, w.Worker, "PUT", "/v1/reports/july/objects/1.2/barred.csv", doc{}).Refused(t, 409, "stale_fence")

	after := w.Series(t)
	want := map[string]float64{
		`fenceline_acquires_total{result="acquired"}`:                                     2,
		`fenceline_acquires_total{result="busy"}`:                                         1,
		`fenceline_renewals_total{result="renewed"}`:                                      1,
		`fenceline_renewals_total{result="lease_lost"}`:                                   1,
		`fenceline_releases_total{result="released"}`:                                     1,
		`fenceline_releases_total{result="already_released"}`:                             1,
		`fenceline_releases_total{result="forbidden"}`:                                    1,
		`fenceline_publishes_total{result="applied"}`:                                     1,
		`fenceline_publishes_total{result="duplicate"}`:                                   1,
		`fenceline_publishes_total{result="stale_fence"}`:                                 1,
		`fenceline_stale_refusals_total{code="stale_fence",reason="superseded"}`:          2,
		`fenceline_stale_refusals_total{code="stale_fence",reason="revoked"}`:             1,
		`fenceline_stale_refusals_total{code="fence_not_granted",reason="never_granted"}`: 1,
		`fenceline_problems_total{code="busy"}`:                                           1,
		`fenceline_problems_total{code="lease_lost"}`:                                     1,
		`fenceline_problems_total{code="forbidden"}`:                                      1,
		`fenceline_problems_total{code="stale_fence"}`:                                    3,
		`fenceline_problems_total{code="fence_not_granted"}`:                              2,
		`fenceline_renewal_validity_left_seconds_count`:                                   1,
	}
	if diff := cmp.Diff(want, increases(before, after)); diff != "" {
		t.Errorf("increases (-want +got):\n%s", diff)
	}
	if left := after["fenceline_renewal_validity_left_seconds_sum"]; left > 20 || left < 15 {
		t.Errorf("20 s after 10 s of 30, less what the test took; the renewal was counted with %v s left", left)
	}
	const publishes = `fenceline_http_request_duration_seconds_count{method="POST",route="/v1/reports/:report/publications",status_class="%dxx"}`
	for class, number := range map[int]float64{2: 2, 4: 1} {
		if got := after[fmt.Sprintf(publishes, class)]; got != number {
			t.Errorf("%v publishes are counted as %dxx, want %v", got, class, number)
		}
	}
}

func TestAClientThatHangsUpIsNotTakenForAServiceThatIsAway(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	w.grant(t, "july", "a7")
	before := w.Series(t)
	waiting := w.request(t, w.Worker, "PUT", "/v1/reports/july/leases/b9", waits)
	ctx, hangUp := context.WithCancel(waiting.Context())
	defer hangUp()
	gone := make(chan error, 1)
	go func() {
		response, err := w.client.Do(waiting.WithContext(ctx))
		if err == nil {
			response.Body.Close()
		}
		gone <- err
	}()
	until(t, 1, w.Leases.Waiting)
	if n := w.Series(t)[`fenceline_waiting_requests{waits_for="lease"}`]; n != 1 {
		t.Errorf("%v requests are shown to wait for leases, want 1", n)
	}
	hangUp()
	if err := <-gone; err == nil {
		t.Error("it was answered")
	}
	want := map[string]float64{
		`fenceline_acquires_total{result="interrupted"}`: 1,
		`fenceline_problems_total{code="interrupted"}`:   1,
	}
	var got map[string]float64
	until(t, len(want), func() int { // it is counted after its client has gone
		got = increases(before, w.Series(t))
		return len(got)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("increases (-want +got):\n%s", diff)
	}
}

func TestNoLabelNamesAReportAHolderOrAKey(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	const odd = "Odd-Name.of_4711"
	fence := w.DoAs(t, w.Worker, "PUT", "/v1/reports/"+odd+"/leases/"+odd, doc{"holder": odd, "ttl_ms": 30000}).Want(t, 201).String(t, "fence")
	key := w.DoAs(t, w.Worker, "PUT", "/v1/reports/"+odd+"/objects/"+fence+"/"+odd, doc{"filename": odd}).Want(t, 201).String(t, "key")
	w.Storage.Put(t, key, odd)
	w.DoAs(t, w.Worker, "POST", "/v1/reports/"+odd+"/publications", doc{"fence": fence, "object_id": odd}, "Idempotency-Key", odd).Want(t, 201)
	w.DoAs(t, w.Reader, "GET", "/v1/reports/"+odd+"/content", nil).Want(t, 200)
	w.DoAs(t, w.Worker, "PUT", "/v1/reports/"+odd+"/objects/9.9/x", doc{}).Refused(t, 409, "fence_not_granted")
	w.Do(t, "POST", "/v1/freeze", doc{"pattern": odd + "*"}).Want(t, 200)
	w.DoAs(t, "", "GET", "/"+odd, nil).Refused(t, 404, "not_found")
	w.DoAs(t, "", "ODDNAMEOF4711", "/v1/reports", nil).Refused(t, 405, "method_not_allowed")
	w.DoAs(t, "fl_oddnameof471_1", "GET", "/v1/reports/"+odd, nil).Refused(t, 401, "unauthenticated")

	routes := map[string]bool{"unknown": true}
	for _, r := range api.Routes() {
		routes[r.Path] = true
	}
	families := w.Metrics(t)
	if len(families) < 30 {
		t.Fatalf("only %d series", len(families))
	}
	for name, family := range families {
		for _, m := range family.Metric {
			for _, l := range m.Label {
				if strings.Contains(strings.ToLower(l.GetValue()), "odd") {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), l.GetValue())
				}
				if l.GetName() == "route" && !routes[l.GetValue()] {
					t.Errorf("%s has the route %q, which is no pattern", name, l.GetValue())
				}
			}
		}
	}
}

// So that an alert on an increase sees the first one of each.
func TestEveryDocumentedResultBeginsAtZero(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	shown := map[string]map[string]bool{}
	for name, family := range w.Metrics(t) {
		shown[name] = map[string]bool{}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				shown[name][l.GetValue()] = true
			}
		}
	}
	everyCode := map[string]bool{"interrupted": true, "not_found": true, "method_not_allowed": true}
	for path, item := range description().Paths.Map() {
		for _, operation := range item.Operations() {
			for _, code := range problemsOf(operation) {
				everyCode[code] = true
				if series := countedAs[operation.OperationID]; series != "" && !shown[series][code] {
					t.Errorf("%s (%s) does not begin with %s", series, path, code)
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(everyCode)), slices.Sorted(maps.Keys(shown["fenceline_problems_total"]))); diff != "" {
		t.Errorf("codes (-documented +counted):\n%s", diff)
	}
	for series, results := range map[string][]string{
		"fenceline_publishes_total": {"applied", "duplicate"}, "fenceline_acquires_total": {"acquired"},
		"fenceline_renewals_total": {"renewed"}, "fenceline_releases_total": {"released", "already_released"},
	} {
		for _, result := range results {
			if !shown[series][result] {
				t.Errorf("%s does not begin with %s", series, result)
			}
		}
	}
}

// problemsOf lists the codes of the problems that are documented for an operation.
func problemsOf(operation *openapi3.Operation) []string {
	var codes []string
	for _, response := range operation.Responses.Map() {
		problem := response.Value.Content["application/problem+json"]
		if problem == nil {
			continue
		}
		codes = append(codes, slices.Collect(maps.Keys(problem.Examples))...)
		if example, ok := problem.Example.(map[string]any); ok {
			codes = append(codes, fmt.Sprint(example["code"]))
		}
	}
	return codes
}

// countedAs says of the operations that are counted by their result as which series.
var countedAs = map[string]string{
	"publish": "fenceline_publishes_total", "acquireLease": "fenceline_acquires_total",
	"renewLease": "fenceline_renewals_total", "releaseLease": "fenceline_releases_total",
}
