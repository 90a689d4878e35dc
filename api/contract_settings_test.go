package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/service"
	"github.com/fenceline/fenceline/internal/testservice"
)

const day = 24 * time.Hour

// set changes settings of a report with the operator's key.
func (w *world) set(t *testing.T, report string, changes doc) testservice.Answer {
	t.Helper()
	return w.Do(t, "PATCH", "/v1/reports/"+report+"/settings", changes).Want(t, 200)
}

// withdraw publishes nothing, as the next version of a report.
func (w *world) withdraw(t *testing.T, report, fence, key string, expected ...int) testservice.Answer {
	t.Helper()
	body := doc{"fence": fence, "withdraw": true}
	if len(expected) > 0 {
		body["expected_version"] = expected[0]
	}
	return w.publish(t, report, key, body)
}

func TestTheSettingsOfAReportAreItsOwnOrTheServices(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.Do(t, "GET", july+"/settings", nil).Refused(t, 404, "report_not_found")

	created := w.set(t, "july", doc{})
	members(t, created, "report", "fencing", "publishes_per_grant", "retention_ms", "keep_versions", "token_source", "own")
	defaults := doc{
		"report": "july", "fencing": "granted", "publishes_per_grant": "many", "retention_ms": (14 * day).Milliseconds(),
		"keep_versions": 0, "token_source": "builtin", "own": []string{},
	}
	equal(t, created, defaults)
	equal(t, w.Do(t, "GET", july+"/settings", nil).Want(t, 200), defaults)
	w.get(t, july).Refused(t, 404, "not_published") // it has come into being

	all := doc{"fencing": "live", "publishes_per_grant": "one", "retention_ms": (8 * day).Milliseconds(), "keep_versions": 1000}
	own := []string{"fencing", "publishes_per_grant", "retention_ms", "keep_versions"}
	for _, name := range own {
		w.set(t, name, doc{name: all[name]})
		want := doc{"report": name, "own": []string{name}}
		for _, other := range own {
			want[other] = defaults[other]
		}
		want[name] = all[name]
		equal(t, w.Do(t, "GET", "/v1/reports/"+name+"/settings", nil).Want(t, 200), want)
		equal(t, w.set(t, name, doc{name: nil}), doc{name: defaults[name], "own": []string{}})
	}
	equal(t, w.set(t, "july", all), all)
	equal(t, w.set(t, "july", doc{"keep_versions": 0}), doc{"keep_versions": 0, "own": own, "fencing": "live"}) // 0 is a value
	equal(t, w.set(t, "july", doc{"fencing": nil, "token_source": "builtin"}), doc{"fencing": "granted", "own": own[1:]})
	equal(t, w.set(t, "july", doc{"token_source": nil}), doc{"token_source": "builtin", "own": own[1:]})
}

func TestTheDefaultsAreTheServicesConfiguration(t *testing.T) {
	t.Parallel()
	w := begin(t, func(c *service.Config) {
		c.Catalog = catalog.Config{
			Fencing: catalog.Accepted, PublishesPerGrant: catalog.One, Retention: 20 * day, KeepVersions: 2,
			RetentionAbove: 2 * day, RetentionBelow: 30 * day,
		}
	})
	equal(t, w.set(t, "july", doc{}), doc{
		"fencing": "accepted", "publishes_per_grant": "one", "retention_ms": (20 * day).Milliseconds(), "keep_versions": 2, "own": []string{},
	})
	w.set(t, "july", doc{"retention_ms": (2*day + time.Millisecond).Milliseconds()})
	w.set(t, "july", doc{"retention_ms": (30*day - time.Millisecond).Milliseconds()})
	for _, bad := range []time.Duration{2 * day, 30 * day} {
		equal(t, w.Do(t, "PATCH", july+"/settings", doc{"retention_ms": bad.Milliseconds()}).Refused(t, 400, "invalid_request"),
			doc{"field": "retention_ms"})
	}
	first := w.grant(t, "july", "a7")
	w.overtake(t, "july", "b9")
	w.withdraw(t, "july", first, "k1").Want(t, 201) // accepted: nobody has published since
	w.withdraw(t, "july", first, "k2", 1).Refused(t, 409, "grant_already_used")
}

