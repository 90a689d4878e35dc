package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/api"
)

// address is a route with something in the place of each parameter. What is there need not exist: whether a key
// may pass is decided before anything is looked up.
func address(r api.Route, report string) string {
	return strings.NewReplacer(
		":report", report, ":lease_id", "a7", ":fence", "1.1", ":object_id", "o", ":version", "1", ":run_id", "1", ":verification_id", "1", ":asset", "swagger-ui.css",
	).Replace(r.Path)
}

// headers that let a request of any route through to its own checks.
var anyRequest = []string{"Idempotency-Key", "k1"}

func TestARoutePassesTheRolesThatItIsFor(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	keys := map[api.Role]string{"": "", api.RoleReader: w.Reader, api.RoleWorker: w.Worker, api.RoleOperator: w.Operator}
	rank := map[api.Role]int{"": 0, api.RoleReader: 1, api.RoleWorker: 2, api.RoleOperator: 3}
	for _, r := range api.Routes() {
		for role, key := range keys {
			got := w.DoAs(t, key, r.Method, address(r, "july"), nil, anyRequest...)
			switch {
			case r.Role == "":
				got.Want(t, 200)
			case role == "":
				got.Refused(t, 401, "unauthenticated")
			case rank[role] < rank[r.Role]:
				got.Refused(t, 403, "forbidden")
			case got.Status == 401 || got.Status == 403 || got.Status >= 500:
				t.Errorf("%s %s with the role %s: %d %s", r.Method, r.Path, role, got.Status, got.Body)
			}
			if r.Method == http.MethodGet {
				if head := w.DoAs(t, key, http.MethodHead, address(r, "july"), nil); head.Status != got.Status || len(head.Body) > 0 {
					t.Errorf("HEAD %s with the role %q: %d, GET %d", r.Path, role, head.Status, got.Status)
				}
			}
		}
	}
}

func TestAKeyReachesTheReportsOfItsPatternAndLearnsOfNoOther(t *testing.T) {
	t.Parallel()
	w := begin(t, showingMetrics)
	for _, report := range []string{"sales.july", "sales_july", "sales", "other"} {
		w.published(t, report, "hello", nil)
	}
	patterns := map[api.Pattern]map[string]bool{
		"sales.*":    {"sales.july": true, "sales.july.x": true, "sales.none": true},
		"sales.july": {"sales.july": true},
		"*": {
			"sales.july": true, "sales.july.x": true, "sales.none": true, "sales_july": true, "sales": true,
			"Sales.july": true, "other": true, "none": true,
		},
	}
	for pattern, covered := range patterns {
		key := w.NewKey(t, api.RoleOperator, pattern)
		for _, report := range []string{"sales.july", "sales.none", "sales.july.x", "sales_july", "sales", "Sales.july", "other", "none"} {
			for _, r := range api.Routes() {
				if !strings.Contains(r.Path, ":report") || r.Mutates && pattern == "*" {
					continue
				}
				got := w.DoAs(t, key, r.Method, address(r, report), nil, anyRequest...)
				if covered[report] == (got.Status == 403) {
					t.Errorf("%s: %s %s: %d %s", pattern, r.Method, address(r, report), got.Status, got.Body)
				}
				if r.Method == http.MethodGet && got.Status == 403 {
					w.DoAs(t, key, http.MethodHead, address(r, report), nil).Want(t, 403)
				}
			}
		}
	}
}

func TestAListShowsWhatThePatternCovers(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, report := range []string{"sales", "sales-x", "sales.a", "sales.b", "sales.b.c", "sales_x", "salesa"} {
		w.published(t, report, "x", nil)
	}
	for _, c := range []struct {
		pattern api.Pattern
		query   string
		want    string
	}{
		{"sales.*", "", "sales.a sales.b sales.b.c"},
		{"sales.*", "?prefix=sales", "sales.a sales.b sales.b.c"},
		{"sales.*", "?prefix=sales.b", "sales.b sales.b.c"},
		{"sales.*", "?prefix=sales_", ""},
		{"sales.*", "?prefix=z", ""},
		{"sales.b", "", "sales.b"},
		{"sales.b", "?prefix=sales.b.", ""},
		{"*", "?prefix=sales.", "sales.a sales.b sales.b.c"},
		{"*", "?prefix=sales_", "sales_x"},
		{"*", "?prefix=", "sales sales-x sales.a sales.b sales.b.c sales_x salesa"},
	} {
		key := w.NewKey(t, api.RoleReader, c.pattern)
		var got []string
		for _, item := range w.pages(t, key, "/v1/reports"+c.query, 2) {
			got = append(got, item["report"].(string))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s: %q, want %q", c.pattern, c.query, got, c.want)
		}
	}
	for _, bad := range []string{"-", "%20", "a%2Fb", "%25", "%2A", strings.Repeat("a", 201)} {
		equal(t, w.get(t, "/v1/reports?prefix="+bad).Refused(t, 400, "invalid_request"), doc{"field": "prefix"})
	}
}

