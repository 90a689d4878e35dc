package contract

import "strings"

func openCases() []Case {
	const table = "Open to all"
	return []Case{
		{Table: table, Row: `200 {"status":"ok"}`, Steps: func(w *Walk) { w.See(w.Do(Nobody, "GET", "/livez", nil)) }},
		{Table: table, Row: `200 {"status":"ready"`, Steps: func(w *Walk) { w.See(w.Do(Nobody, "GET", "/readyz", nil)) }},
		{Table: table, Row: "503 unavailable", Alone: true, Steps: openNotReady},
		{Table: table, Row: "200 | GET /openapi.yaml", Steps: openDocument},
		{Table: table, Row: "200 | GET /docs", Steps: func(w *Walk) { w.See(w.Do(Nobody, "GET", "/docs", nil)) }},
		{Table: table, Row: "200 | GET /metrics", Steps: openMetrics},
		{Table: "The status", Row: `200 {"version","epoch"`, Steps: func(w *Walk) { w.See(w.Operator("GET", "/v1/status", nil)) }},
	}
}

func openNotReady(w *Walk) {
	w.whileDatabaseIsAway(func() {
		w.See(w.Do(Nobody, "GET", "/readyz", nil))
		w.Want(w.Do(Nobody, "GET", "/livez", nil), 200)
	})
	w.Await("the service is ready", func() bool { return w.Do(Nobody, "GET", "/readyz", nil).Status == 200 })
	w.whileStorageIsAway(func() { w.Want(w.Do(Nobody, "GET", "/readyz", nil), 200) }) // it degrades its own routes alone
}

func openDocument(w *Walk) {
	got := w.See(w.Do(Nobody, "GET", "/openapi.yaml", nil))
	w.Check(strings.Contains(string(got.Body), "\nopenapi: '3."), "it is no OpenAPI document: %.40q", got.Body)
}

func openMetrics(w *Walk) {
	got := w.See(w.Do(Nobody, "GET", "/metrics", nil))
	w.Check(strings.Contains(string(got.Body), "fenceline_stale_refusals_total{"), "it tells nothing of stale refusals: %.40q", got.Body)
}

// The epoch's cases come last: with a floor they bar what all others were granted.
func epochCases() []Case {
	const table = "The epoch"
	return []Case{
		{Table: table, Row: `200 {"epoch","floor"} | GET`, Steps: func(w *Walk) { w.See(w.Operator("GET", "/v1/epoch", nil)) }},
		{Table: table, Row: `200 {"epoch","floor"} | POST`, Alone: true, Steps: epochAdvances},
		{Table: table, Row: "409 epoch_mismatch", Steps: epochOfAnother},
		{Table: table, Row: "403 forbidden", Steps: epochOfSome},
		{Table: table, Row: "409 stale_fence", Alone: true, Steps: epochClosesFences},
		{Table: table, Row: `201 {"result":"acquired"}`, Alone: true, Steps: epochRefillsCounter},
		{Table: "Renew", Row: `410 lease_lost {"reason":"epoch_closed"}`, Alone: true, Steps: epochClosesLeases},
	}
}

// advance asks for the next epoch.
func (w *Walk) advance(expected int64, floor bool) Answer {
	return w.Operator("POST", "/v1/epoch", body{"reason": "restored", "expected": expected, "floor": floor})
}

func (w *Walk) epoch() Answer { return w.Want(w.Operator("GET", "/v1/epoch", nil), 200) }

func epochAdvances(w *Walk) {
	before := w.epoch()
	got := w.See(w.advance(before.Int("epoch"), false))
	w.Check(got.Int("epoch") > before.Int("epoch"), "epoch %d after %d", got.Int("epoch"), before.Int("epoch"))
	w.Check(got.Int("floor") == before.Int("floor"), "the floor is %d, and was %d", got.Int("floor"), before.Int("floor"))
}

func epochOfAnother(w *Walk) {
	now := w.epoch().Int("epoch")
	got := w.See(w.advance(now+7, false))
	w.Check(got.Int("expected") == now+7 && got.Int("actual") == now, "%s", got.Body)
}

func epochOfSome(w *Walk) {
	some, err := w.NewKey(Operator, w.report+"*")
	w.Must(err)
	w.See(w.DoWith(some, "POST", "/v1/epoch", body{"reason": "restored", "expected": w.epoch().Int("epoch")}))
	w.Want(w.DoWith(some, "POST", "/v1/gc/runs", nil), 403)
	w.Want(w.DoWith(some, "POST", "/v1/gc/runs/1/approve", nil), 403)
	w.Want(w.DoWith(some, "POST", "/v1/gc/pause", nil), 403)
	w.Want(w.DoWith(some, "POST", "/v1/gc/resume", nil), 403)
}

func epochClosesFences(w *Walk) {
	fence := w.grant("a7")
	got := w.Want(w.advance(w.epoch().Int("epoch"), true), 200)
	w.Check(got.Int("floor") == got.Int("epoch"), "the floor is %d in epoch %d", got.Int("floor"), got.Int("epoch"))
	w.See(w.publish("k1", body{"fence": fence, "withdraw": true}))
	w.grant("b9") // goes on at once
}

func epochRefillsCounter(w *Walk) {
	w.grant("a7")
	w.release("a7")
	w.Must(w.Faults.ExhaustCounter(w.report))
	w.Want(w.Worker("PUT", "leases/b9", longLease()), 409)
	w.Want(w.advance(w.epoch().Int("epoch"), false), 200)
	w.See(w.Worker("PUT", "leases/b9", longLease()))
}

func epochClosesLeases(w *Walk) {
	w.grant("a7")
	w.Want(w.advance(w.epoch().Int("epoch"), true), 200)
	w.See(w.Worker("POST", "leases/a7/renew", nil))
}
