package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// july is a report with a past: version 1 of the lease a1, which was released, version 2 of a2, which is live,
// and an object of a2 that was sealed and not published.
type july struct {
	*testservice.Service
	first, visible, draft string // keys
	history               check.History
}

func startJuly(t *testing.T) *july {
	t.Helper()
	j := &july{Service: testservice.Start(t)}
	fence := j.acquire(t, "a1")
	j.first = j.stage(t, fence, "july.csv", "version one")
	j.publish(t, fence, "k1")
	j.Do(t, "DELETE", "/v1/reports/july/leases/a1", nil).Want(t, 200)
	fence = j.acquire(t, "a2")
	j.visible = j.stage(t, fence, "july.csv", "version two")
	j.publish(t, fence, "k2")
	j.draft = j.stage(t, fence, "draft.csv", "a draft")
	j.Do(t, "POST", "/v1/reports/july/objects/"+fence+"/draft.csv/seal", map[string]any{}).Want(t, 200)
	return j
}

// acquire takes a lease, and writes the answer down.
func (j *july) acquire(t *testing.T, id string) (fence string) {
	t.Helper()
	sent := time.Now()
	fence = j.Do(t, "PUT", "/v1/reports/july/leases/"+id, map[string]any{"holder": "worker", "ttl_ms": 3_600_000}).
		Want(t, 201).String(t, "fence")
	j.history.Grants = append(j.history.Grants, grant(t, id, fence, sent, time.Now()))
	return fence
}

// stage uploads an object with the storage's own credentials.
func (j *july) stage(t *testing.T, fence, object, body string) (key string) {
	t.Helper()
	key = j.Do(t, "PUT", "/v1/reports/july/objects/"+fence+"/"+object, map[string]any{}).Want(t, 201).String(t, "key")
	j.Storage.Put(t, key, body)
	return key
}

// publish publishes july.csv, reads it as a reader does, and writes both answers down.
func (j *july) publish(t *testing.T, fence, key string) {
	t.Helper()
	sent := time.Now()
	answer := j.Do(t, "POST", "/v1/reports/july/publications", map[string]any{"fence": fence, "object_id": "july.csv"},
		"Idempotency-Key", key).Want(t, 201)
	sum, _ := answer.JSON(t)["object"].(map[string]any)["sha256"].(string)
	version := answer.Int(t, "version")
	j.history.Publishes = append(j.history.Publishes, check.Publish{
		Span: check.Span{SentAt: sent, AnsweredAt: time.Now()}, Report: "july", Key: key, Fence: parseFence(t, fence),
		Outcome: check.Applied, Version: version, SHA256: sum,
	})
	sent = time.Now()
	j.Do(t, "GET", "/v1/reports/july", nil).Want(t, 200)
	j.history.Reads = append(j.history.Reads, check.Read{
		Span: check.Span{SentAt: sent, AnsweredAt: time.Now()}, Report: "july", Version: version, SHA256: sum,
	})
}

