package contract

import (
	"encoding/base64"
	"slices"
	"strings"
)

func listCases() []Case {
	const table = "Lists"
	return []Case{
		{Table: table, Row: `200 {"items","next"}`, Steps: pages},
		{Table: table, Row: `200 {"items"} without next`, Steps: lastPage},
		{Table: table, Row: `400 invalid_request {"field":"limit"}`, Steps: badLimit},
		{Table: table, Row: `400 invalid_request {"field":"after"}`, Steps: badCursor},
	}
}

// fiveLeases are ids that were released before they were granted, which is the quickest way to have a list.
func (w *Walk) fiveLeases() []string {
	ids := []string{"l1", "l2", "l3", "l4", "l5"}
	for _, id := range ids {
		w.release(id)
	}
	slices.Reverse(ids)
	return ids
}

func pages(w *Walk) {
	want := w.fiveLeases()
	var got []string
	path := "leases?limit=2"
	for range 10 {
		page := w.Want(w.Worker("GET", path, nil), 200)
		for _, item := range page.Items() {
			got = append(got, item.Text("lease_id"))
		}
		if page.Text("next") == "" {
			break
		}
		w.See(page)
		w.Check(len(page.Items()) == 2, "a page of %d items", len(page.Items()))
		path = "leases?limit=2&after=" + page.Text("next")
	}
	w.Check(slices.Equal(got, want), "the pages show %v, not %v", got, want)
}

func lastPage(w *Walk) {
	w.fiveLeases()
	for _, query := range []string{"", "?limit=5", "?limit=1000"} {
		got := w.See(w.Worker("GET", "leases"+query, nil))
		_, more := got.Raw("next")
		w.Check(!more && len(got.Items()) == 5, "%d items, next %v", len(got.Items()), more)
	}
}

func badLimit(w *Walk) {
	for _, limit := range []string{"0", "1001", "-1", "x"} {
		w.See(w.Reader("GET", "/v1/reports?limit="+limit, nil))
	}
}

func badCursor(w *Walk) {
	w.fiveLeases()
	other := w.Want(w.Worker("GET", "leases?limit=1", nil), 200).Text("next")
	for _, cursor := range []string{"x", other, base64.RawURLEncoding.EncodeToString([]byte("{}"))} {
		w.See(w.Reader("GET", "/v1/reports?after="+cursor, nil))
	}
}

func keyCases() []Case {
	const table = "Keys"
	return []Case{
		{Table: table, Row: "200 | Authorization", Steps: bearer},
		{Table: table, Row: "200 | HTTP Basic", Steps: basic},
		{Table: table, Row: "200 | operator", Steps: higherRoles},
		{Table: table, Row: `200 {"items"}`, Steps: coveredReports},
		{Table: table, Row: "401 unauthenticated", Steps: revokedKey},
	}
}

func bearer(w *Walk) {
	for _, scheme := range []string{"Bearer ", "bearer "} {
		w.See(w.Do(Nobody, "GET", "/v1/reports", nil, "Authorization", scheme+w.Server.Keys[Reader]))
	}
}

func basic(w *Walk) {
	for _, user := range []string{"", "anybody"} {
		text := base64.StdEncoding.EncodeToString([]byte(user + ":" + w.Server.Keys[Reader]))
		w.See(w.Do(Nobody, "GET", "/v1/reports", nil, "Authorization", "Basic "+text))
	}
}

func higherRoles(w *Walk) {
	for _, role := range []Role{Reader, Worker, Operator} {
		w.See(w.Do(role, "GET", "/v1/reports", nil))
	}
	w.release("a7")
	for _, role := range []Role{Worker, Operator} {
		w.See(w.Do(role, "GET", "leases", nil))
	}
}

func coveredReports(w *Walk) {
	for _, report := range []string{w.report, w.report + ".a", w.report + ".b", w.report + "_c"} {
		fence := w.Want(w.Worker("PUT", w.below(report, "leases/a7"), longLease()), 201).Text("fence")
		w.Want(w.Worker("POST", w.below(report, "publications"), body{"fence": fence, "withdraw": true}, "Idempotency-Key", "k1"), 201)
	}
	for pattern, want := range map[string]string{
		w.report + ".*": w.report + ".a " + w.report + ".b", w.report + "_c": w.report + "_c", w.report + "x*": "",
	} {
		key, err := w.NewKey(Reader, pattern)
		w.Must(err)
		got := w.See(w.DoWith(key, "GET", "/v1/reports", nil))
		var ids []string
		for _, item := range got.Items() {
			ids = append(ids, item.Text("report"))
		}
		w.Check(strings.Join(ids, " ") == want, "%s shows %v, not %s", pattern, ids, want)
	}
}

func revokedKey(w *Walk) {
	key, err := w.NewKey(Reader, "*")
	w.Must(err)
	w.Want(w.DoWith(key, "GET", "/v1/reports", nil), 200)
	w.Must(w.EndKey(key))
	w.See(w.DoWith(key, "GET", "/v1/reports", nil))
}