func TestASettingIsRefusedWithItsName(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for name, c := range map[string]struct{ field, body string }{
		"a mode of no sense":    {"fencing", `{"fencing":"strict"}`},
		"an empty mode":         {"fencing", `{"fencing":""}`},
		"a mode in capitals":    {"fencing", `{"fencing":"Live"}`},
		"a number as mode":      {"fencing", `{"fencing":1}`},
		"two publishes":         {"publishes_per_grant", `{"publishes_per_grant":"two"}`},
		"one as a number":       {"publishes_per_grant", `{"publishes_per_grant":1}`},
		"no retention":          {"retention_ms", `{"retention_ms":0}`},
		"a negative retention":  {"retention_ms", `{"retention_ms":-1}`},
		"as the restore window": {"retention_ms", fmt.Sprintf(`{"retention_ms":%d}`, (7 * day).Milliseconds())},
		"as the tombstones":     {"retention_ms", fmt.Sprintf(`{"retention_ms":%d}`, (90 * day).Milliseconds())},
		"300 million years":     {"retention_ms", `{"retention_ms":9223372036854775807}`},
		"a half millisecond":    {"retention_ms", `{"retention_ms":1209600000.5}`},
		"a text as retention":   {"retention_ms", `{"retention_ms":"14d"}`},
		"fewer than none":       {"keep_versions", `{"keep_versions":-1}`},
		"more than 1000":        {"keep_versions", `{"keep_versions":1001}`},
		"half a version":        {"keep_versions", `{"keep_versions":0.5}`},
		"another authority":     {"token_source", `{"token_source":"zookeeper"}`},
		"an epoch of it":        {"source_epoch", `{"source_epoch":2}`},
		"an unknown setting":    {"fence", `{"fence":"1.1"}`},
		"the report":            {"report", `{"report":"july"}`},
		"a setting twice":       {"fencing", `{"fencing":"live","fencing":"live"}`},
		"one good and one bad":  {"keep_versions", `{"fencing":"live","keep_versions":-1}`},
		"a list":                {"body", `[]`},
		"nothing":               {"body", ``},
	} {
		got := w.Do(t, "PATCH", july+"/settings", raw(c.body)).Refused(t, 400, "invalid_request")
		if got.String(t, "field") != c.field || got.String(t, "outcome") != "not_applied" {
			t.Errorf("%s: %s, want the field %s", name, got.Body, c.field)
		}
	}
	w.Do(t, "GET", july+"/settings", nil).Refused(t, 404, "report_not_found") // nothing of all that was applied
}

func TestTheSettingsAreTheOperatorsAndOfItsReports(t *testing.T) {
	t.Parallel()
	w := begin(t)
	key := w.NewKey(t, api.RoleOperator, "sales.*")
	w.DoAs(t, key, "PATCH", "/v1/reports/sales.a/settings", doc{"fencing": "live"}).Want(t, 200)
	w.DoAs(t, key, "PATCH", july+"/settings", doc{"fencing": "live"}).Refused(t, 403, "forbidden")
	w.DoAs(t, w.Worker, "PATCH", july+"/settings", doc{"fencing": "live"}).Refused(t, 403, "forbidden")
	w.Do(t, "GET", july+"/settings", nil).Refused(t, 404, "report_not_found")
}

