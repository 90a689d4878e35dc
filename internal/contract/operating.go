package contract

import "strconv"

func collectorCases() []Case {
	const table = "The collector"
	return []Case{
		{Table: table, Row: `202 {"run_id"} | a run`, Alone: true, Steps: runStarted},
		{Table: table, Row: "409 already_running", Alone: true, Steps: runUnderWay},
		{Table: table, Row: `200 {"run_id","phase"`, Alone: true, Steps: runShown},
		{Table: table, Row: `200 {"items"} | GET /v1/gc/runs,`, Alone: true, Steps: runsListed},
		{Table: table, Row: `200 {"items"} | GET /v1/gc/runs/{id}/objects`, Alone: true, Steps: runObjects},
		{Table: table, Row: "400 invalid_request", Steps: runObjectsOfNoAction},
		{Table: table, Row: `200 {"result":"approved"`, Alone: true, Steps: runApproved},
		{Table: table, Row: `200 {"result":"already_approved"`, Alone: true, Steps: runApprovedTwice},
		{Table: table, Row: "409 nothing_held_back", Alone: true, Steps: runHoldsNothing},
		{Table: table, Row: "404 run_not_found", Steps: runUnknown},
		{Table: table, Row: `202 {"run_id"}, and nothing`, Alone: true, Steps: runDry},
		{Table: table, Row: `200 {"result":"paused"}`, Alone: true, Steps: runsPaused},
		{Table: table, Row: "409 paused", Alone: true, Steps: runWhilePaused},
		{Table: table, Row: `200 {"result":"resumed"}`, Alone: true, Steps: runsResumed},
	}
}

const runs = "/v1/gc/runs"

// collect has the collector run once, to the end, and returns the address of the run.
func (w *Walk) collect(dry bool) (run string) {
	started := w.Want(w.Operator("POST", runs, body{"dry_run": dry}), 202)
	return w.finished(started)
}

// finished returns the address of a run that was started, once it has ended.
func (w *Walk) finished(started Answer) (run string) {
	run = runs + "/" + strconv.FormatInt(started.Int("run_id"), 10)
	w.Await("the run has ended", func() bool {
		at := w.Want(w.Operator("GET", run, nil), 200).Text("finished_at")
		return at != ""
	})
	return run
}

func runStarted(w *Walk) {
	for _, asked := range []any{nil, body{}, body{"dry_run": false}} {
		w.finished(w.See(w.Operator("POST", runs, asked)))
	}
}

// due is an object of an ended lease that the collector may take.
func (w *Walk) due() (fence string) {
	fence = w.grant("a7")
	w.Want(w.reserve(fence, "o1", nil), 201)
	w.release("a7")
	w.Await("the object is due", func() bool {
		because, _ := w.Worker("GET", object(fence, "o1"), nil).Raw("kept_because")
		return because == "null"
	})
	return fence
}

func runUnderWay(w *Walk) {
	w.due()
	letGo, err := w.Faults.HoldReport(w.report)
	w.Must(err)
	started := w.Operator("POST", runs, nil)
	again := w.See(w.Operator("POST", runs, nil))
	w.See(w.Operator("POST", runs+"/"+strconv.FormatInt(started.Int("run_id"), 10)+"/approve", nil))
	w.Must(letGo())
	w.Want(started, 202)
	w.Check(again.Int("run_id") == started.Int("run_id"), "run_id %d, not %d", again.Int("run_id"), started.Int("run_id"))
	w.finished(started)
}

func runShown(w *Walk) {
	w.due()
	got := w.See(w.Operator("GET", w.collect(false), nil))
	counts, _ := got.Raw("condemned")
	w.Check(got.Text("phase") == "done" && got.Text("outcome") == "completed", "%s", got.Body)
	w.Check(Answer{Body: []byte(counts)}.Int("objects") >= 1, "condemned %s", counts)
}

func runsListed(w *Walk) {
	w.collect(true)
	last := w.collect(true)
	items := w.See(w.Operator("GET", runs, nil)).Items()
	w.Check(len(items) >= 2 && runs+"/"+strconv.FormatInt(items[0].Int("run_id"), 10) == last, "the newest is not first")
}

func runObjects(w *Walk) {
	w.due()
	run := w.collect(false)
	entry := w.entryOf(w.See(w.Operator("GET", run+"/objects?limit=1000", nil)))
	w.Check(entry.Text("action") == "condemned" && entry.Text("reason") == "never_sealed", "%s", entry.Body)
}

// entryOf finds what a run did with the case's own object.
func (w *Walk) entryOf(list Answer) Answer {
	for _, item := range list.Items() {
		if item.Text("report") == w.report && item.Text("object_id") == "o1" {
			return item
		}
	}
	w.Stop("the run says nothing of the object")
	return Answer{}
}

