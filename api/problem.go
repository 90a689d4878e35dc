package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

// outcome says what an error of a mutating route means for the change that was
// asked for.
type outcome string

const (
	outcomeNotApplied outcome = "not_applied" // nothing was changed, nor will be
	outcomeUnknown    outcome = "unknown"     // the same request, sent again, finds out
)

// problem is a problem document (RFC 9457), and the error that becomes one.
type problem struct {
	Type    string         `json:"type"`
	Title   string         `json:"title"`
	Status  int            `json:"status"`
	Detail  string         `json:"detail,omitempty"`
	Code    string         `json:"code"`
	Outcome outcome        `json:"outcome,omitempty"`
	Members map[string]any `json:",embed"` // extension members, such as `highest`

	header http.Header
	cause  error // for the log alone
}

// newProblem makes the problem of a code. Its type and its title follow from
// the code; detail is a sentence about this occurrence, for people.
func newProblem(status int, code, detail string) *problem {
	return &problem{
		Type:    "urn:fenceline:problem:" + code,
		Title:   strings.ToUpper(code[:1]) + strings.ReplaceAll(code[1:], "_", " "),
		Status:  status,
		Detail:  detail,
		Code:    code,
		Members: map[string]any{},
		header:  http.Header{},
	}
}

// Error tells the code and the detail.
func (p *problem) Error() string {
	return fmt.Sprintf("%s: %s", p.Code, p.Detail)
}

// Unwrap gives the cause that only the log sees.
func (p *problem) Unwrap() error { return p.cause }

// with adds an extension member.
func (p *problem) with(name string, value any) *problem {
	p.Members[name] = value
	return p
}

// withHeader adds a header to the answer.
func (p *problem) withHeader(name, value string) *problem {
	p.header.Add(name, value)
	return p
}

// withOutcome states the outcome where the status alone does not tell it.
func (p *problem) withOutcome(o outcome) *problem {
	p.Outcome = o
	return p
}

// because keeps the cause for the log.
func (p *problem) because(err error) *problem {
	p.cause = err
	return p
}

// invalid is the 400 of a request that says something impossible. field is the
// dotted name of the member, or the name of the parameter or header.
func invalid(field, detail string) *problem {
	return newProblem(http.StatusBadRequest, "invalid_request", detail).with("field", field)
}

// bodyTooLarge is the 413 of a body over the limit.
func bodyTooLarge(limit int64) *problem {
	return newProblem(http.StatusRequestEntityTooLarge, "body_too_large",
		fmt.Sprintf("The body is larger than %d bytes.", limit))
}

// unavailable is the 503 of something that the service needs and cannot reach.
func unavailable(detail string) *problem {
	return newProblem(http.StatusServiceUnavailable, "unavailable", detail)
}

// problemFor finds the problem that answers err and completes it: with the
// outcome, on a mutating route, and with Retry-After where one is due.
func problemFor(c echo.Context, err error) *problem {
	p := problemOf(err)
	switch {
	case !mutates(c):
		p.Outcome = ""
	case p.Outcome != "":
	case p.Status < http.StatusInternalServerError:
		p.Outcome = outcomeNotApplied
	default:
		p.Outcome = outcomeUnknown
	}
	waits := p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests
	if waits && p.header.Get(echo.HeaderRetryAfter) == "" {
		p.header.Set(echo.HeaderRetryAfter, "1")
	}
	return p
}

// write sends the document. That the client may have gone is no news: the log
// has the status that it was meant to see.
func (p *problem) write(c echo.Context) {
	body, err := json.Marshal(p, wire)
	if err != nil {
		p.cause = errors.Join(fmt.Errorf("encode problem %s: %w", p.Code, err), p.cause)
		p.Status = http.StatusInternalServerError
	}
	header := c.Response().Header()
	maps.Copy(header, p.header)
	_ = c.Blob(p.Status, "application/problem+json", body)
}
