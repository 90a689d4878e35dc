package api_test

import (
	"strings"
	"testing"
	"time"
)

const july = "/v1/reports/july"

func TestALeaseIsGrantedOnceAndReplayedForItsID(t *testing.T) {
	t.Parallel()
	w := begin(t)
	asked := doc{"holder": "worker-7", "ttl_ms": 30000, "wait_ms": 0}

	got := w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", asked).Want(t, 201)
	members(t, got, "result", "report", "lease_id", "holder", "fence", "remaining_ms", "waited_ms", "version")
	equal(t, got, doc{
		"result": "acquired", "report": "july", "lease_id": "a7", "holder": "worker-7", "fence": "1.1",
		"remaining_ms": 30000, "waited_ms": 0, "version": 0,
	})

	w.DB.Advance(t, 10*time.Second)
	again := w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", asked).Want(t, 200)
	equal(t, again, doc{"result": "acquired", "fence": "1.1", "replayed": true})
	if left := again.Int(t, "remaining_ms"); left <= 0 || left > 20000 {
		t.Errorf("a replay extends the lease: %d ms are left of 20000", left)
	}
	for _, other := range []doc{{"holder": "worker-8", "ttl_ms": 30000}, {"holder": "worker-7", "ttl_ms": 30001}} {
		w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", other).Refused(t, 422, "lease_id_reused")
	}

	busy := w.DoAs(t, w.Worker, "PUT", july+"/leases/b9", asked).Refused(t, 409, "busy")
	equal(t, busy, doc{"holder": "worker-7", "outcome": "not_applied"})
	left := busy.Int(t, "retry_after_ms")
	if seconds := busy.Header.Get("Retry-After"); left <= 0 || left > 20000 || seconds != "20" {
		t.Errorf("retry_after_ms %d, Retry-After %q", left, seconds)
	}
}

func TestALeaseTellsThePresentVersion(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.published(t, "july", "hello", nil)
	w.overtake(t, "july", "b9")
	equal(t, w.DoAs(t, w.Worker, "PUT", july+"/leases/b9", doc{"holder": "worker-7", "ttl_ms": 30000}).Want(t, 200),
		doc{"version": 1, "fence": "1.2"})
}

func TestAnEndedLeaseIDIsRefusedForEverAndSaysWhy(t *testing.T) {
	t.Parallel()
	w := begin(t)
	ends := map[string]func(report string){
		"expired":  func(string) { w.DB.Advance(t, 31*time.Second) },
		"released": func(report string) { w.DoAs(t, w.Worker, "DELETE", report+"/leases/a7", nil).Want(t, 200) },
		"revoked": func(report string) {
			w.Do(t, "POST", report+"/lease/revoke", doc{"reason": "it hangs"}).Want(t, 200)
		},
		"superseded":   func(report string) { w.overtake(t, strings.TrimPrefix(report, "/v1/reports/"), "b9") },
		"epoch_closed": func(string) { w.closeEpoch(t) },
	}
	for _, reason := range []string{"expired", "released", "revoked", "superseded", "epoch_closed"} {
		report := "/v1/reports/" + reason
		w.grant(t, reason, "a7")
		ends[reason](report)
		for _, request := range [][2]string{{"PUT", "/leases/a7"}, {"POST", "/leases/a7/renew"}, {"DELETE", "/leases/a7"}} {
			var body any
			if request[0] == "PUT" {
				body = doc{"holder": "worker-7", "ttl_ms": 30000}
			}
			if reason == "released" && request[0] == "DELETE" {
				equal(t, w.DoAs(t, w.Worker, "DELETE", report+"/leases/a7", nil).Want(t, 200), doc{"result": "already_released"})
				continue
			}
			got := w.DoAs(t, w.Worker, request[0], report+request[1], body).Refused(t, 410, "lease_lost")
			equal(t, got, doc{"reason": reason, "outcome": "not_applied"})
		}
		lease := w.DoAs(t, w.Worker, "GET", report+"/leases/a7", nil).Want(t, 200)
		equal(t, lease, doc{"state": "ended", "reason": reason, "fence": lease.String(t, "fence")})
	}
}

// closeEpoch begins an epoch whose floor closes all before it, as an operator does after a restore.
func (w *world) closeEpoch(t *testing.T) {
	t.Helper()
	present := w.Do(t, "GET", "/v1/epoch", nil).Want(t, 200).Int(t, "epoch")
	w.Do(t, "POST", "/v1/epoch", doc{"reason": "restored", "expected": present, "floor": true}).Want(t, 200)
}

