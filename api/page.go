package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// pageQuery names the parameters of every list, for the route table.
func pageQuery(more ...string) []string {
	return append([]string{"limit", "after"}, more...)
}

// page is the part of a list that a request asks for. C is the list's cursor:
// the sort key of the last row seen, a struct that encodes to a JSON object.
type page[C any] struct {
	Limit int
	After *C // nil: from the beginning
}

// pageOf reads `limit` and `after`.
func pageOf[C any](c echo.Context) (page[C], error) {
	p := page[C]{Limit: defaultLimit}
	if text := c.QueryParam("limit"); text != "" {
		limit, err := strconv.ParseUint(text, 10, 16)
		if err != nil || limit < 1 || limit > maxLimit {
			return p, invalid("limit", fmt.Sprintf("limit must be a whole number from 1 to %d.", maxLimit))
		}
		p.Limit = int(limit)
	}
	if text := c.QueryParam("after"); text != "" {
		after, err := decodeCursor[C](text)
		if err != nil {
			return p, invalid("after", "after must be the next of an earlier page of this list.").because(err)
		}
		p.After = &after
	}
	return p, nil
}

// fetch is how many rows to ask the database for: one more than the page holds
// shows whether there is a next page.
func (p page[C]) fetch() int { return p.Limit + 1 }

// from is where the page begins: after the cursor, or the zero cursor, which is the beginning.
func (p page[C]) from() C {
	if p.After == nil {
		var beginning C
		return beginning
	}
	return *p.After
}

// list is a page of items as it is sent.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// listOf makes the answer of the rows that were fetched for p: encode makes an
// item of a row, cursor tells a row's place in the list.
func listOf[R, T, C any](p page[C], rows []R, encode func(R) T, cursor func(R) C) (list[T], error) {
	var l list[T]
	if len(rows) > p.Limit {
		rows = rows[:p.Limit]
		next, err := encodeCursor(cursor(rows[p.Limit-1]))
		if err != nil {
			return l, err
		}
		l.Next = next
	}
	for _, row := range rows {
		l.Items = append(l.Items, encode(row))
	}
	return l, nil
}

// writeList answers with the page of the rows that were fetched for p.
func writeList[R, T, C any](c echo.Context, p page[C], rows []R, encode func(R) T, cursor func(R) C) error {
	l, err := listOf(p, rows, encode, cursor)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, l)
}

// encodeCursor makes an opaque text of a place in a list.
func encodeCursor[C any](cursor C) (string, error) {
	text, err := json.Marshal(cursor)
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// decodeCursor reads what encodeCursor made. It trusts nothing: the text went
// through the client's hands.
func decodeCursor[C any](text string) (C, error) {
	var cursor C
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return cursor, fmt.Errorf("decode cursor: %w", err)
	}
	if err := json.Unmarshal(raw, &cursor, json.RejectUnknownMembers(true)); err != nil {
		return cursor, fmt.Errorf("decode cursor: %w", err)
	}
	return cursor, refuseNUL(raw)
}