func runUnknown(w *Walk) {
	for _, id := range []string{"/0", "/x", "/9000000000", "/9000000000/objects"} {
		w.See(w.Operator("GET", runs+id, nil))
	}
	w.See(w.Operator("POST", runs+"/9000000000/approve", nil))
}

func runDry(w *Walk) {
	fence := w.due()
	started := w.See(w.Operator("POST", runs, body{"dry_run": true}))
	run := w.finished(started)
	entry := w.entryOf(w.Want(w.Operator("GET", run+"/objects?limit=1000", nil), 200))
	w.Check(entry.Text("action") == "condemned", "it would be %s", entry.Text("action"))
	state := w.Worker("GET", object(fence, "o1"), nil).Text("state")
	w.Check(state == "reserved", "the object is %s", state)
}

func (w *Walk) pause() Answer  { return w.Operator("POST", "/v1/gc/pause", nil) }
func (w *Walk) resume() Answer { return w.Operator("POST", "/v1/gc/resume", nil) }

func runsPaused(w *Walk) {
	for range 2 {
		w.See(w.pause())
	}
	since, _ := w.Operator("GET", "/v1/status", nil).Raw("gc_paused_since")
	w.Check(since != "null" && since != "", "the status does not show it")
	w.Want(w.resume(), 200)
}

func runWhilePaused(w *Walk) {
	w.Want(w.pause(), 200)
	w.See(w.Operator("POST", runs, nil))
	w.Want(w.resume(), 200)
}

func runsResumed(w *Walk) {
	w.Want(w.pause(), 200)
	for range 2 {
		w.See(w.resume())
	}
	w.collect(true)
}

func freezeCases() []Case {
	const table = "Freeze"
	return []Case{
		{Table: table, Row: `200 {"result":"frozen"`, Steps: freezeTwice},
		{Table: table, Row: `200 {"result":"renewed"}`, Steps: freezeRenew},
		{Table: table, Row: `200 {"result":"released"}`, Steps: freezeRelease},
		{Table: table, Row: `200 {"version"}`, Steps: freezeResolve},
		{Table: table, Row: `200 {"result":"unfrozen"`, Steps: freezeLifted},
		{Table: table, Row: "400 invalid_request", Steps: freezeNoPattern},
		{Table: table, Row: "403 forbidden", Steps: freezeForeign},
	}
}

func (w *Walk) freeze() Answer {
	return w.Operator("POST", "/v1/freeze", body{"pattern": w.report + "*"})
}

func (w *Walk) unfreeze() Answer {
	return w.Operator("POST", "/v1/unfreeze", body{"pattern": w.report + "*"})
}

func freezeTwice(w *Walk) {
	for range 2 {
		w.See(w.freeze())
	}
	w.Want(w.Worker("PUT", "leases/a7", longLease()), 409)
	w.Want(w.Worker("PUT", w.below(w.report+".x", "leases/a7"), longLease()), 409)
	w.Want(w.unfreeze(), 200)
}

func freezeRenew(w *Walk) {
	w.grant("a7")
	w.Want(w.freeze(), 200)
	w.See(w.Worker("POST", "leases/a7/renew", nil))
	w.Want(w.unfreeze(), 200)
}

func freezeRelease(w *Walk) {
	w.grant("a7")
	w.Want(w.freeze(), 200)
	w.See(w.Worker("DELETE", "leases/a7", nil))
	w.Want(w.unfreeze(), 200)
}

func freezeResolve(w *Walk) {
	w.published("hello")
	w.Want(w.freeze(), 200)
	w.See(w.Reader("GET", "", nil))
	w.Want(w.Reader("GET", "content", nil), 200)
	w.Want(w.unfreeze(), 200)
}

func freezeLifted(w *Walk) {
	w.Want(w.freeze(), 200)
	w.Want(w.Operator("POST", "/v1/unfreeze", body{"pattern": w.report}), 200) // another pattern's
	w.Want(w.Worker("PUT", "leases/a7", longLease()), 409)
	for range 2 {
		w.See(w.unfreeze())
	}
	w.grant("a7")
}

func freezeNoPattern(w *Walk) {
	for _, pattern := range []string{"", "-x", "a*b", "**"} {
		w.See(w.Operator("POST", "/v1/freeze", body{"pattern": pattern}))
	}
}

func freezeForeign(w *Walk) {
	key, err := w.NewKey(Operator, w.report+".*")
	w.Must(err)
	for _, pattern := range []string{"*", w.report + "*", w.report} {
		w.See(w.DoWith(key, "POST", "/v1/freeze", body{"pattern": pattern}))
	}
	w.Want(w.DoWith(key, "POST", "/v1/freeze", body{"pattern": w.report + ".x"}), 200)
	w.Want(w.DoWith(key, "POST", "/v1/unfreeze", body{"pattern": w.report + ".x"}), 200)
}
