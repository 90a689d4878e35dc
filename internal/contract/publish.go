package contract

import "strings"

func beforeCases() []Case {
	const table = "Before a publish"
	return []Case{
		{Table: table, Row: "400 missing_idempotency_key", Steps: publishWithoutKey},
		{Table: table, Row: `400 invalid_request {"field":"Idempotency-Key"}`, Steps: publishBadKey},
		{Table: table, Row: "400 missing_fence", Steps: publishWithoutFence},
		{Table: table, Row: "400 invalid_fence", Steps: publishBadFence},
		{Table: table, Row: "400 invalid_request {field}", Steps: publishNotOne},
		{Table: table, Row: `400 invalid_request {"field":"metadata"}`, Steps: publishMuchMetadata},
		{Table: table, Row: "404 report_not_found", Steps: publishNoReport},
	}
}

func publishWithoutKey(w *Walk) {
	fence := w.grant("a7")
	w.See(w.Worker("POST", "publications", body{"fence": fence, "withdraw": true}))
	w.See(w.publish(`""`, body{"fence": fence, "withdraw": true})) // the quotes are not part of it
}

func publishBadKey(w *Walk) {
	fence := w.grant("a7")
	for _, key := range []string{strings.Repeat("k", 256), "schlüssel"} {
		w.See(w.publish(key, body{"fence": fence, "withdraw": true}))
	}
	w.Want(w.publish(strings.Repeat("k", 255), body{"fence": fence, "withdraw": true}), 201)
}

func publishWithoutFence(w *Walk) { w.See(w.publish("k1", body{"withdraw": true})) }

func publishBadFence(w *Walk) { w.See(w.publish("k1", body{"fence": "1", "withdraw": true})) }

func publishNotOne(w *Walk) {
	fence := w.grant("a7")
	for _, asked := range []body{
		{},
		{"object_id": "o1", "withdraw": true},
		{"object_id": "o1", "from_version": 1},
		{"from_version": 1, "withdraw": true},
		{"withdraw": false},
	} {
		asked["fence"] = fence
		w.See(w.publish("k1", asked))
	}
}

func publishMuchMetadata(w *Walk) {
	fence := w.grant("a7")
	w.See(w.publish("k1", body{"fence": fence, "withdraw": true, "metadata": body{"m": strings.Repeat("x", 8<<10)}}))
}

func publishNoReport(w *Walk) { w.See(w.publish("k1", body{"fence": "1.1", "withdraw": true})) }

func publishCases() []Case {
	const table = "Publish"
	return []Case{
		{Table: table, Row: "200 ", Steps: publishAgain},
		{Table: table, Row: "422 idempotency_key_reused", Steps: publishOtherWithKey},
		{Table: table, Row: "409 stale_fence", Steps: publishStale},
		{Table: table, Row: "409 fence_not_granted", Steps: publishMadeUp},
		{Table: table, Row: "409 lease_not_live", Steps: publishNotLive},
		{Table: table, Row: "409 grant_already_used", Steps: publishSecondOfOne},
		{Table: table, Row: "428 expected_version_required", Steps: publishUnordered},
		{Table: table, Row: "412 version_conflict", Steps: publishConflict},
		{Table: table, Row: "404 object_not_found", Steps: publishNothingToShow},
		{Table: table, Row: "201 ", Steps: publishApplied},
		{Table: table, Row: "503 unavailable", Alone: true, Steps: publishInAnOutage},
	}
}

func publishAgain(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	asked := body{"fence": fence, "object_id": "o1"}
	first := w.Want(w.publish("k1", asked), 201)
	got := w.See(w.publish("k1", body{"fence": fence, "object_id": "o1", "metadata": nil})) // absent is null
	visible, _ := got.Raw("visible")
	w.Check(visible == "true", "visible %s", visible)
	next := w.overtake("a7", "b9")
	w.Want(w.publish("k2", body{"fence": next, "withdraw": true}), 201)
	got = w.See(w.publish(`"k1"`, asked)) // stale by now; and quotes are not part of a key
	visible, _ = got.Raw("visible")
	w.Check(visible == "false", "visible %s of what was overtaken", visible)
	for _, name := range []string{"report", "version", "object", "fence", "published_at"} {
		was, _ := first.Raw(name)
		is, _ := got.Raw(name)
		w.Check(was == is, "%s is %s, and was %s in the first receipt", name, is, was)
	}
}

func publishOtherWithKey(w *Walk) {
	fence := w.published("hello")
	w.See(w.publish("k1", body{"fence": fence, "withdraw": true}))
	w.See(w.publish("k1", body{"fence": fence, "object_id": "o1", "metadata": body{"a": "b"}}))
	w.Want(w.revoke(""), 200)
	w.See(w.publish("k1", body{"fence": fence, "withdraw": true})) // it comes before the fence
	fence = w.grant("b9")
	w.Want(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 9}), 412) // refused: the key stays free
	w.Want(w.publish("k2", body{"fence": fence, "withdraw": true}), 201)
}