func TestEachModeComparesWithItsOwnBar(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, c := range []struct {
		mode                                  string
		overtaken, expired, released, current string // the code that a publish is refused with; empty: applied
	}{
		{mode: "granted", overtaken: "stale_fence"},
		{mode: "accepted"},
		{mode: "live", overtaken: "stale_fence", expired: "lease_not_live", released: "lease_not_live"},
	} {
		try := func(name, want, report, fence string) {
			t.Helper()
			got := w.withdraw(t, report, fence, "k1")
			if want == "" {
				got.Want(t, 201)
				return
			}
			if got.Refused(t, 409, want); want == "stale_fence" {
				equal(t, got, doc{"presented": "1.1", "highest": "1.2", "reason": "superseded"})
			}
		}
		report := func(what string) string {
			name := c.mode + "-" + what
			w.set(t, name, doc{"fencing": c.mode})
			return name
		}
		overtaken := report("overtaken")
		fence := w.grant(t, overtaken, "a7")
		w.overtake(t, overtaken, "b9")
		try("overtaken", c.overtaken, overtaken, fence)

		expired := report("expired")
		fence = w.grant(t, expired, "a7")
		w.DB.Advance(t, 31*time.Second)
		try("expired", c.expired, expired, fence)

		released := report("released")
		fence = w.grant(t, released, "a7")
		w.DoAs(t, w.Worker, "DELETE", "/v1/reports/"+released+"/leases/a7", nil).Want(t, 200)
		try("released", c.released, released, fence)

		current := report("current")
		try("current", c.current, current, w.grant(t, current, "a7"))
		stale := w.withdraw(t, current, "1.9", "k2").Refused(t, 409, "fence_not_granted")
		equal(t, stale, doc{"granted": "1.1"})
	}
}

func TestTheModeHoldsForAReservationToo(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.overtake(t, "july", "b9")
	reserve := func(object string) testservice.Answer {
		return w.DoAs(t, w.Worker, "PUT", objectPath("july", fence, object), nil)
	}
	reserve("o1").Refused(t, 409, "stale_fence")
	w.set(t, "july", doc{"fencing": "accepted"})
	reserve("o1").Want(t, 201)
	w.set(t, "july", doc{"fencing": "live"})
	reserve("o2").Refused(t, 409, "stale_fence")
}

func TestSwitchingTheModeBackAndForthOpensNoGap(t *testing.T) {
	t.Parallel()
	modes := []any{"granted", "accepted", "live", nil}
	w := begin(t)

	// The second has published: no mode, whatever came before it, lets the first in again.
	first := w.grant(t, "july", "a7")
	second := w.overtake(t, "july", "b9")
	w.withdraw(t, "july", second, "second").Want(t, 201)
	for _, from := range modes {
		for _, to := range modes {
			w.set(t, "july", doc{"fencing": from})
			w.set(t, "july", doc{"fencing": to})
			got := w.withdraw(t, "july", first, "first").Refused(t, 409, "stale_fence")
			equal(t, got, doc{"presented": "1.1", "highest": "1.2", "reason": "superseded"})
		}
	}

	// Nobody has published: only what is granted counts, as soon as the mode says so again.
	first = w.grant(t, "august", "a7")
	w.overtake(t, "august", "b9")
	for range 2 {
		w.set(t, "august", doc{"fencing": "accepted"})
		w.set(t, "august", doc{"fencing": nil})
		w.withdraw(t, "august", first, "first").Refused(t, 409, "stale_fence")
	}
	w.set(t, "august", doc{"fencing": "accepted"})
	w.withdraw(t, "august", first, "first").Want(t, 201)

	// What an operator has barred stays barred in every mode.
	w.grant(t, "may", "a7")
	w.Do(t, "POST", "/v1/reports/may/lease/revoke", doc{"reason": "it hangs"}).Want(t, 200)
	for _, mode := range modes {
		w.set(t, "may", doc{"fencing": mode})
		equal(t, w.withdraw(t, "may", "1.1", "k1").Refused(t, 409, "stale_fence"), doc{"reason": "revoked", "highest": "1.1"})
	}
}

