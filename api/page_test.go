package api_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/fenceline/fenceline/api"
)

type place struct {
	N    int    `json:"n"`
	Name string `json:"name"`
}

// counting is a list of the numbers from 1 to size.
func counting(size int) api.Route {
	return api.Route{Method: http.MethodGet, Path: "/numbers", Query: api.PageQuery("name"), Handler: func(c echo.Context) error {
		page, err := api.PageOf[place](c)
		if err != nil {
			return err
		}
		first := 1
		if page.After != nil {
			first = page.After.N + 1
		}
		var rows []int
		for n := first; n <= size && len(rows) < page.Fetch(); n++ {
			rows = append(rows, n)
		}
		list, err := api.ListOf(page, rows, strconv.Itoa, func(n int) place { return place{N: n} })
		if err != nil {
			return err
		}
		return api.WriteJSON(c, http.StatusOK, list)
	}}
}

func TestPagesJoinWithoutAGapOrARepeat(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, counting(10))
	for _, limit := range []string{"1", "3", "5", "10", "11"} {
		var got []any
		path := "/numbers?limit=" + limit
		for next := path; next != ""; {
			page := ask(t, server, http.MethodGet, next, "")
			if page.Status != 200 {
				t.Fatalf("%s: %d %s", next, page.Status, page.Body)
			}
			got = append(got, page.JSON["items"].([]any)...)
			next = ""
			if cursor, more := page.JSON["next"].(string); more {
				next = path + "&after=" + cursor
			}
		}
		if diff := cmp.Diff([]any{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, got); diff != "" {
			t.Errorf("limit %s (-want +got):\n%s", limit, diff)
		}
	}
}

func TestAnEmptyListIsAnEmptyListAndTheLastPage(t *testing.T) {
	t.Parallel()
	if got := ask(t, start(t, api.Config{}, counting(0)), http.MethodGet, "/numbers", ""); got.Body != `{"items":[]}` {
		t.Errorf("body %s", got.Body)
	}
}

func TestAListHolds100ItemsUnlessAskedOtherwise(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, counting(2000))
	for query, want := range map[string]int{"": 100, "?limit=1000": 1000} {
		got := ask(t, server, http.MethodGet, "/numbers"+query, "")
		if items := got.JSON["items"].([]any); len(items) != want || got.JSON["next"] == nil {
			t.Errorf("%q: %d items, next %v", query, len(items), got.JSON["next"])
		}
	}
}

func TestAQueryIsReadStrictly(t *testing.T) {
	t.Parallel()
	server := start(t, api.Config{}, counting(10))
	cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	cases := []struct{ query, field string }{
		{"limit=0", "limit"},
		{"limit=1001", "limit"},
		{"limit=-1", "limit"},
		{"limit=%2B5", "limit"},
		{"limit=ten", "limit"},
		{"limit=99999999999999999999", "limit"},
		{"limit=1&limit=2", "limit"},
		{"limt=5", "limt"},
		{"limit=1;after=x", "query"},
		{"limit=%zz", "query"},
		{"after=" + url.QueryEscape("!"), "after"},
		{"after=" + cursor(`{"n":1`), "after"},
		{"after=" + cursor(`{"m":1}`), "after"},
		{"after=" + cursor(`{"n":"1"}`), "after"},
		{"after=" + cursor(`{"name":"\u0000"}`), "after"},
		{"after=%00", "after"},
		{"%00=1", "�"},
		{"name=%00", "name"},
		{"name=%FF", "name"},
	}
	for _, c := range cases {
		got := ask(t, server, http.MethodGet, "/numbers?"+c.query, "")
		if got.Status != 400 || got.JSON["code"] != "invalid_request" || got.JSON["field"] != c.field {
			t.Errorf("%s: %d %s, want field %q", c.query, got.Status, got.Body, c.field)
		}
	}
}