func publishStale(w *Walk) {
	first := w.grant("a7")
	second := w.overtake("a7", "b9")
	got := w.See(w.publish("k1", body{"fence": first, "object_id": "never", "expected_version": 9})) // it comes before these
	w.Check(got.Text("reason") == "superseded" && got.Text("presented") == first && got.Text("highest") == second, "%s", got.Body)
	w.Want(w.revoke(""), 200)
	got = w.See(w.publish("k1", body{"fence": second, "withdraw": true}))
	w.Check(got.Text("reason") == "revoked", "the reason is %q", got.Text("reason"))
}

func publishMadeUp(w *Walk) {
	fence := w.grant("a7")
	got := w.See(w.publish("k1", body{"fence": fence + "9", "withdraw": true}))
	w.Check(got.Text("presented") == fence+"9" && got.Text("granted") == fence, "%s", got.Body)
	w.Want(w.publish("k1", body{"fence": fence, "withdraw": true}), 201) // nobody was locked out
}

func publishNotLive(w *Walk) {
	w.set(body{"fencing": "live"})
	fence := w.brief("a7")
	w.See(w.publish("k1", body{"fence": fence, "withdraw": true}))
	next := w.grant("b9")
	w.Want(w.publish("k1", body{"fence": next, "withdraw": true}), 201)
}

func publishSecondOfOne(w *Walk) {
	w.set(body{"publishes_per_grant": "one"})
	fence := w.withdrawn()
	w.See(w.publish("k2", body{"fence": fence, "withdraw": true}))
	w.See(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 1}))
}

func publishUnordered(w *Walk) {
	fence := w.withdrawn()
	w.See(w.publish("k2", body{"fence": fence, "withdraw": true}))
	w.See(w.publish("k2", body{"fence": fence, "from_version": 7})) // before the version is looked up
}

func publishConflict(w *Walk) {
	fence := w.withdrawn()
	for _, version := range []int{0, 2} {
		got := w.See(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": version}))
		w.Check(got.Int("expected") == int64(version) && got.Int("actual") == 1, "%s", got.Body)
	}
	next := w.overtake("a7", "b9") // a first publish may say it too
	w.See(w.publish("k2", body{"fence": next, "object_id": "none", "expected_version": 0}))
}

func publishNothingToShow(w *Walk) {
	former := w.published("hello")
	w.stage(former, "o2", "of another grant")
	w.Want(w.publish("k2", body{"fence": former, "withdraw": true, "expected_version": 1}), 201)
	fence := w.overtake("a7", "b9")
	ask := func(asked body) {
		asked["fence"] = fence
		w.See(w.publish("k3", asked))
	}
	ask(body{"object_id": "never"})
	ask(body{"object_id": "o2"})   // of another grant
	ask(body{"from_version": 2})   // a withdrawal's
	ask(body{"from_version": 100}) // no such version
	w.Want(w.reserve(fence, "empty", nil), 201)
	ask(body{"object_id": "empty"})
	w.mismatched(fence, "other")
	ask(body{"object_id": "other"})
	w.stage(fence, "gone", "hello")
	w.Want(w.Worker("DELETE", object(fence, "gone"), nil), 200)
	ask(body{"object_id": "gone"})
	w.Want(w.Operator("POST", "publications/1/erase", body{"reason": "x"}), 200)
	ask(body{"from_version": 1})
}

func publishApplied(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	got := w.See(w.publish("k1", body{"fence": fence, "object_id": "o1", "metadata": body{"by": "walk"}}))
	w.Check(got.Int("version") == 1 && got.Text("fence") == fence && got.Text("report") == w.report, "%s", got.Body)
	w.Check(string(w.Reader("GET", "content", nil).Body) == "hello", "readers do not see it")
	withdrawal := w.See(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 1}))
	shown, _ := withdrawal.Raw("object")
	w.Check(shown == "null" && withdrawal.Int("version") == 2, "%s", withdrawal.Body)
}

func publishInAnOutage(w *Walk) {
	fence := w.grant("a7")
	w.stage(fence, "o1", "hello")
	asked := body{"fence": fence, "object_id": "o1"}
	w.whileStorageIsAway(func() {
		w.See(w.publish("k1", asked))
		w.Want(w.publish("k1", body{"fence": fence + "9", "object_id": "o1"}), 409) // what needs no storage is told
	})
	w.Want(w.seal(fence, "o1"), 200)
	got := w.See(w.whileDatabaseDies(func() Answer { return w.publish("k1", asked) }))
	w.Check(got.Text("outcome") == "unknown", "outcome %q", got.Text("outcome"))
	again := w.publish("k1", asked) // finds out
	w.Check(again.Status == 201 || again.Status == 200, "the repetition: %s", again)
}
