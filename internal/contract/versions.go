package contract

func holdCases() []Case {
	const table = "Hold"
	return []Case{
		{Table: table, Row: `200 {"result":"held"`, Steps: holdKeeps},
		{Table: table, Row: `200 {"result":"not_held"`, Steps: holdLifted},
		{Table: table, Row: "410 object_gone", Steps: holdErased},
		{Table: table, Row: "404 version_not_found", Steps: holdNoVersion},
		{Table: table, Row: "404 object_not_found", Steps: holdWithdrawal},
	}
}

func (w *Walk) hold(version string) Answer {
	return w.Operator("PUT", "publications/"+version+"/hold", nil)
}

func (w *Walk) erase(version string) Answer {
	return w.Operator("POST", "publications/"+version+"/erase", body{"reason": "it must go"})
}

func holdKeeps(w *Walk) {
	fence := w.superseded()
	for range 2 {
		w.See(w.hold("1"))
	}
	because := w.Worker("GET", object(fence, "o1"), nil).Text("kept_because")
	w.Check(because == "held", "its object is kept because %q", because)
}

func holdLifted(w *Walk) {
	fence := w.superseded()
	w.Want(w.hold("1"), 200)
	for range 2 {
		w.See(w.Operator("DELETE", "publications/1/hold", nil))
	}
	because := w.Worker("GET", object(fence, "o1"), nil).Text("kept_because")
	w.Check(because == "within_retention", "its object is kept because %q: retention begins anew", because)
}

func holdErased(w *Walk) {
	w.superseded()
	w.Want(w.erase("1"), 200)
	w.See(w.hold("1"))
}

func holdNoVersion(w *Walk) {
	w.withdrawn()
	w.See(w.hold("2"))
	w.See(w.Operator("DELETE", "publications/2/hold", nil))
}

func holdWithdrawal(w *Walk) {
	w.withdrawn()
	w.See(w.hold("1"))
}

func eraseWithdrawal(w *Walk) {
	w.withdrawn()
	w.See(w.erase("1"))
}

func eraseCollected(w *Walk) {
	w.superseded()
	w.Await("the collector has condemned the superseded object", func() bool {
		w.collect(false)
		return w.Reader("GET", "publications/1/content", nil).Status == 410
	})
	w.See(w.erase("1"))
}

func eraseCases() []Case {
	const table = "Erase"
	return []Case{
		{Table: table, Row: `200 {"result":"erased"`, Steps: eraseAll},
		{Table: table, Row: "409 object_in_use | one of these versions is visible", Steps: eraseVisible},
		{Table: table, Row: "409 object_in_use | one of these versions is held", Steps: eraseHeld},
		{Table: table, Row: "404 object_not_found", Steps: eraseWithdrawal},
		{Table: table, Row: "410 object_gone", Alone: true, Steps: eraseCollected},
		{Table: table, Row: "404 version_not_found", Steps: eraseNoVersion},
		{Table: table, Row: "400 invalid_request", Steps: eraseWithoutReason},
	}
}

func eraseAll(w *Walk) {
	fence := w.published("hello")
	w.Want(w.publish("k2", body{"fence": fence, "object_id": "o1", "expected_version": 1}), 201)
	w.Want(w.publish("k3", body{"fence": fence, "withdraw": true, "expected_version": 2}), 201)
	for range 2 {
		w.See(w.erase("1"))
	}
	for _, version := range []string{"1", "2"} {
		got := w.Reader("GET", "publications/"+version+"/content", nil)
		w.Check(got.Text("code") == "erased", "version %s: %s", version, got)
		w.Want(w.Reader("GET", "publications/"+version, nil), 200) // the receipt stays
	}
}

func eraseVisible(w *Walk) {
	fence := w.superseded()
	w.See(w.erase("2"))
	w.Want(w.publish("k3", body{"fence": fence, "from_version": 1, "expected_version": 2}), 201)
	w.See(w.erase("1")) // version 3 shows its object
}

func eraseHeld(w *Walk) {
	w.superseded()
	w.Want(w.hold("1"), 200)
	w.See(w.erase("1"))
}

func eraseNoVersion(w *Walk) {
	w.withdrawn()
	w.See(w.erase("2"))
}

func eraseWithoutReason(w *Walk) {
	w.superseded()
	w.See(w.Operator("POST", "publications/1/erase", body{}))
	w.Want(w.Reader("GET", "publications/1/content", nil), 200)
}

func refusalCases() []Case {
	const table = "Refusals"
	return []Case{
		{Table: table, Row: `200 {"items"}`, Steps: refusalsKept},
		{Table: table, Row: "404 report_not_found", Steps: refusalsOfNone},
	}
}

func refusalsKept(w *Walk) {
	first := w.grant("a7")
	second := w.overtake("a7", "b9")
	for range 2 {
		w.Want(w.publish("k1", body{"fence": first, "withdraw": true}), 409)
	}
	w.Want(w.publish("k1", body{"fence": second + "0", "withdraw": true}), 409)
	items := w.See(w.Operator("GET", "refusals", nil)).Items()
	if len(items) != 2 {
		w.Stop("%d refusals, not 2", len(items))
	}
	w.Check(items[0].Text("code") == "fence_not_granted" && items[0].Int("times") == 1, "the newest is %s", items[0].Body)
	stale := items[1]
	w.Check(stale.Text("code") == "stale_fence" && stale.Int("times") == 2 && stale.Text("presented") == first && stale.Text("highest") == second, "%s", stale.Body)
	for _, name := range []string{"key_id", "first_at", "last_at"} {
		w.Check(stale.Text(name) != "", "no %s", name)
	}
}

func refusalsOfNone(w *Walk) { w.See(w.Operator("GET", "refusals", nil)) }
