package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

// Report is the newest publication of a report. It fails with [ErrNotFound] where
// nothing was published yet, with [ErrWithdrawn] after a withdrawal.
func (c *Client) Report(ctx context.Context, report string) (*Publication, error) {
	return c.publication(ctx, opName("resolve", "the newest version", report), report)
}

// Publication is one version of a report, visible or not.
func (c *Client) Publication(ctx context.Context, report string, version int64) (*Publication, error) {
	number := strconv.FormatInt(version, 10)
	return c.publication(ctx, opName("read", "version "+number, report), report, "publications", number)
}

func (c *Client) publication(ctx context.Context, op, report string, below ...string) (*Publication, error) {
	if err := checkIDs(op, "report", report); err != nil {
		return nil, err
	}
	got, _, err := exchange[Publication](ctx, c, call{
		op: op, method: http.MethodGet, path: append([]string{"reports", report}, below...),
	})
	if err != nil {
		return nil, err
	}
	return &got, nil
}

// History lists the versions of a report, the newest first, from page to page as they are
// asked for. An error ends it.
func (c *Client) History(ctx context.Context, report string) iter.Seq2[*Publication, error] {
	op := opName("list", "the versions", report)
	if err := checkIDs(op, "report", report); err != nil {
		return func(yield func(*Publication, error) bool) { yield(nil, err) }
	}
	return pages[Publication](ctx, c, call{op: op, method: http.MethodGet, path: []string{"reports", report, "publications"}})
}

// Reports lists the newest publication of each report whose id begins with prefix, by id,
// as far as the key covers it. An error ends it.
func (c *Client) Reports(ctx context.Context, prefix string) iter.Seq2[*Publication, error] {
	request := call{op: "list the reports", method: http.MethodGet, path: []string{"reports"}}
	if prefix != "" {
		request.query = url.Values{"prefix": {prefix}}
	}
	return pages[Publication](ctx, c, request)
}

// pages lists what a list of the service holds.
func pages[T any](ctx context.Context, c *Client, request call) iter.Seq2[*T, error] {
	type page struct {
		Items []*T   `json:"items"`
		Next  string `json:"next"`
	}
	return func(yield func(*T, error) bool) {
		request := request
		for {
			got, _, err := exchange[page](ctx, c, request)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range got.Items {
				if !yield(item, nil) {
					return
				}
			}
			if got.Next == "" {
				return
			}
			query := maps.Clone(request.query)
			if query == nil {
				query = url.Values{}
			}
			query.Set("after", got.Next)
			request.query = query
		}
	}
}
