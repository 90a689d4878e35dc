package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
)

// keyID is the part of a key that may be shown.
func keyID(secret string) string { return strings.Split(secret, "_")[1] }

func TestARefusedFenceIsKeptAndCountedTogether(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.Do(t, "GET", july+"/refusals", nil).Refused(t, 404, "report_not_found")
	first := w.grant(t, "july", "a7")
	w.overtake(t, "july", "b9")
	if items := w.pages(t, w.Operator, july+"/refusals", 10); len(items) != 0 {
		t.Errorf("nothing was refused yet: %v", items)
	}

	another := w.NewKey(t, api.RoleWorker, "*")
	for i := range 3 { // different requests of the same stale worker
		w.withdraw(t, "july", first, fmt.Sprint("k", i)).Refused(t, 409, "stale_fence")
		w.DB.Advance(t, time.Minute)
	}
	w.DoAs(t, w.Worker, "PUT", objectPath("july", first, "o"), nil).Refused(t, 409, "stale_fence") // counts with them
	w.DB.Advance(t, time.Minute)
	w.DoAs(t, another, "PUT", objectPath("july", first, "o"), nil).Refused(t, 409, "stale_fence")
	w.DB.Advance(t, time.Minute)
	w.withdraw(t, "july", "1.9", "k1").Refused(t, 409, "fence_not_granted")

	items := w.pages(t, w.Operator, july+"/refusals", 1)
	if len(items) != 3 {
		t.Fatalf("%d refusals: %v", len(items), items)
	}
	for i, want := range []doc{
		{"code": "fence_not_granted", "presented": "1.9", "highest": "1.2", "reason": nil, "key_id": keyID(w.Worker), "times": "1"},
		{"code": "stale_fence", "presented": "1.1", "highest": "1.2", "reason": "superseded", "key_id": keyID(another), "times": "1"},
		{"code": "stale_fence", "presented": "1.1", "highest": "1.2", "reason": "superseded", "key_id": keyID(w.Worker), "times": "4"},
	} {
		for name, value := range want {
			if got := items[i][name]; got != value && fmt.Sprint(got) != value {
				t.Errorf("refusal %d: %s is %v, want %v", i, name, got, value)
			}
		}
	}
	began, err := time.Parse(time.RFC3339Nano, items[2]["first_at"].(string))
	if err != nil {
		t.Fatal(err)
	}
	ended, err := time.Parse(time.RFC3339Nano, items[2]["last_at"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if lasted := ended.Sub(began); lasted < 3*time.Minute || lasted > 4*time.Minute {
		t.Errorf("the refusals are spread over %v", lasted)
	}
}

func TestARefusalTellsTheLastThatItWasComparedWith(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.DoAs(t, w.Worker, "DELETE", july+"/leases/z0", nil).Want(t, 200) // known, and nothing was granted
	w.withdraw(t, "july", "1.1", "k1").Refused(t, 409, "fence_not_granted")
	if items := w.pages(t, w.Operator, july+"/refusals", 1); len(items) != 1 || items[0]["highest"] != nil {
		t.Errorf("made up before any grant: %v", items)
	}
	fence := w.grant(t, "july", "a7")
	w.overtake(t, "july", "b9")
	w.withdraw(t, "july", fence, "k1").Refused(t, 409, "stale_fence")
	third := w.overtake(t, "july", "c1")
	last := func(presented, highest, reason, times string) {
		t.Helper()
		got := w.pages(t, w.Operator, july+"/refusals", 1)[0]
		if got["presented"] != presented || got["highest"] != highest || got["reason"] != reason || fmt.Sprint(got["times"]) != times {
			t.Errorf("the last refusal: %v", got)
		}
	}
	w.withdraw(t, "july", fence, "k1").Refused(t, 409, "stale_fence")
	last(fence, third, "superseded", "2")
	w.Do(t, "POST", july+"/lease/revoke", doc{"reason": "it hangs"}).Want(t, 200)
	w.withdraw(t, "july", third, "k1").Refused(t, 409, "stale_fence")
	last(third, third, "revoked", "1")
	w.closeEpoch(t)
	w.withdraw(t, "july", third, "k1").Refused(t, 409, "stale_fence")
	if got := w.pages(t, w.Operator, july+"/refusals", 1)[0]; got["presented"] != third || fmt.Sprint(got["times"]) != "2" {
		t.Errorf("the last refusal: %v", got)
	}
}

func TestOtherRefusalsAreNotKept(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.withdraw(t, "july", fence, "k1").Want(t, 201)
	w.withdraw(t, "july", fence, "k2").Refused(t, 428, "expected_version_required")
	w.withdraw(t, "july", fence, "k2", 7).Refused(t, 412, "version_conflict")
	w.withdraw(t, "july", "01.1", "k2").Refused(t, 400, "invalid_fence")
	w.set(t, "july", doc{"fencing": "live", "publishes_per_grant": "one"})
	w.withdraw(t, "july", fence, "k2", 1).Refused(t, 409, "grant_already_used")
	w.overtake(t, "july", "b9")
	w.withdraw(t, "july", fence, "k1").Want(t, 200) // the repeat of what was applied is no refusal
	if items := w.pages(t, w.Operator, july+"/refusals", 10); len(items) != 0 {
		t.Errorf("kept: %v", items)
	}
}

func TestRefusalsAreForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.overtake(t, "july", "b9")
	w.withdraw(t, "july", fence, "k1").Refused(t, 409, "stale_fence")
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{29 * day, 1}, {2 * day, 0}} {
		w.DB.Advance(t, c.after)
		w.collect(t, false)
		if items := w.pages(t, w.Operator, july+"/refusals", 10); len(items) != c.want {
			t.Errorf("%v later: %v", c.after, items)
		}
	}
}
