package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is what is walked.
type Server struct {
	// URL is its base address.
	URL string
	// Keys are API keys for all reports, by role.
	Keys map[Role]string
	// NewKey makes a further key, and EndKey revokes one.
	NewKey func(role Role, pattern string) (string, error)
	EndKey func(key string) error
	// Faults is what can be done to the servers behind it.
	Faults Faults
}

// Faults bring about what no request can. Each returns once it has happened; what it returns mends it.
type Faults struct {
	// ExhaustCounter sets the counter of a report's fences to its end.
	ExhaustCounter func(report string) error
	// Overwrite writes other bytes under a key of the bucket, past the service.
	Overwrite func(key, content string) error
	// HoldReport keeps a report's row locked.
	HoldReport func(report string) (letGo func() error, err error)
	// AwaitBlocked waits until somebody waits for a lock.
	AwaitBlocked func() error
	// KillDatabase kills the database's server.
	KillDatabase func() (start func() error, err error)
	// HangDatabase stops the database's processes where they are; mending lets them go on.
	HangDatabase func() (wake func() error, err error)
	// LockDatabase lets the database be read only, as a standby is.
	LockDatabase func() (unlock func() error, err error)
	// StopStorage stops the S3 server.
	StopStorage func() (start func() error, err error)
	// TakeTable renames a table.
	TakeTable func(table string) (mend func() error, err error)
}

// Case brings the condition of a row about.
type Case struct {
	// Table is the heading of the row's table; Row is how the row begins, without the marks of code. Both cells of
	// a row count, with " | " between them.
	Table, Row string
	// Alone says that others would notice: it runs when they are done.
	Alone bool
	// Steps are taken by the walker. An answer that it is to See is compared with the row.
	Steps func(*Walk)
}

// Result is what became of a row.
type Result struct {
	Row            Row
	Expected, Seen string
	Failures       []string
	// NoCase says that nobody has walked it, which is a failure too.
	NoCase bool
}

// side is how many cases run side by side.
const side = 8

// Run walks all cases of the rows against the server, and tells of each row, in their order, what it saw. It returns
// early, with an error in each row that is left, when ctx ends.
func Run(ctx context.Context, server *Server, rows []Row, cases []Case) []Result {
	results := make([]Result, len(rows))
	for i, row := range rows {
		results[i] = Result{Row: row, Expected: expected(row)}
	}
	var (
		mu   sync.Mutex
		busy sync.WaitGroup
		free = make(chan struct{}, side)
	)
	walk := func(n int, c Case) {
		w := newWalk(ctx, server, n)
		w.take(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		for i, row := range rows {
			if c.of(row) {
				results[i].add(w)
			}
		}
	}
	for n, c := range cases {
		if c.Alone || !slices.ContainsFunc(rows, c.of) {
			continue
		}
		free <- struct{}{}
		busy.Go(func() {
			walk(n, c)
			<-free
		})
	}
	busy.Wait()
	for n, c := range cases {
		if c.Alone && slices.ContainsFunc(rows, c.of) {
			walk(n, c)
		}
	}
	for i, row := range rows {
		if !slices.ContainsFunc(cases, func(c Case) bool { return c.of(row) }) {
			results[i].NoCase, results[i].Failures = true, []string{"the row has no case"}
		}
	}
	return results
}

// of tells whether the case is about the row.
func (c Case) of(row Row) bool { return c.Table == row.Table && strings.HasPrefix(row.text(), c.Row) }

// add takes over what a case has seen.
func (r *Result) add(w *Walk) {
	var seen []string
	for _, a := range w.seen {
		if text := a.String(); !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	r.Seen = strings.Join(seen, ", ")
	if r.Seen == "" && len(w.failures) == 0 {
		r.Seen = "as it says"
	}
	for _, failure := range slices.Concat(w.failures, judge(alternatives(r.Row.Answer), w.seen)) {
		if !slices.Contains(r.Failures, failure) { // once is enough
			r.Failures = append(r.Failures, failure)
		}
	}
}

// expected is what a row asks for, in short.
func expected(row Row) string {
	var texts []string
	for _, e := range alternatives(row.Answer) {
		texts = append(texts, e.String())
	}
	if len(texts) == 0 {
		return "as it says"
	}
	return strings.Join(texts, ", ")
}

func newWalk(ctx context.Context, server *Server, n int) *Walk {
	return &Walk{
		Server: server, report: fmt.Sprintf("case-%03d", n),
		client: &http.Client{Timeout: 90 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4, DisableCompression: true}},
		request: func(method, url string, content io.Reader) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, method, url, content)
		},
	}
}

// take takes the steps of a case, in a goroutine that it may end.
func (w *Walk) take(ctx context.Context, c Case) {
	if ctx.Err() != nil {
		w.Fail("the walk was interrupted")
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Steps(w)
	}()
	<-ended
	w.client.CloseIdleConnections()
}