func TestARenewalKeepsTheFenceAndNeverShortens(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	w.DB.Advance(t, 20*time.Second)

	for _, body := range []any{nil, raw(""), doc{}, raw(`{"ttl_ms":null}`)} { // the ttl of the grant
		got := w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", body).Want(t, 200)
		members(t, got, "result", "fence", "remaining_ms")
		equal(t, got, doc{"result": "renewed", "fence": "1.1", "remaining_ms": 30000})
	}
	equal(t, w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", doc{"ttl_ms": 60000}).Want(t, 200), doc{"remaining_ms": 60000})
	shorter := w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", doc{"ttl_ms": 1000}).Want(t, 200)
	if left := shorter.Int(t, "remaining_ms"); left < 50000 {
		t.Errorf("a shorter renewal takes back what was granted: %d ms", left)
	}
	for _, report := range []string{"july", "never"} {
		w.DoAs(t, w.Worker, "POST", "/v1/reports/"+report+"/leases/x1/renew", nil).Refused(t, 404, "lease_not_found")
	}
}

func TestAReleaseOfAnUnknownIDBarsIt(t *testing.T) {
	t.Parallel()
	w := begin(t)
	equal(t, w.DoAs(t, w.Worker, "DELETE", july+"/leases/a7", nil).Want(t, 200), doc{"result": "already_released"})
	equal(t, w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", doc{"holder": "w", "ttl_ms": 1000}).Refused(t, 410, "lease_lost"),
		doc{"reason": "released"})
	equal(t, w.DoAs(t, w.Worker, "GET", july+"/leases/a7", nil).Want(t, 200),
		doc{"state": "ended", "reason": "released", "fence": nil})

	w.grant(t, "july", "b9")
	for i, want := range []string{"released", "already_released", "already_released"} {
		got := w.DoAs(t, w.Worker, "DELETE", july+"/leases/b9", nil).Want(t, 200)
		members(t, got, "result")
		if got.String(t, "result") != want {
			t.Errorf("release %d: %s, want %s", i+1, got.Body, want)
		}
	}
}

func TestALateReleaseLeavesTheSuccessorsLeaseAlone(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	w.overtake(t, "july", "b9")
	w.DoAs(t, w.Worker, "DELETE", july+"/leases/a7", nil).Refused(t, 410, "lease_lost")
	equal(t, w.DoAs(t, w.Worker, "GET", july+"/lease", nil).Want(t, 200), doc{"lease_id": "b9", "state": "live"})
}

func TestTheLiveLeaseIsShownWhileItLives(t *testing.T) {
	t.Parallel()
	w := begin(t)
	live := func(status int) {
		t.Helper()
		a := w.DoAs(t, w.Worker, "GET", july+"/lease", nil).Want(t, status)
		if status == 404 {
			a.Refused(t, 404, "lease_not_found")
		}
	}
	live(404)
	w.grant(t, "july", "a7")
	got := w.DoAs(t, w.Worker, "GET", july+"/lease", nil).Want(t, 200)
	members(t, got, "report", "lease_id", "state", "holder", "fence", "ttl_ms", "granted_at", "remaining_ms")
	equal(t, got, doc{"report": "july", "lease_id": "a7", "state": "live", "holder": "worker-7", "fence": "1.1", "ttl_ms": 30000})
	w.DB.Advance(t, 31*time.Second)
	live(404)
	w.DoAs(t, w.Worker, "GET", july+"/leases/x1", nil).Refused(t, 404, "lease_not_found")
	w.DoAs(t, w.Worker, "GET", "/v1/reports/never/leases", nil).Refused(t, 404, "report_not_found")
}

func TestARevocationBarsTheFenceAndAllBelow(t *testing.T) {
	t.Parallel()
	w := begin(t)
	revoke := func(body doc) (string, doc) { return july + "/lease/revoke", body }
	path, body := revoke(doc{"reason": "it hangs"})
	w.Do(t, "POST", path, body).Refused(t, 404, "report_not_found")

	w.DoAs(t, w.Worker, "DELETE", july+"/leases/z0", nil).Want(t, 200) // the report exists, and nothing was granted
	equal(t, w.Do(t, "POST", path, body).Refused(t, 409, "fence_not_granted"), doc{"granted": nil})

	first := w.grant(t, "july", "a7")
	for range 2 { // repeated
		got := w.Do(t, "POST", path, doc{"reason": "it hangs", "fence": first}).Want(t, 200)
		members(t, got, "result", "report", "fence")
		equal(t, got, doc{"result": "revoked", "report": "july", "fence": "1.1"})
	}
	w.DoAs(t, w.Worker, "GET", july+"/lease", nil).Refused(t, 404, "lease_not_found")
	stale := w.publish(t, "july", "k1", doc{"fence": first, "withdraw": true}).Refused(t, 409, "stale_fence")
	equal(t, stale, doc{"presented": "1.1", "highest": "1.1", "reason": "revoked"})

	second := w.grant(t, "july", "b9") // at once: the lock is cleared
	w.Do(t, "POST", path, doc{"reason": "again", "fence": first}).Want(t, 200)
	equal(t, w.DoAs(t, w.Worker, "GET", july+"/lease", nil).Want(t, 200), doc{"lease_id": "b9"})
	w.publish(t, "july", "k2", doc{"fence": second, "withdraw": true}).Want(t, 201)

	equal(t, w.Do(t, "POST", path, doc{"reason": "made up", "fence": "1.3"}).Refused(t, 409, "fence_not_granted"),
		doc{"presented": "1.3", "granted": "1.2", "outcome": "not_applied"})
	w.Do(t, "POST", path, doc{"reason": "x", "fence": "01.1"}).Refused(t, 400, "invalid_fence")
	equal(t, w.Do(t, "POST", path, raw(`{"reason":"the highest","fence":null}`)).Want(t, 200), doc{"fence": "1.2"})
	for _, reason := range []any{nil, "", strings.Repeat("x", 1001), 7} {
		equal(t, w.Do(t, "POST", path, doc{"reason": reason}).Refused(t, 400, "invalid_request"), doc{"field": "reason"})
	}
}

func TestACounterAtItsEndIsExhausted(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.grant(t, "july", "a7")
	w.DoAs(t, w.Worker, "DELETE", july+"/leases/a7", nil).Want(t, 200)
	w.DB.Exec(t, "UPDATE report SET granted_counter = 9223372036854775807")
	w.DoAs(t, w.Worker, "PUT", july+"/leases/b9", doc{"holder": "w", "ttl_ms": 1000}).Refused(t, 409, "counter_exhausted")
	w.closeEpoch(t)
	equal(t, w.DoAs(t, w.Worker, "PUT", july+"/leases/b9", doc{"holder": "w", "ttl_ms": 1000}).Want(t, 201), doc{"fence": "2.1"})
}

func TestALeaseIsAskedForWithinItsLimits(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for name, c := range map[string]struct {
		field string
		body  any
	}{
		"no holder":            {"holder", doc{"ttl_ms": 30000}},
		"null holder":          {"holder", doc{"holder": nil, "ttl_ms": 30000}},
		"empty holder":         {"holder", doc{"holder": "", "ttl_ms": 30000}},
		"201 characters":       {"holder", doc{"holder": strings.Repeat("ü", 201), "ttl_ms": 30000}},
		"no ttl":               {"ttl_ms", doc{"holder": "w"}},
		"under a second":       {"ttl_ms", doc{"holder": "w", "ttl_ms": 999}},
		"over a day":           {"ttl_ms", doc{"holder": "w", "ttl_ms": 86400001}},
		"negative":             {"ttl_ms", doc{"holder": "w", "ttl_ms": -1}},
		"a text":               {"ttl_ms", doc{"holder": "w", "ttl_ms": "30s"}},
		"waiting for long":     {"wait_ms", doc{"holder": "w", "ttl_ms": 30000, "wait_ms": 60001}},
		"waiting in the past":  {"wait_ms", doc{"holder": "w", "ttl_ms": 30000, "wait_ms": -1}},
		"a member of no sense": {"ttl", doc{"holder": "w", "ttl_ms": 30000, "ttl": 1}},
	} {
		got := w.DoAs(t, w.Worker, "PUT", july+"/leases/a7", c.body).Refused(t, 400, "invalid_request")
		if got.String(t, "field") != c.field {
			t.Errorf("%s: %s, want the field %s", name, got.Body, c.field)
		}
	}
	equal(t, w.DoAs(t, w.Worker, "POST", july+"/leases/a7/renew", doc{"ttl_ms": 999}).Refused(t, 400, "invalid_request"),
		doc{"field": "ttl_ms"})
	for _, id := range []string{"-a", ".a", "a%20b", "a%2Cb", strings.Repeat("a", 65), "%C3%BC"} {
		equal(t, w.DoAs(t, w.Worker, "PUT", july+"/leases/"+id, doc{"holder": "w", "ttl_ms": 30000}).Refused(t, 400, "invalid_request"),
			doc{"field": "lease_id"})
	}
	for report, lease := range map[string]string{
		"a": strings.Repeat("a", 64), strings.Repeat("r", 200): "6e3b2f0e-8a41-4c8e-9f4b-0d8a1d6b2c11", "a.b_c-D9": "A.b_c-9",
	} {
		w.DoAs(t, w.Worker, "PUT", "/v1/reports/"+report+"/leases/"+lease,
			doc{"holder": strings.Repeat("ü", 200), "ttl_ms": 86400000}).Want(t, 201)
	}
}