// check runs the checker as the service's role.
func (j *july) check(t *testing.T, h check.History) check.Report {
	t.Helper()
	report, err := check.Check(t.Context(), j.DB.Pool, j.Storage.Open(t), check.Config{History: h})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// allowTampering lets the owner write what the triggers refuse, and returns what puts all rows back.
func allowTampering(t *testing.T, db *testdb.DB) (restore func()) {
	t.Helper()
	var undo strings.Builder
	for _, table := range []string{"report", "publication", "lease", "object"} {
		db.Exec(t, "ALTER TABLE "+table+" DISABLE TRIGGER ALL; CREATE TABLE saved_"+table+" AS TABLE "+table)
		columns := testdb.Value[string](t, db, `
			SELECT string_agg(column_name, ', ') FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER'`, table)
		undo.WriteString("DELETE FROM " + table + "; INSERT INTO " + table + " (" + columns + ") SELECT " + columns + " FROM saved_" + table + ";")
	}
	return func() { db.Exec(t, undo.String()) }
}

// wantViolation fails the test unless the promise is among the broken ones, with rows that show it.
func wantViolation(t *testing.T, report check.Report, promise string) check.Violation {
	t.Helper()
	i := slices.IndexFunc(report.Violations, func(v check.Violation) bool { return v.Promise == promise })
	if i < 0 {
		t.Fatalf("nobody says that %q is broken; found: %v", promise, report.Violations)
	}
	return report.Violations[i]
}

func TestNothingIsWrongWithWhatTheServiceHasDone(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	report := j.check(t, j.history)
	for _, v := range report.Violations {
		t.Error(v)
	}
	want := check.Seen{Reports: 1, Versions: 2, Leases: 2, Objects: 3, Keys: 3, Digests: 1, Answers: 6}
	if report.Seen != want {
		t.Errorf("seen %+v, want %+v", report.Seen, want)
	}
}

func TestTheCheckerFindsRowsThatBreakAPromise(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	restore := allowTampering(t, j.DB)
	for _, c := range []struct{ name, tamper, promise string }{
		{
			"a version is missing", `UPDATE publication SET version = 3 WHERE version = 2; UPDATE report SET version = 3`,
			"the versions of a report are 1 to n without gaps",
		},
		{
			"the report's version goes back", `UPDATE report SET version = 1`,
			"a report shows its newest publication",
		},
		{
			"the report points elsewhere", `UPDATE report SET visible_counter = 1`,
			"a report shows its newest publication",
		},
		{
			"a key makes two versions",
			`ALTER TABLE publication DROP CONSTRAINT publication_report_id_idempotency_key_key;
			 UPDATE publication SET idempotency_key = 'k1'`,
			"one version comes of an idempotency key",
		},
		{
			"a fence falls from one version to the next", `UPDATE publication SET fence_counter = 3 - fence_counter`,
			"the fences of publications never fall",
		},
		{
			"a fence was never granted", `UPDATE publication SET fence_counter = 9 WHERE version = 2`,
			"a publication's fence was granted before it",
		},
		{
			"a fence's grant is missing among those kept", `DELETE FROM lease WHERE lease_id = 'a2'`,
			"a publication's fence was granted before it",
		},
		{
			"a fence was granted later", `UPDATE lease SET granted_at = granted_at + interval '1 hour' WHERE lease_id = 'a2'`,
			"a publication's fence was granted before it",
		},
		{
			"a stale fence was published under", `UPDATE publication SET fence_counter = 1 WHERE version = 2`,
			"nothing is published under a fence once a greater one was granted",
		},
		{
			"an object of another grant was published", `UPDATE publication SET object_counter = 2 WHERE version = 1`,
			"what one grant staged and never published is not published under another",
		},
		{
			"a revoked fence was published under",
			`UPDATE report SET barred_epoch = 1, barred_counter = 1, barred_at = '2000-01-01', barred_by = 'x', barred_reason = 'x'`,
			"nothing is published under a revoked fence",
		},
		{
			"grants in the wrong order", `UPDATE lease SET granted_at = granted_at + interval '1 hour' WHERE lease_id = 'a1'`,
			"every grant has a greater fence than all before it",
		},
		{
			"a fence granted twice",
			`ALTER TABLE lease DROP CONSTRAINT lease_report_id_fence_epoch_fence_counter_key; UPDATE lease SET fence_counter = 2`,
			"every grant has a greater fence than all before it",
		},
		{
			"a report that forgets a grant", `UPDATE report SET granted_counter = 1, accepted_counter = 1`,
			"a report remembers the greatest fence that was granted",
		},
		{
			"a second live lease", `UPDATE lease SET ended_at = NULL, end_reason = NULL WHERE lease_id = 'a1'`,
			"the only lease that has not ended is the report's own, under its greatest fence",
		},
		{
			"a live lease whose record has ended", `UPDATE lease SET ended_at = now(), end_reason = 'released' WHERE lease_id = 'a2'`,
			"the only lease that has not ended is the report's own, under its greatest fence",
		},
		{
			"leases that overlap", `UPDATE lease SET ended_at = ended_at + interval '1 hour' WHERE lease_id = 'a1'`,
			"a lease ends before the next one is granted",
		},
		{
			"a visible object is condemned",
			`UPDATE object SET state = 'condemned', condemned_at = now(), condemned_reason = 'superseded', purge_after = now()
			 WHERE fence_counter = 2 AND object_id = 'july.csv'`,
			"a visible object is sealed, and kept without limit",
		},
		{
			"an object was condemned when it was visible",
			`UPDATE object SET state = 'condemned', condemned_reason = 'superseded', purge_after = now(),
			        condemned_at = (SELECT published_at FROM publication WHERE version = 1) WHERE fence_counter = 1`,
			"nothing is condemned while it is visible",
		},
		{
			"a visible object will be due", `UPDATE object SET eligible_at = now() + interval '1 day'`,
			"a visible object is sealed, and kept without limit",
		},
		{
			"a visible object has no row", `DELETE FROM object WHERE fence_counter = 2 AND object_id = 'july.csv'`,
			"a visible object is sealed, and kept without limit",
		},
		{
			"a receipt is not the object's", `UPDATE publication SET size = size + 1`,
			"a version's receipt is that of the object it shows",
		},
		{
			"an object is kept for nothing", `UPDATE object SET eligible_at = NULL WHERE object_id = 'draft.csv'`,
			"what no version keeps has a time from which it may be collected",
		},
		{
			"an object is overdue to be condemned",
			`UPDATE object SET eligible_at = now() - interval '16 minutes' WHERE object_id = 'draft.csv'`,
			"what is due is collected",
		},
		{
			"an object is overdue to be deleted",
			`UPDATE object SET state = 'condemned', eligible_at = NULL, condemned_at = now(), condemned_reason = 'discarded',
			        purge_after = now() - interval '16 minutes' WHERE object_id = 'draft.csv'`,
			"what is due is collected",
		},
		{
			"a deleted object has bytes",
			`UPDATE object SET state = 'deleted', eligible_at = NULL, condemned_at = now(), condemned_reason = 'discarded',
			        purge_after = now(), deleted_at = now() WHERE object_id = 'draft.csv'`,
			"what is deleted has no bytes",
		},
		{
			"a forgotten object has bytes", `DELETE FROM object WHERE object_id = 'draft.csv'`,
			"every key in the bucket is known to the catalog",
		},
		{
			"a visible object has another digest", `UPDATE object SET sha256 = sha256('x'); UPDATE publication SET sha256 = sha256('x')`,
			"a visible object exists with the size and digest that were published",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer restore()
			j.DB.Exec(t, c.tamper)
			found := wantViolation(t, j.check(t, check.History{}), c.promise)
			if len(found.Rows) == 0 && !strings.HasPrefix(c.name, "a forgotten") {
				t.Error("no row shows it")
			}
		})
	}
}

