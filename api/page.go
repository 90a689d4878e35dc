package api

import (
	"encoding/base64"
	"errors"
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
// the sort key of the last row seen.
type page[C any] struct {
	Limit int
	After *C // nil: from the beginning

	list string // the path of the list, which its cursors are for
}

// pageOf reads `limit` and `after`.
func pageOf[C any](c echo.Context) (page[C], error) {
	p := page[C]{Limit: defaultLimit, list: c.Request().URL.Path}
	if text := c.QueryParam("limit"); text != "" {
		limit, err := strconv.ParseUint(text, 10, 16)
		if err != nil || limit < 1 || limit > maxLimit {
			return p, invalid("limit", fmt.Sprintf("limit must be a whole number from 1 to %d.", maxLimit))
		}
		p.Limit = int(limit)
	}
	if text := c.QueryParam("after"); text != "" {
		after, err := decodeCursor[C](p.list, text)
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
		next, err := encodeCursor(p.list, cursor(rows[p.Limit-1]))
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

// cursorText is what an opaque cursor holds: the list that it is for, since a
// place in one list means nothing in another, and the place.
type cursorText[C any] struct {
	List  string `json:"list"`
	Place C      `json:"place"`
}

// errForeignCursor reports a cursor of another list.
var errForeignCursor = errors.New("the cursor is of another list")

// encodeCursor makes an opaque text of a place in a list.
func encodeCursor[C any](list string, place C) (string, error) {
	text, err := json.Marshal(cursorText[C]{list, place})
	if err != nil {
		return "", fmt.Errorf("encode cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// decodeCursor reads what encodeCursor made. It trusts nothing: the text went
// through the client's hands.
func decodeCursor[C any](list, text string) (C, error) {
	var cursor cursorText[C]
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return cursor.Place, fmt.Errorf("decode cursor: %w", err)
	}
	if err := json.Unmarshal(raw, &cursor, json.RejectUnknownMembers(true)); err != nil {
		return cursor.Place, fmt.Errorf("decode cursor: %w", err)
	}
	if cursor.List != list {
		return cursor.Place, errForeignCursor
	}
	return cursor.Place, refuseNUL(raw)
}