func TestAGrantPublishesAsOftenAsTheSettingSays(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	w.set(t, "july", doc{"publishes_per_grant": "one"})
	w.withdraw(t, "july", fence, "k1").Want(t, 201)
	for _, mode := range []string{"granted", "accepted", "live"} {
		w.set(t, "july", doc{"fencing": mode})
		w.withdraw(t, "july", fence, "k2", 1).Refused(t, 409, "grant_already_used")
		w.withdraw(t, "july", fence, "k2").Refused(t, 409, "grant_already_used") // before 428
	}
	w.withdraw(t, "july", fence, "k1").Want(t, 200) // the repeat is no second one
	w.set(t, "july", doc{"publishes_per_grant": nil, "fencing": nil})
	w.withdraw(t, "july", fence, "k2").Refused(t, 428, "expected_version_required")
	w.withdraw(t, "july", fence, "k2", 1).Want(t, 201)
	w.set(t, "july", doc{"publishes_per_grant": "one"})
	w.withdraw(t, "july", fence, "k3", 2).Refused(t, 409, "grant_already_used")
	w.withdraw(t, "july", w.overtake(t, "july", "b9"), "k3").Want(t, 201)
}

func TestAChangeOfTheSettingsWaitsForThePublishUnderWay(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.grant(t, "july", "a7")
	letGo := w.DB.HoldReport(t, "july")
	published := make(chan testservice.Answer, 1)
	go func() { published <- w.withdraw(t, "july", fence, "k1") }()
	w.DB.AwaitWaiting(t, 1)
	changed := make(chan testservice.Answer, 1)
	go func() { changed <- w.Do(t, "PATCH", july+"/settings", doc{"publishes_per_grant": "one"}) }()
	w.DB.AwaitWaiting(t, 2)
	letGo()
	(<-published).Want(t, 201)
	equal(t, (<-changed).Want(t, 200), doc{"publishes_per_grant": "one"})
	w.withdraw(t, "july", fence, "k2", 1).Refused(t, 409, "grant_already_used")
}

// history publishes version after version of a report, each with its own object and content: v1, v2, …
func (w *world) history(t *testing.T, report string, versions int) (fence string) {
	t.Helper()
	fence = w.grant(t, report, "a7")
	for v := 1; v <= versions; v++ {
		name := fmt.Sprint("v", v)
		w.stage(t, report, fence, name, name, nil)
		w.publish(t, report, name, doc{"fence": fence, "object_id": name, "expected_version": v - 1}).Want(t, 201)
	}
	return fence
}

// kept looks at why the objects of a history are kept: a word for each version.
func (w *world) kept(t *testing.T, report, fence string, want ...any) {
	t.Helper()
	for i, why := range want {
		object := w.DoAs(t, w.Worker, "GET", objectPath(report, fence, fmt.Sprint("v", i+1)), nil).Want(t, 200)
		equal(t, object, doc{"kept_because": why})
		limited := why != "visible" && why != "held" && why != "kept_version"
		if dated := object.JSON(t)["eligible_at"] != nil; dated != limited && object.String(t, "state") == "sealed" {
			t.Errorf("version %d of %s: %s", i+1, report, object.Body)
		}
	}
}

// readable looks at which versions of a history still have their bytes; the others must say that they are gone.
func (w *world) readable(t *testing.T, report string, want ...bool) {
	t.Helper()
	for i, there := range want {
		path := fmt.Sprintf("/v1/reports/%s/publications/%d", report, i+1)
		w.get(t, path).Want(t, 200) // the receipt outlives the bytes
		got := w.get(t, path+"/content")
		if !there {
			got.Refused(t, 410, "object_gone")
		} else if got.Want(t, 200); string(got.Body) != fmt.Sprint("v", i+1) {
			t.Errorf("version %d of %s: %q", i+1, report, got.Body)
		}
	}
}

// pass lets time go by and collects twice, so that what is due is condemned and then deleted.
func (w *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	w.DB.Advance(t, d)
	w.collect(t, false)
	w.DB.Advance(t, 25*time.Hour)
	w.collect(t, false)
}

