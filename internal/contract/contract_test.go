package contract_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/docs"
	"github.com/fenceline/fenceline/internal/contract"
)

func TestEveryRowOfThePageHasACase(t *testing.T) {
	t.Parallel()
	rows := contract.Rows(docs.Contract)
	if len(rows) < 150 {
		t.Fatalf("only %d rows were read", len(rows))
	}
	for _, row := range rows {
		walked := 0
		for _, c := range contract.Cases() {
			if c.Of(row) {
				walked++
			}
		}
		if walked == 0 {
			t.Errorf("nobody walks %s: | %s | %s |", row.Table, row.Answer, row.When)
		}
	}
}

func TestEveryCodeOfTheInterfaceStandsOnThePage(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	problem := regexp.MustCompile(`code: \{const: ([a-z_]+)\}(?s:.{1,60}?)status: \{const: (\d+)\}`)
	found := problem.FindAllStringSubmatch(string(document), -1)
	if len(found) < 40 {
		t.Fatalf("only %d codes were read", len(found))
	}
	for _, match := range found {
		code, status := match[1], match[2]
		if !strings.Contains(docs.Contract, "| "+status+" `"+code+"`") && !strings.Contains(docs.Contract, ", "+status+" `"+code+"`") {
			t.Errorf("no row says when %s `%s` is answered", status, code)
		}
	}
}

func TestEveryCaseIsOfOneRowThatThePageHas(t *testing.T) {
	t.Parallel()
	for _, c := range contract.Cases() {
		var found []string
		for _, row := range contract.Rows(docs.Contract) {
			if c.Of(row) {
				found = append(found, row.Answer+" | "+row.When)
			}
		}
		if len(found) != 1 {
			t.Errorf("the case of %s: %q is of %d rows: %q", c.Table, c.Row, len(found), found)
		}
	}
}

func TestATableHasAHeadingOfItsOwn(t *testing.T) {
	t.Parallel()
	headings := map[string]bool{}
	for text := range strings.Lines(docs.Contract) {
		title := strings.TrimLeft(text, "#")
		if title == text {
			continue
		}
		title = strings.TrimSpace(title)
		if headings[title] {
			t.Errorf("two headings %q: a case would not know which table it is of", title)
		}
		headings[title] = true
	}
	inTable, tables := false, map[string]int{}
	heading := ""
	for text := range strings.Lines(docs.Contract) {
		if title := strings.TrimLeft(text, "#"); title != text {
			heading = strings.TrimSpace(title)
		}
		begins := strings.HasPrefix(text, "|") && !inTable
		inTable = strings.HasPrefix(text, "|")
		if begins {
			tables[heading]++
		}
	}
	for heading, n := range tables {
		if n != 1 {
			t.Errorf("%d tables under %q", n, heading)
		}
	}
}

func TestRowsAreReadFromThePage(t *testing.T) {
	t.Parallel()
	const page = "# A page\n\nText | with a bar.\n\n## First\n\n| answer | when |\n|---|---|\n| 200 `{\"a\"}` | it is `so` |\n| 404 | not |\n\n" +
		"### Second\n| x | y |\n|---|---|\n| one | two |\n"
	want := []contract.Row{
		{Table: "First", Answer: "200 `{\"a\"}`", When: "it is `so`"},
		{Table: "First", Answer: "404", When: "not"},
		{Table: "Second", Answer: "one", When: "two"},
	}
	if diff := cmp.Diff(want, contract.Rows(page)); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerIsHeldAgainstTheCellOfItsRow(t *testing.T) {
	t.Parallel()
	answer := func(method string, status int, body string, headers ...string) contract.Answer {
		header := map[string][]string{}
		for i := 0; i < len(headers); i += 2 {
			header[headers[i]] = []string{headers[i+1]}
		}
		return contract.Answer{Method: method, Status: status, Header: header, Body: []byte(body)}
	}
	for name, c := range map[string]struct {
		cell string
		seen []contract.Answer
		want string // in the first failure; empty: none
	}{
		"as it says":         {"409 `busy` `{holder, retry_after_ms}`", []contract.Answer{answer("PUT", 409, `{"code":"busy","holder":"A","retry_after_ms":1}`)}, ""},
		"another status":     {"409 `busy`", []contract.Answer{answer("PUT", 410, `{"code":"busy"}`)}, "status 410, not 409"},
		"another code":       {"409 `busy`", []contract.Answer{answer("PUT", 409, `{"code":"frozen"}`)}, "code frozen, not busy"},
		"no member":          {"409 `busy` `{holder, retry_after_ms}`", []contract.Answer{answer("PUT", 409, `{"code":"busy","holder":"A"}`)}, "no member retry_after_ms"},
		"another value":      {"200 `{\"result\":\"released\"}`", []contract.Answer{answer("DELETE", 200, `{"result":"already_released"}`)}, `result is "already_released"`},
		"any value":          {"200 `{\"visible\":bool, …, \"object\":{…} or null}`", []contract.Answer{answer("GET", 200, `{"visible":true,"object":null}`)}, ""},
		"a fragment":         {"200, the same with `\"replayed\":true`", []contract.Answer{answer("PUT", 200, `{"replayed":false}`)}, "replayed is false"},
		"nothing seen":       {"404 `not_found`", nil, "404 not_found was not seen"},
		"one of two":         {"404 `a`, 410 `b`", []contract.Answer{answer("GET", 404, `{"code":"a"}`)}, "410 b was not seen"},
		"words count too":    {"404 `a` (with 200 words), 410 `b`", []contract.Answer{answer("GET", 404, `{"code":"a"}`), answer("GET", 410, `{"code":"b"}`)}, "200 was not seen"},
		"no header":          {"304, `ETag`", []contract.Answer{answer("GET", 304, "")}, "no header ETag"},
		"a header":           {"200, `Cache-Control: no-store`", []contract.Answer{answer("GET", 200, "{}", "Cache-Control", "no-store")}, ""},
		"an outcome":         {"503 `unavailable`, `outcome` `not_applied`", []contract.Answer{answer("PUT", 503, `{"code":"unavailable","outcome":"unknown"}`)}, "outcome unknown"},
		"both outcomes":      {"503 `x`, `outcome` `not_applied` or `unknown`", []contract.Answer{answer("PUT", 503, `{"code":"x","outcome":"unknown"}`)}, "outcome not_applied was not seen"},
		"no body of a HEAD":  {"200 `{\"a\"}`, `ETag`", []contract.Answer{answer("HEAD", 200, "", "Etag", "x")}, ""},
		"nothing to compare": {"`X-Request-Id`", nil, ""},
	} {
		failures := contract.Judge(c.cell, c.seen)
		got := strings.Join(failures, "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
