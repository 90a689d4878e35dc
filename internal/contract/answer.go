package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Answer is what came back for one request.
type Answer struct {
	Method, Path string
	Status       int
	Header       http.Header
	Body         []byte
}

// String is the answer in short.
func (a Answer) String() string {
	var text strings.Builder
	text.WriteString(fmt.Sprint(a.Status))
	for _, name := range []string{"code", "result", "reason", "state"} {
		if value := a.Text(name); value != "" {
			text.WriteString(" " + value)
		}
	}
	return text.String()
}

// Raw is a member of the answer's JSON as it stands there, and whether there is one.
func (a Answer) Raw(name string) (string, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(a.Body, &object) != nil {
		return "", false
	}
	value, ok := object[name]
	return string(value), ok
}

// Text is a member that is a string; empty if there is none.
func (a Answer) Text(name string) string {
	raw, _ := a.Raw(name)
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		return ""
	}
	return text
}

// Int is a member that is a whole number; -1 if there is none.
func (a Answer) Int(name string) int64 {
	raw, _ := a.Raw(name)
	number := int64(-1)
	if raw == "null" || json.Unmarshal([]byte(raw), &number) != nil {
		return -1
	}
	return number
}

// Items are the items of a list.
func (a Answer) Items() []Answer {
	var list struct{ Items []json.RawMessage }
	if json.Unmarshal(a.Body, &list) != nil {
		return nil
	}
	items := make([]Answer, len(list.Items))
	for i, item := range list.Items {
		items[i] = Answer{Body: item}
	}
	return items
}

// secrets are what no answer of a 5xx shows.
var secrets = regexp.MustCompile(`(?i)sqlstate|goroutine|relation |select |fl_[a-z0-9]{8,}_|x-amz`)

// moment is a member that holds a time.
var moment = regexp.MustCompile(`"([a-z]+_at)":"([^"]*)"`)

// faults says what is wrong with an answer whatever was asked: the promises that hold for every answer.
func (a Answer) faults() []string {
	var found []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			found = append(found, a.Method+" "+a.String()+": "+fmt.Sprintf(format, args...))
		}
	}
	check(a.Header.Get("X-Request-Id") != "", "no X-Request-Id")
	for _, at := range moment.FindAllStringSubmatch(string(a.Body), -1) {
		_, err := time.Parse(time.RFC3339Nano, at[2])
		check(err == nil && strings.HasSuffix(at[2], "Z"), "%s is %s, which is no RFC 3339 in UTC", at[1], at[2])
	}
	if a.Status < 400 {
		return found
	}
	if a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests || a.Text("code") == "busy" {
		check(a.Header.Get("Retry-After") != "", "no Retry-After")
	}
	check(strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json"), "Content-Type %q", a.Header.Get("Content-Type"))
	if a.Method == http.MethodHead {
		return found
	}
	for _, name := range []string{"type", "title", "detail", "code"} {
		check(a.Text(name) != "", "no %s", name)
	}
	check(a.Int("status") == int64(a.Status), "the member status is %d", a.Int("status"))
	outcome := a.Text("outcome")
	if a.Method == http.MethodGet {
		check(outcome == "", "outcome %s of what changes nothing", outcome)
	} else {
		check(outcome == "not_applied" || outcome == "unknown", "outcome %q", outcome)
	}
	if a.Status >= 500 {
		check(!secrets.Match(a.Body), "it shows what is inside: %s", bytes.TrimSpace(a.Body))
	}
	return found
}
