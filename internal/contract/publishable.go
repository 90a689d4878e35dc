package contract

func publishableCases() []Case {
	const table = "What may be published"
	return []Case{
		{Table: table, Row: `201 {"result":"applied","object":{…}} | an object`, Steps: publishReserved},
		{Table: table, Row: `201 {"result":"applied","object":{…}} | what`, Steps: publishVisible},
		{Table: table, Row: `201 {"result":"applied","object":{…}} | from_version`, Steps: publishOlder},
		{Table: table, Row: `201 {"result":"applied","object":null}`, Steps: publishWithdrawal},
		{Table: table, Row: `201 {"result":"applied"} | the same fence`, Steps: publishOnceMore},
		{Table: table, Row: `201 {"result":"applied"} | modes granted`, Steps: publishExpired},
		{Table: table, Row: `201 {"result":"applied"} | mode accepted`, Steps: publishAccepted},
		{Table: table, Row: `409 stale_fence {"reason":"superseded"} | mode accepted`, Steps: publishAfterAccepted},
	}
}

func publishReserved(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	w.See(w.publish("k1", body{"fence": fence, "object_id": "o1"}))
	state := w.Worker("GET", object(fence, "o1"), nil).Text("state")
	w.Check(state == "sealed", "it is %s", state)
}

func publishVisible(w *Walk) {
	fence := w.published("hello")
	got := w.See(w.publish("k2", body{"fence": fence, "object_id": "o1", "expected_version": 1}))
	w.Check(got.Int("version") == 2, "version %d", got.Int("version"))
}

func publishOlder(w *Walk) {
	w.superseded()
	fence := w.overtake("a7", "b9")
	w.See(w.publish("k3", body{"fence": fence, "from_version": 1}))
	w.Check(string(w.Reader("GET", "content", nil).Body) == "first", "the older version is not shown")
}

func publishWithdrawal(w *Walk) {
	fence := w.published("hello")
	w.See(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 1, "metadata": body{"why": "wrong"}}))
	metadata, _ := w.Reader("GET", "publications/2", nil).Raw("metadata")
	w.Check(metadata == `{"why":"wrong"}`, "metadata %s", metadata)
}

func publishOnceMore(w *Walk) {
	fence := w.withdrawn()
	w.See(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 1}))
}

func publishExpired(w *Walk) {
	for i, mode := range []string{"granted", "accepted"} {
		w.set(body{"fencing": mode})
		fence := w.brief("a" + mode)
		got := w.See(w.publish("k"+mode, body{"fence": fence, "withdraw": true}))
		w.Check(got.Int("version") == int64(i+1), "version %d", got.Int("version"))
	}
}

func publishAccepted(w *Walk) {
	w.set(body{"fencing": "accepted"})
	first := w.grant("a7")
	w.overtake("a7", "b9")
	w.See(w.publish("k1", body{"fence": first, "withdraw": true}))
}

func publishAfterAccepted(w *Walk) {
	w.set(body{"fencing": "accepted"})
	first := w.grant("a7")
	second := w.overtake("a7", "b9")
	w.Want(w.publish("k1", body{"fence": second, "withdraw": true}), 201)
	got := w.See(w.publish("k2", body{"fence": first, "withdraw": true}))
	w.Check(got.Text("highest") == second, "the highest is %s", got.Text("highest"))
}

func historyCases() []Case {
	const table = "The history"
	return []Case{
		{Table: table, Row: `200 {"items"} | GET`, Steps: historyList},
		{Table: table, Row: `200 {"report","version"`, Steps: historyVersion},
		{Table: table, Row: `200 {"items"} of one or none`, Steps: historyByKey},
		{Table: table, Row: "404 version_not_found", Steps: historyNoVersion},
		{Table: table, Row: "404 report_not_found", Steps: historyNoReport},
	}
}

func historyList(w *Walk) {
	w.superseded()
	items := w.See(w.Reader("GET", "publications", nil)).Items()
	w.Check(len(items) == 2 && items[0].Int("version") == 2 && items[1].Int("version") == 1, "%d versions", len(items))
}

func historyVersion(w *Walk) {
	w.superseded()
	w.Want(w.Operator("POST", "publications/1/erase", body{"reason": "x"}), 200) // the receipt outlives the bytes
	got := w.See(w.Reader("GET", "publications/1", nil))
	receipt, _ := got.Raw("object")
	object := Answer{Body: []byte(receipt)}
	w.Check(object.Int("size") == 5 && object.Text("sha256") == digest("first") && object.Text("content_type") == "text/csv", "the receipt is %s", receipt)
	visible, _ := got.Raw("visible")
	w.Check(visible == "false" && got.Text("idempotency_key") == "k1", "%s", got.Body)
}

func historyByKey(w *Walk) {
	w.superseded()
	for key, want := range map[string]int{"k1": 1, "none": 0, "%22k2%22": 1} {
		items := w.See(w.Reader("GET", "publications?idempotency_key="+key, nil)).Items()
		w.Check(len(items) == want, "%s: %d versions", key, len(items))
	}
}

func historyNoVersion(w *Walk) {
	w.withdrawn()
	w.See(w.Reader("GET", "publications/2", nil))
	w.See(w.Reader("GET", "publications/2/content", nil))
}

func historyNoReport(w *Walk) {
	for _, path := range []string{"publications", "publications/1", "publications?idempotency_key=k1"} {
		w.See(w.Reader("GET", path, nil))
	}
}
