package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fenceline/fenceline/internal/check"
)

// checkHalfway checks while everybody works, the collector included, which may be late after all the kills.
func (t *torment) checkHalfway(ctx context.Context) error {
	report, err := check.Check(ctx, t.pool, t.bucket, check.Config{Slack: 2 * time.Minute, History: t.log.written()})
	if err != nil {
		return fmt.Errorf("half-way: %w", err)
	}
	for _, v := range report.Violations {
		t.log.fault("half-way: %s", v)
	}
	return nil
}

// judge checks once all is quiet, and looks at what is left in the bucket.
func (t *torment) judge(ctx context.Context) (err error) {
	t.checked, err = check.Check(ctx, t.pool, t.bucket, check.Config{Slack: time.Second, History: t.log.written()})
	if err != nil {
		return err
	}
	for key, err := range t.bucket.Keys(ctx, "reports/") {
		if err != nil {
			return err
		}
		t.left[key] = true
	}
	return t.pool.QueryRow(ctx, `SELECT count(*) FROM epoch`).Scan(&t.epochs)
}

// collected is how many uploads are gone.
func (t *torment) collected() int {
	gone := 0
	for _, key := range t.log.uploaded {
		if !t.left[key] {
			gone++
		}
	}
	return gone
}

// resolvedUnknowns is how many publishes of unknown outcome were settled by repeating them.
func (t *torment) resolvedUnknowns() int {
	return t.log.counted("unknown, then applied") + t.log.counted("unknown, then duplicate") + t.log.counted("unknown, then refused")
}

// summarize prints what happened, and all that is wrong.
func (t *torment) summarize() {
	n, h, seen := t.log.counted, t.log.history, t.checked.Seen
	fmt.Printf(`
After %v, with seed %d:
  killed             the service %d times, PostgreSQL %d times (%d epochs)
  grants             %d; %d workers crashed, %d paused past their lease's end
  publishes          %d applied, of them %d roll-backs (%d at the brink tried) and %d withdrawals; %d repeats were duplicates
  refused            %d as stale, %d for another version, %d for want of one, %d as gone
  unknown outcomes   %d attempts of all kinds; %d publishes: %d had been applied, %d were by the repetition, %d were refused, %d given up
  uploaded           %d objects, of which %d were collected (%d discarded by their workers)
  read               %d versions resolved, %d contents hashed
  checked            %d reports, %d versions, %d leases, %d objects, %d keys, %d digests, %d answers
  violations         %d
`,
		t.took.Round(time.Second), t.Seed,
		n("killed the service"), n("killed PostgreSQL"), t.epochs,
		len(h.Grants), n("crashed"), n("paused past the lease's end"),
		n("applied"), n("roll-backs"), n("roll-backs at the brink"), n("withdrawals"), n("repeated"),
		n("refused: stale_fence"), n("refused: version_conflict"), n("refused: expected_version_required"), n("refused: object_gone"),
		n("attempts of unknown outcome"), t.resolvedUnknowns()+n("unknown, then unsettled"), n("unknown, then duplicate"), n("unknown, then applied"),
		n("unknown, then refused"), n("unknown, then unsettled"),
		len(t.log.uploaded), t.collected(), n("discarded"),
		len(h.Reads), n("contents"),
		seen.Reports, seen.Versions, seen.Leases, seen.Objects, seen.Keys, seen.Digests, seen.Answers,
		len(t.checked.Violations)+len(t.log.faults))
	printSome("seen", t.log.faults)
	printSome("found", t.checked.Violations)
}

// printSome prints the first of many, since what is wrong once is often wrong everywhere.
func printSome[T any](how string, wrong []T) {
	const most = 20
	for _, w := range wrong[:min(len(wrong), most)] {
		fmt.Printf("\n%s: %v\n", how, w)
	}
	if len(wrong) > most {
		fmt.Printf("\n%s: %d more\n", how, len(wrong)-most)
	}
}

// verdict is nil if nothing was wrong, and enough happened for that to mean something.
func (t *torment) verdict() error {
	var wrong []error
	if n := len(t.checked.Violations) + len(t.log.faults); n > 0 {
		wrong = append(wrong, fmt.Errorf("%d violations", n))
	}
	for _, required := range []struct {
		what string
		n    int
	}{
		{"publish was applied", t.log.counted("applied")},
		{"publish was refused as stale", t.log.counted("refused: stale_fence")},
		{"unknown outcome was resolved", t.resolvedUnknowns()},
		{"object was collected", t.collected()},
		{"content was read", t.log.counted("contents")},
	} {
		if required.n == 0 {
			wrong = append(wrong, fmt.Errorf("no %s, so nothing is proven: try more kills, or another seed", required.what))
		}
	}
	return errors.Join(wrong...)
}

// answersReady asks the service whether it takes requests.
func (t *torment) answersReady(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.platform.service.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