func TestAnOperatorOfSomeReportsSeesWhatTheCollectorDidWithThese(t *testing.T) {
	t.Parallel()
	w := begin(t)
	for _, report := range []string{"sales.a", "sales_x", "sales.b", "july"} {
		w.DoAs(t, w.Worker, "PUT", objectPath(report, w.grant(t, report, "a7"), "o"), nil).Want(t, 201)
	}
	w.DB.Advance(t, 25*time.Hour)
	path := fmt.Sprintf("/v1/gc/runs/%d/objects", w.collect(t, true).ID)
	for pattern, want := range map[api.Pattern]int{"*": 4, "sales.*": 2, "july": 1, "august": 0} {
		items := w.pages(t, w.NewKey(t, api.RoleOperator, pattern), path, 1)
		if len(items) != want {
			t.Errorf("%s: %v, want %d", pattern, items, want)
		}
		for _, item := range items {
			if report := item["report"].(string); !pattern.Covers(report) {
				t.Errorf("%s sees %s", pattern, report)
			}
		}
	}
}

func TestAKeyThatHasEndedOpensNothing(t *testing.T) {
	t.Parallel()
	w := begin(t)
	key := w.NewKey(t, api.RoleReader, "*")
	id := strings.Split(key, "_")[1]
	for _, column := range []string{"revoked_at", "expires_at"} {
		w.DoAs(t, key, "GET", "/v1/reports", nil).Want(t, 200)
		w.DB.Exec(t, "UPDATE api_key SET "+column+" = fenceline_now() WHERE key_id = $1", id)
		w.DoAs(t, key, "GET", "/v1/reports", nil).Refused(t, 401, "unauthenticated")
		w.DoAs(t, key, "PUT", july+"/leases/a7", doc{}).Refused(t, 401, "unauthenticated")
		w.DB.Exec(t, "UPDATE api_key SET "+column+" = NULL WHERE key_id = $1", id)
	}
}

func TestAKeyIsSentAsBearerOrAsTheBasicPassword(t *testing.T) {
	t.Parallel()
	w := begin(t)
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, fine := range []string{"Bearer " + w.Reader, "bearer " + w.Reader, basic("", w.Reader), basic("anybody", w.Reader)} {
		w.DoAs(t, "", "GET", "/v1/reports", nil, "Authorization", fine).Want(t, 200)
	}
	unknown := w.Reader[:len(w.Reader)-1] + "a"
	if strings.HasSuffix(w.Reader, "a") {
		unknown = w.Reader[:len(w.Reader)-1] + "b"
	}
	for _, bad := range []string{
		"Bearer", "Bearer ", "Bearer " + unknown, w.Reader, "Token " + w.Reader, "Basic " + w.Reader, basic(w.Reader, ""),
		"Bearer fl_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 32), "Bearer fl__", "Bearer " + strings.ToUpper(w.Reader),
		"Bearer fl_a'b_c", "Bearer " + strings.Repeat("x", 4096), basic("", "") + "!",
	} {
		got := w.DoAs(t, "", "GET", "/v1/reports", nil, "Authorization", bad).Refused(t, 401, "unauthenticated")
		if schemes := strings.Join(got.Header.Values("WWW-Authenticate"), " "); !strings.Contains(schemes, "Bearer ") || !strings.Contains(schemes, "Basic ") {
			t.Errorf("challenges %q", schemes)
		}
	}
	w.DoAs(t, "", "GET", "/v1/reports", nil, "Authorization", "Bearer "+w.Reader, "Authorization", "Bearer "+w.Reader).Refused(t, 401, "unauthenticated")
}
