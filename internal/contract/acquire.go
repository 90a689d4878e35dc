package contract

import (
	"strings"
	"time"
)

func acquireCases() []Case {
	const table = "Acquire"
	return []Case{
		{Table: table, Row: `201 {"result":"acquired","report"`, Steps: acquireGrants},
		{Table: table, Row: "200, the same", Steps: acquireReplays},
		{Table: table, Row: "409 busy", Steps: acquireBusy},
		{Table: table, Row: "410 lease_lost", Steps: acquireEndedID},
		{Table: table, Row: "422 lease_id_reused", Steps: acquireReusedID},
		{Table: table, Row: "409 counter_exhausted", Steps: acquireExhausted},
		{Table: table, Row: "503 unavailable", Alone: true, Steps: acquireWithoutDatabase},
		{Table: table, Row: `201 {"result":"acquired","fence","waited_ms"}`, Steps: acquireWaits},
		{Table: table, Row: "400 invalid_request", Steps: acquireBeyondLimits},
	}
}

func acquireGrants(w *Walk) {
	first := w.See(w.Worker("PUT", "leases/a7", longLease()))
	w.Check(first.Int("version") == 0 && first.Int("remaining_ms") == 60000, "version %d, remaining_ms %d", first.Int("version"), first.Int("remaining_ms"))
	w.Check(first.Text("report") == w.report && first.Text("lease_id") == "a7" && first.Text("holder") == "worker-7", "of another lease: %s", first.Body)
	w.Want(w.publish("k1", body{"fence": first.Text("fence"), "withdraw": true}), 201)
	w.release("a7")
	second := w.See(w.Worker("PUT", "leases/b9", longLease()))
	w.Check(second.Int("version") == 1, "version %d after the first publication", second.Int("version"))
	w.Check(second.Text("fence") != first.Text("fence"), "the same fence twice")
}

func acquireReplays(w *Walk) {
	fence := w.grant("a7")
	got := w.See(w.Worker("PUT", "leases/a7", longLease()))
	w.Check(got.Text("fence") == fence, "fence %s, not %s", got.Text("fence"), fence)
	w.Check(got.Int("remaining_ms") < 60000, "it was extended: %d ms", got.Int("remaining_ms"))
	for _, name := range []string{"result", "report", "lease_id", "holder", "fence", "remaining_ms", "waited_ms", "version"} {
		_, there := got.Raw(name)
		w.Check(there, "no %s", name)
	}
}

func acquireBusy(w *Walk) {
	w.grant("a7")
	got := w.See(w.Worker("PUT", "leases/b9", body{"holder": "worker-8", "ttl_ms": 1000}))
	w.Check(got.Text("holder") == "worker-7", "the holder is %q", got.Text("holder"))
	w.Check(got.Int("retry_after_ms") > 0 && got.Int("retry_after_ms") <= 60000, "retry_after_ms %d", got.Int("retry_after_ms"))
	const wait = 200 * time.Millisecond
	began := time.Now()
	w.See(w.Worker("PUT", "leases/c1", body{"holder": "worker-8", "ttl_ms": 1000, "wait_ms": wait.Milliseconds()}))
	w.Check(time.Since(began) >= wait, "it was told after %v, although it would have waited %v", time.Since(began), wait)
}

func acquireEndedID(w *Walk) {
	w.brief("a7")
	w.See(w.Worker("PUT", "leases/a7", body{"holder": "worker-7", "ttl_ms": 1000}))
	w.See(w.Worker("PUT", "leases/a7", body{"holder": "another", "ttl_ms": 1000})) // ended comes before reused
	w.grant("b9")
	w.release("b9")
	got := w.See(w.Worker("PUT", "leases/b9", longLease()))
	w.Check(got.Text("reason") == "released", "the reason is %q", got.Text("reason"))
}

func acquireReusedID(w *Walk) {
	w.grant("a7")
	w.See(w.Worker("PUT", "leases/a7", body{"holder": "worker-8", "ttl_ms": 60000}))
	w.See(w.Worker("PUT", "leases/a7", body{"holder": "worker-7", "ttl_ms": 59000}))
}

func acquireExhausted(w *Walk) {
	w.grant("a7")
	w.release("a7")
	w.Must(w.Faults.ExhaustCounter(w.report))
	w.See(w.Worker("PUT", "leases/b9", longLease()))
}

func acquireWithoutDatabase(w *Walk) {
	w.whileDatabaseIsAway(func() { w.See(w.Worker("PUT", "leases/a7", longLease())) })
	w.See(w.whileDatabaseDiesOver("a7"))
	w.release("a7")
	unlock, err := w.Faults.LockDatabase()
	w.Must(err)
	w.See(w.Worker("PUT", "leases/c1", longLease()))
	w.Must(unlock())
	// The service finds out session by session that its old ones have ended.
	w.Await("changes are taken again", func() bool { return w.Worker("PUT", "leases/d1", longLease()).Status < 300 })
	w.Want(w.Worker("GET", "leases/c1", nil), 404) // nothing came of it
}

// whileDatabaseDiesOver acquires while the database dies.
func (w *Walk) whileDatabaseDiesOver(id string) Answer {
	w.release("z0") // the report exists
	got := w.whileDatabaseDies(func() Answer { return w.Worker("PUT", "leases/"+id, longLease()) })
	w.Check(got.Text("outcome") == "unknown", "outcome %q", got.Text("outcome"))
	again := w.Worker("PUT", "leases/"+id, longLease()) // finds out
	w.Check(again.Status == 201 || again.Status == 200, "the repetition: %s", again)
	return got
}

func acquireWaits(w *Walk) {
	w.Want(w.Worker("PUT", "leases/a7", body{"holder": "worker-7", "ttl_ms": 1000}), 201)
	got := w.See(w.Worker("PUT", "leases/b9", body{"holder": "worker-8", "ttl_ms": 60000, "wait_ms": 30000}))
	w.Check(got.Int("waited_ms") > 0 && got.Int("waited_ms") < 30000, "waited_ms %d", got.Int("waited_ms"))
}

func acquireBeyondLimits(w *Walk) {
	for _, c := range []struct {
		field string
		asked body
	}{
		{"holder", body{"ttl_ms": 1000}},
		{"holder", body{"holder": "", "ttl_ms": 1000}},
		{"holder", body{"holder": strings.Repeat("ü", 201), "ttl_ms": 1000}},
		{"ttl_ms", body{"holder": "w"}},
		{"ttl_ms", body{"holder": "w", "ttl_ms": 999}},
		{"ttl_ms", body{"holder": "w", "ttl_ms": 24*60*60*1000 + 1}},
		{"wait_ms", body{"holder": "w", "ttl_ms": 1000, "wait_ms": 60001}},
		{"wait_ms", body{"holder": "w", "ttl_ms": 1000, "wait_ms": -1}},
	} {
		got := w.See(w.Worker("PUT", "leases/a7", c.asked))
		w.Check(got.Text("field") == c.field, "the field is %q, not %q", got.Text("field"), c.field)
	}
	got := w.See(w.Worker("PUT", "leases/-a", longLease()))
	w.Check(got.Text("field") == "lease_id", "the field is %q", got.Text("field"))
	w.Want(w.Worker("PUT", "leases/a7", body{"holder": strings.Repeat("ü", 200), "ttl_ms": 1000, "wait_ms": 60000}), 201)
}
