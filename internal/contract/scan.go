package contract

func scanCases() []Case {
	const table = "What a scan finds"
	return []Case{
		{Table: table, Row: `200 {"scan"}`, Alone: true, Steps: scanShown},
		{Table: table, Row: `200 {"state","found_at"}`, Alone: true, Steps: foundShown},
		{Table: table, Row: "409 object_exists", Alone: true, Steps: foundReserved},
		{Table: table, Row: "404 object_not_found", Alone: true, Steps: foundUsed},
		{Table: table, Row: "404 not_published", Alone: true, Steps: foundReport},
	}
}

// found has a scan find bytes of the case's own report that nobody has reserved, and returns the run.
func (w *Walk) found(fence string) (run string) {
	w.Must(w.Faults.Overwrite("reports/"+w.report+"/"+fence+"/o1", "hello"))
	return w.collect(false)
}

func scanShown(w *Walk) {
	run := w.found("7.1")
	got := w.See(w.Operator("GET", run, nil))
	scan, _ := got.Raw("scan")
	seen := Answer{Body: []byte(scan)}
	w.Check(seen.Int("keys") >= 1 && seen.Int("unknown") >= 1, "the scan says %s", scan)
	without := w.finished(w.Want(w.Operator("POST", runs, body{"scan": false}), 202))
	scan, _ = w.See(w.Operator("GET", without, nil)).Raw("scan")
	w.Check(scan == "null", "a run without a scan says %s", scan)
}

func foundShown(w *Walk) {
	w.found("7.1")
	got := w.See(w.Worker("GET", object("7.1", "o1"), nil))
	w.Check(got.Text("found_at") != "", "%s", got.Body)
}

func foundReserved(w *Walk) {
	fence := w.grant("a7")
	w.found(fence)
	w.See(w.reserve(fence, "o1", nil))
}

func foundUsed(w *Walk) {
	fence := w.grant("a7")
	w.found(fence)
	w.See(w.seal(fence, "o1"))
	w.See(w.publish("k1", body{"fence": fence, "object_id": "o1"}))
	w.See(w.Worker("DELETE", object(fence, "o1"), nil))
}

func foundReport(w *Walk) {
	w.Want(w.Reader("GET", "", nil), 404)
	w.found("7.1")
	w.See(w.Reader("GET", "", nil))
}