func TestTheNewestVersionsAreKeptUntilTheyArePushedOut(t *testing.T) {
	t.Parallel()
	w := begin(t)
	w.set(t, "july", doc{"keep_versions": 2})
	fence := w.history(t, "july", 4)
	w.kept(t, "july", fence, "within_retention", "kept_version", "kept_version", "visible")
	w.pass(t, 15*day)
	w.readable(t, "july", false, true, true, true)
	w.kept(t, "july", fence, nil, "kept_version", "kept_version", "visible")

	fence = w.grant(t, "july", "b9")
	w.withdraw(t, "july", fence, "w").Want(t, 201) // counts as none of the two
	w.kept(t, "july", "1.1", nil, "within_retention", "kept_version", "kept_version")
	w.publish(t, "july", "back", doc{"fence": fence, "from_version": 2, "expected_version": 5}).Want(t, 201)
	w.kept(t, "july", "1.1", nil, "visible", "kept_version", "kept_version")
	w.pass(t, 15*day)
	w.readable(t, "july", false, true, true, true)
}

func TestKeepingMoreOrFewerVersionsFollowsAtOnce(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 4)
	w.kept(t, "july", fence, "within_retention", "within_retention", "within_retention", "visible")
	w.DB.Advance(t, 10*day)
	w.set(t, "july", doc{"keep_versions": 2})
	w.kept(t, "july", fence, "within_retention", "kept_version", "kept_version", "visible")
	w.pass(t, 10*day)
	w.readable(t, "july", false, true, true, true)

	w.set(t, "july", doc{"keep_versions": 1})
	w.kept(t, "july", fence, nil, "within_retention", "kept_version", "visible") // its retention begins now
	w.pass(t, 10*day)
	w.readable(t, "july", false, true, true, true)
	w.pass(t, 5*day)
	w.readable(t, "july", false, false, true, true)
	w.set(t, "july", doc{"keep_versions": nil})
	w.pass(t, 15*day)
	w.readable(t, "july", false, false, false, true)
}

func TestTheRetentionFollowsTheSettingBothWays(t *testing.T) {
	t.Parallel()
	w := begin(t)
	fence := w.history(t, "july", 2)
	until := func() time.Time {
		t.Helper()
		text := w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "v1"), nil).Want(t, 200).String(t, "eligible_at")
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	usual := until()
	w.DB.Advance(t, day) // it counts from when nothing kept it any more, not from the change
	for retention, want := range map[any]time.Time{
		(8 * day).Milliseconds(): usual.Add(-6 * day), (80 * day).Milliseconds(): usual.Add(66 * day), nil: usual,
	} {
		w.set(t, "july", doc{"retention_ms": retention})
		if got := until(); !got.Equal(want) {
			t.Errorf("with %v kept until %v, want %v", retention, got, want)
		}
	}
	w.set(t, "july", doc{"retention_ms": (80 * day).Milliseconds()})
	w.pass(t, 20*day)
	w.readable(t, "july", true, true)
	w.set(t, "july", doc{"retention_ms": (8 * day).Milliseconds()})
	w.pass(t, 0)
	w.readable(t, "july", false, true)
	gone := w.DoAs(t, w.Worker, "GET", objectPath("july", fence, "v1"), nil).Want(t, 200)
	if why := gone.String(t, "condemned_because"); !strings.Contains(why, "superseded") {
		t.Errorf("condemned because of %q", why)
	}
}

func TestAnInstanceThatWasStartedWithOtherDefaultsIsToldInTheStatusOfTheOthers(t *testing.T) {
	t.Parallel()
	w := begin(t)
	told := func(s *testservice.Service) bool {
		t.Helper()
		return strings.Contains(string(s.Do(t, "GET", "/v1/status", nil).Want(t, 200).Body), "started later, with others")
	}
	if told(w.Service) {
		t.Error("an instance alone is told of others")
	}
	other := testservice.StartOn(t, w.DB, func(c *service.Config) {
		c.Catalog.KeepVersions = 2
		c.Bucket = w.Storage.Config
	})
	if !told(w.Service) || told(other) {
		t.Errorf("told: the first %v, and the last %v", told(w.Service), told(other))
	}
}