func TestTheCheckerFindsBytesThatBreakAPromise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		tamper  func(*testing.T, *july)
		promise string
	}{
		{
			"visible bytes are missing", func(t *testing.T, j *july) { j.Storage.Delete(t, j.visible) },
			"a visible object exists with the size and digest that were published",
		},
		{
			"visible bytes were changed", func(t *testing.T, j *july) { j.Storage.Put(t, j.visible, "version 2!!") },
			"a visible object exists with the size and digest that were published",
		},
		{
			"bytes of a superseded version are missing", func(t *testing.T, j *july) { j.Storage.Delete(t, j.first) },
			"what is kept has its bytes",
		},
		{
			"bytes of a draft were changed", func(t *testing.T, j *july) { j.Storage.Put(t, j.draft, "another") },
			"what is kept has its bytes",
		},
		{
			"bytes under a key that nobody knows", func(t *testing.T, j *july) { j.Storage.Put(t, "reports/july/1.7/x", "x") },
			"every key in the bucket is known to the catalog",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := startJuly(t)
			c.tamper(t, j)
			wantViolation(t, j.check(t, check.History{}), c.promise)
		})
	}
}

func TestAKeyOutsideOfTheReportsIsNobodysBusiness(t *testing.T) {
	t.Parallel()
	j := startJuly(t)
	j.Storage.Put(t, "elsewhere/x", "x")
	if found := j.check(t, check.History{}).Violations; len(found) > 0 {
		t.Errorf("found %v", found)
	}
}
