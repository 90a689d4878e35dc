package contract

func renewCases() []Case {
	const table = "Renew"
	return []Case{
		{Table: table, Row: `200 {"result":"renewed"`, Steps: renewKeeps},
		{Table: table, Row: `410 lease_lost {"reason":"expired"}`, Steps: renewExpired},
		{Table: table, Row: `410 lease_lost {"reason":"superseded"}`, Steps: renewSuperseded},
		{Table: table, Row: `410 lease_lost {"reason":"released"}`, Steps: renewReleased},
		{Table: table, Row: `410 lease_lost {"reason":"revoked"}`, Steps: renewRevoked},
		{Table: table, Row: "404 lease_not_found", Steps: renewUnknown},
		{Table: table, Row: "400 invalid_request", Steps: renewBeyondLimits},
	}
}

func renewKeeps(w *Walk) {
	fence := w.grant("a7")
	for _, asked := range []any{nil, body{}, body{"ttl_ms": 1000}} { // the last does not take back what was granted
		got := w.See(w.Worker("POST", "leases/a7/renew", asked))
		w.Check(got.Text("fence") == fence, "fence %s, not %s", got.Text("fence"), fence)
		w.Check(got.Int("remaining_ms") > 40000, "remaining_ms %d of 60000", got.Int("remaining_ms"))
	}
}

func renewExpired(w *Walk) {
	w.brief("a7")
	for range 2 { // lost stays lost
		w.See(w.Worker("POST", "leases/a7/renew", nil))
	}
}

func renewSuperseded(w *Walk) {
	w.brief("a7")
	w.grant("b9")
	w.See(w.Worker("POST", "leases/a7/renew", nil))
	got := w.Worker("GET", "lease", nil)
	w.Check(got.Text("lease_id") == "b9", "the live lease is %q", got.Text("lease_id"))
}

func renewReleased(w *Walk) {
	w.grant("a7")
	w.release("a7")
	w.See(w.Worker("POST", "leases/a7/renew", nil))
}

func renewRevoked(w *Walk) {
	w.grant("a7")
	w.Want(w.revoke(""), 200)
	w.See(w.Worker("POST", "leases/a7/renew", nil))
}

func renewUnknown(w *Walk) {
	w.See(w.Worker("POST", "leases/x1/renew", nil))
	w.grant("a7")
	w.See(w.Worker("POST", "leases/x1/renew", nil))
}

func renewBeyondLimits(w *Walk) {
	w.grant("a7")
	w.See(w.Worker("POST", "leases/a7/renew", body{"ttl_ms": 999}))
	w.See(w.Worker("POST", "leases/a7/renew", body{"ttl_ms": 24*60*60*1000 + 1}))
}

func releaseCases() []Case {
	const table = "Release"
	return []Case{
		{Table: table, Row: `200 {"result":"released"}`, Steps: releaseLive},
		{Table: table, Row: `200 {"result":"already_released"} | it was`, Steps: releaseAgain},
		{Table: table, Row: `200 {"result":"already_released"} | the id`, Steps: releaseUnknown},
		{Table: table, Row: "410 lease_lost", Steps: releaseLate},
	}
}

func releaseLive(w *Walk) {
	w.grant("a7")
	w.See(w.Worker("DELETE", "leases/a7", nil))
	w.Want(w.Worker("GET", "lease", nil), 404)
}

func releaseAgain(w *Walk) {
	w.grant("a7")
	w.release("a7")
	w.See(w.Worker("DELETE", "leases/a7", nil))
}

func releaseUnknown(w *Walk) {
	w.See(w.Worker("DELETE", "leases/a7", nil))
	got := w.Want(w.Worker("PUT", "leases/a7", longLease()), 410)
	w.Check(got.Text("reason") == "released", "the reason is %q", got.Text("reason"))
}

func releaseLate(w *Walk) {
	w.brief("a7")
	w.grant("b9")
	w.See(w.Worker("DELETE", "leases/a7", nil))
	got := w.Worker("GET", "lease", nil)
	w.Check(got.Text("lease_id") == "b9", "the live lease is %q", got.Text("lease_id"))
}

func leaseCases() []Case {
	const table = "Looking at leases"
	return []Case{
		{Table: table, Row: `200 {"report","lease_id","state":"live"`, Steps: lookAtLive},
		{Table: table, Row: `200 {"report","lease_id","state":"ended"`, Steps: lookAtEnded},
		{Table: table, Row: `200 {"items"}`, Steps: lookAtAll},
		{Table: table, Row: "404 lease_not_found", Steps: lookAtNone},
	}
}

func lookAtLive(w *Walk) {
	w.grant("a7")
	w.See(w.Worker("GET", "leases/a7", nil))
	w.See(w.Worker("GET", "lease", nil))
}

func lookAtEnded(w *Walk) {
	w.brief("a7")
	got := w.See(w.Worker("GET", "leases/a7", nil))
	w.Check(got.Text("reason") == "expired", "the reason is %q", got.Text("reason"))
	w.release("b9") // was never granted
	got = w.See(w.Worker("GET", "leases/b9", nil))
	fence, _ := got.Raw("fence")
	w.Check(fence == "null", "the fence of what was never granted is %s", fence)
}

func lookAtAll(w *Walk) {
	w.grant("a7")
	w.overtake("a7", "b9")
	items := w.See(w.Worker("GET", "leases", nil)).Items()
	w.Check(len(items) == 2 && items[0].Text("lease_id") == "b9" && items[1].Text("lease_id") == "a7", "%d leases", len(items))
}

func lookAtNone(w *Walk) {
	w.brief("a7")
	w.See(w.Worker("GET", "lease", nil))
	w.See(w.Worker("GET", "leases/x1", nil))
}
