package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

func outageCases() []Case {
	const table = "Every answer"
	return []Case{
		{Table: table, Row: "429 rate_limited", Alone: true, Steps: crowds},
		{Table: table, Row: "500 internal", Alone: true, Steps: faultInside},
		{Table: table, Row: "503 unavailable, Retry-After, outcome not_applied", Alone: true, Steps: databaseAway},
		{Table: table, Row: "503 unavailable, Retry-After, outcome unknown", Alone: true, Steps: databaseDies},
		{Table: table, Row: "503 unavailable, Retry-After | the database does not answer", Alone: true, Steps: databaseHangs},
	}
}

// crowds lets one more wait than may: for a lease, and then for a change.
func crowds(w *Walk) {
	fence := w.published("first")
	tag := w.Want(w.Reader("GET", "", nil), 200).Header.Get("ETag")
	w.crowd(Worker, func(n int) (method, path, body string) {
		return "PUT", fmt.Sprintf("leases/crowd-%d", n), `{"holder":"w","ttl_ms":1000,"wait_ms":60000}`
	}, "")
	w.crowd(Reader, func(int) (method, path, body string) { return "GET", "?wait_ms=60000", "" }, tag)
	w.Want(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 1}), 201)
}

// crowd sends requests that wait, until one is turned away.
func (w *Walk) crowd(role Role, ask func(n int) (method, path, body string), tag string) {
	const size, patience = 2100, time.Minute
	ctx, leave := context.WithTimeout(context.Background(), patience)
	defer leave()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	turned, broken := make(chan Answer, size), make(chan error, size)
	var waiting sync.WaitGroup
	for n := range size {
		method, path, content := ask(n)
		waiting.Go(func() {
			request, err := http.NewRequestWithContext(ctx, method, w.URL+w.below(w.report, path), strings.NewReader(content))
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+w.Server.Keys[role])
			request.Header.Set("Content-Type", "application/json")
			if tag != "" {
				request.Header.Set("If-None-Match", tag)
			}
			response, err := client.Do(request)
			if err != nil {
				broken <- err // it was let go, or could not even connect
				return
			}
			defer response.Body.Close()
			a := Answer{Method: method, Path: path, Status: response.StatusCode, Header: response.Header}
			a.Body, _ = io.ReadAll(response.Body) // an answer cut short is none
			turned <- a
		})
	}
	select {
	case a := <-turned:
		w.See(a)
		for _, fault := range a.faults() {
			w.Fail("%s", fault)
		}
	case err := <-broken:
		w.Fail("a request of the crowd did not come to wait: %v", err)
	case <-ctx.Done():
		w.Fail("of %d requests that wait none was turned away", size)
	}
	leave()
	waiting.Wait()
}

// faultInside takes a table away.
func faultInside(w *Walk) {
	w.grant("a7")
	mend, err := w.Faults.TakeTable("refusal")
	w.Must(err)
	w.See(w.Operator("GET", "refusals", nil))
	w.Must(mend())
	w.Want(w.Operator("GET", "refusals", nil), 200)
}

// databaseAway kills the database, and asks while it is away.
func databaseAway(w *Walk) {
	fence := w.published("first")
	w.whileDatabaseIsAway(func() {
		w.See(w.Worker("PUT", "leases/b9", longLease()))
		w.See(w.Worker("POST", "leases/a7/renew", nil))
		w.See(w.Worker("DELETE", "leases/a7", nil))
		w.See(w.reserve(fence, "o2", nil))
		w.See(w.publish("k2", body{"fence": fence, "withdraw": true, "expected_version": 1}))
		w.See(w.Operator("POST", "/v1/gc/runs", nil))
		for _, path := range []string{"", "content", "/v1/reports"} {
			got := w.Reader("GET", path, nil)
			w.Check(got.Status == 503, "GET %s: %s", path, got)
		}
	})
	w.Want(w.Reader("GET", "", nil), 200)
}

// databaseDies kills the database while it is asked for a change; the repetition finds out.
func databaseDies(w *Walk) {
	w.grant("a7")
	w.See(w.whileDatabaseDies(func() Answer { return w.Worker("DELETE", "leases/a7", nil) }))
	w.Want(w.Worker("DELETE", "leases/a7", nil), 200)
}

// databaseHangs asks a database that is there, and does not answer.
func databaseHangs(w *Walk) {
	const patience = 20 * time.Second // several times the time for a request
	fence := w.published("first")
	wake, err := w.Faults.HangDatabase()
	w.Must(err)
	defer w.awaitDatabase()
	defer func() { w.Must(wake()) }()
	var asking sync.WaitGroup
	for _, ask := range []func() Answer{
		func() Answer { return w.Worker("POST", "leases/a7/renew", nil) },
		func() Answer { return w.Worker("PUT", "leases/b9", longLease()) },
		func() Answer {
			return w.Worker("PUT", "leases/c1", body{"holder": "w", "ttl_ms": 1000, "wait_ms": 1000})
		},
		func() Answer { return w.reserve(fence, "o2", nil) },
		func() Answer { return w.seal(fence, "o1") },
		func() Answer {
			return w.publish("k2", body{"fence": fence, "object_id": "o1", "expected_version": 1})
		},
		func() Answer { return w.Reader("GET", "", nil) },
		func() Answer { return w.Reader("GET", "?wait_ms=1000", nil) },
		func() Answer { return w.Reader("GET", "content", nil) },
		func() Answer { return w.Operator("GET", "/v1/status", nil) },
	} {
		asking.Go(func() {
			began := time.Now()
			got := w.See(ask())
			took := time.Since(began)
			w.Check(took < patience, "%s %s was answered after %v", got.Method, got.Path, took.Round(time.Second))
		})
	}
	asking.Wait()
}

// whileDatabaseIsAway does something between the database's death and its return.
func (w *Walk) whileDatabaseIsAway(do func()) {
	start, err := w.Faults.KillDatabase()
	w.Must(err)
	defer w.awaitDatabase()
	defer func() { w.Must(start()) }()
	do()
}

// whileDatabaseDies sends a change of the case's report, and kills the database when it is under way there.
func (w *Walk) whileDatabaseDies(change func() Answer) Answer {
	letGo, err := w.Faults.HoldReport(w.report)
	w.Must(err)
	answered := make(chan Answer, 1)
	go func() {
		defer close(answered)
		answered <- change()
	}()
	w.Must(w.Faults.AwaitBlocked())
	start, err := w.Faults.KillDatabase()
	w.Must(err)
	got := <-answered
	_ = letGo() // its session died too
	w.Must(start())
	w.awaitDatabase()
	return got
}

// awaitDatabase returns when changes are taken again: the service has verified the database's identity.
func (w *Walk) awaitDatabase() {
	w.Await("the service has verified the database", func() bool {
		verified, _ := w.Operator("GET", "/v1/epoch", nil).Raw("verified")
		return verified == "true"
	})
}
