package contract

func settingsCases() []Case {
	const table = "Settings"
	return []Case{
		{Table: table, Row: `200 {"report","fencing"`, Steps: settingsShown},
		{Table: table, Row: `200 {"fencing":"live","own"}`, Steps: settingsChanged},
		{Table: table, Row: `200 {"fencing":"granted"}`, Steps: settingsCreate},
		{Table: table, Row: `200 {"keep_versions":1}`, Steps: settingsKeep},
		{Table: table, Row: "404 report_not_found", Steps: settingsOfNone},
		{Table: table, Row: `400 invalid_request {"field":"fencing"}`, Steps: settingsNoMode},
		{Table: table, Row: `400 invalid_request {"field":"retention_ms"}`, Steps: settingsShortRetention},
		{Table: table, Row: `400 invalid_request {"field":"keep_versions"}`, Steps: settingsManyVersions},
	}
}

func settingsShown(w *Walk) {
	w.grant("a7")
	got := w.See(w.Operator("GET", "settings", nil))
	own, _ := got.Raw("own")
	w.Check(got.Text("fencing") == "granted" && got.Text("publishes_per_grant") == "many" && own == "[]", "%s", got.Body)
	w.set(body{"keep_versions": 3, "publishes_per_grant": "one"})
	got = w.See(w.Operator("GET", "settings", nil))
	own, _ = got.Raw("own")
	w.Check(own == `["publishes_per_grant","keep_versions"]` && got.Int("keep_versions") == 3, "%s", got.Body)
}

func settingsChanged(w *Walk) {
	for range 2 {
		got := w.See(w.Operator("PATCH", "settings", body{"fencing": "live"}))
		own, _ := got.Raw("own")
		w.Check(own == `["fencing"]`, "own is %s", own)
	}
	got := w.Want(w.Operator("PATCH", "settings", body{"fencing": nil}), 200)
	w.Check(got.Text("fencing") == "granted", "given back, fencing is %s", got.Text("fencing"))
}

func settingsCreate(w *Walk) {
	w.See(w.Operator("PATCH", "settings", body{}))
	w.Want(w.Reader("GET", "", nil), 404)
	w.See(w.Operator("GET", "settings", nil))
}

func settingsKeep(w *Walk) {
	fence := w.superseded()
	w.See(w.Operator("PATCH", "settings", body{"keep_versions": 1}))
	because := w.Worker("GET", object(fence, "o1"), nil).Text("kept_because")
	w.Check(because == "kept_version", "the object is kept because %q", because)
	w.set(body{"keep_versions": nil})
	because = w.Worker("GET", object(fence, "o1"), nil).Text("kept_because")
	w.Check(because == "within_retention", "given back, the object is kept because %q", because)
}

func settingsOfNone(w *Walk) { w.See(w.Operator("GET", "settings", nil)) }

func settingsNoMode(w *Walk) { w.See(w.Operator("PATCH", "settings", body{"fencing": "strict"})) }

func settingsShortRetention(w *Walk) { w.See(w.Operator("PATCH", "settings", body{"retention_ms": 1})) }

func settingsManyVersions(w *Walk) {
	w.See(w.Operator("PATCH", "settings", body{"keep_versions": 1001}))
	w.See(w.Operator("PATCH", "settings", body{"keep_versions": -1}))
}

func revokeCases() []Case {
	const table = "Revoke"
	return []Case{
		{Table: table, Row: `200 {"result":"revoked","report"`, Steps: revokeHighest},
		{Table: table, Row: `200 {"result":"revoked","fence"} | with`, Steps: revokeLower},
		{Table: table, Row: "409 stale_fence", Steps: revokeBars},
		{Table: table, Row: "409 fence_not_granted", Steps: revokeMadeUp},
		{Table: table, Row: "404 report_not_found", Steps: revokeNoReport},
		{Table: table, Row: "400 invalid_request", Steps: revokeWithoutReason},
	}
}

func revokeHighest(w *Walk) {
	fence := w.grant("a7")
	for range 2 {
		got := w.See(w.revoke(""))
		w.Check(got.Text("fence") == fence, "it bars %s, not %s", got.Text("fence"), fence)
	}
	w.Want(w.Worker("GET", "lease", nil), 404)
	w.grant("b9") // at once
}

func revokeLower(w *Walk) {
	first := w.grant("a7")
	w.overtake("a7", "b9")
	w.See(w.revoke(first))
	w.Want(w.Worker("GET", "lease", nil), 200)
}

func revokeBars(w *Walk) {
	for _, mode := range []string{"granted", "accepted", "live"} {
		w.set(body{"fencing": mode})
		fence := w.grant("a" + mode)
		w.Want(w.revoke(fence), 200)
		w.See(w.publish("k1", body{"fence": fence, "withdraw": true}))
	}
}

func revokeMadeUp(w *Walk) {
	w.release("z0") // there is a report now, and no grant
	w.See(w.revoke(""))
	fence := w.grant("a7")
	w.See(w.revoke(fence + "0"))
}

func revokeNoReport(w *Walk) { w.See(w.revoke("")) }

func revokeWithoutReason(w *Walk) {
	w.grant("a7")
	w.See(w.Operator("POST", "lease/revoke", body{}))
	w.See(w.Operator("POST", "lease/revoke", body{"reason": ""}))
}
