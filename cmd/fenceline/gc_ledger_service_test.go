package main_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fenceline/fenceline/internal/testdb"
	"github.com/fenceline/fenceline/internal/testservice"
)

// ledger makes three runs on record, with 2 500 entries, of which one run and one action have more than a page: some with
// commas, quotes and line breaks in what the storage said, and without a size.
func ledger(t *testing.T, s *testservice.Service) {
	t.Helper()
	settings := leftovers(t, s)
	for range 3 {
		fenceline(t, settings, "gc", "run", "--dry-run", "--quiet").ends(t, 0)
	}
	s.DB.Exec(t, `DELETE FROM gc_ledger`)
	s.DB.Exec(t, `UPDATE gc_run SET dry_run = false WHERE run_id < 3`)
	s.DB.Exec(t, `
		INSERT INTO gc_ledger (run_id, action, reason, detail, report_id, fence_epoch, fence_counter, object_id, key, size, at)
		SELECT CASE n % 20 WHEN 0 THEN 1 WHEN 1 THEN 3 ELSE 2 END, CASE n % 5 WHEN 4 THEN 'deleted' ELSE 'delete_failed' END, 'superseded',
		       CASE n % 5 WHEN 4 THEN NULL ELSE E'AccessDenied: "no",\nsays the storage' END,
		       'july', 1, n, 'o' || n, 'reports/july/1.' || n || '/o' || n, nullif(n % 7, 0), fenceline_now()
		FROM generate_series(1, 2500) n`)
}

// rows reads the ledger as the database has it, as an export shows it.
func rows(t *testing.T, s *testservice.Service, where, detail string) []string {
	t.Helper()
	return testdb.Value[[]string](t, s.DB, `
		SELECT array_agg(concat_ws('|', run_id, action, reason, report_id, fence_epoch || '.' || fence_counter, object_id, key, coalesce(size::text, ''), coalesce(`+detail+`, ''))
		       ORDER BY run_id, entry)
		FROM gc_ledger WHERE `+where)
}

func TestTheLedgerIsExportedAsItIs(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	ledger(t, s)
	operator := operatorSettings(s)
	for name, c := range map[string]struct {
		args  []string
		where string
	}{
		"of all runs":   {nil, "run_id < 3"}, // without what a dry run would have done
		"of dry runs":   {[]string{"--dry-runs"}, "true"},
		"of one run":    {[]string{"2"}, "run_id = 2"},
		"of a dry run":  {[]string{"3"}, "run_id = 3"},
		"of one action": {[]string{"--action=delete_failed"}, "run_id < 3 AND action = 'delete_failed'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := rows(t, s, c.where, `regexp_replace(detail, '\s+', ' ', 'g')`) // each row is one line
			var got []string
			export := fenceline(t, operator, append([]string{"gc", "ledger"}, c.args...)...).ends(t, 0)
			records, err := csv.NewReader(strings.NewReader(export.Out)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"run_id", "at", "action", "reason", "report", "fence", "object_id", "key", "size", "detail"}, records[0]); diff != "" {
				t.Errorf("the header (-want +got):\n%s", diff)
			}
			for _, r := range records[1:] {
				if at, err := time.Parse(time.RFC3339Nano, r[1]); err != nil || at.Location() != time.UTC || !strings.HasSuffix(r[1], "Z") {
					t.Errorf("the time %q is not RFC 3339 in UTC: %v", r[1], err)
				}
				got = append(got, strings.Join(append(r[:1:1], r[2:]...), "|"))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the rows (-want +got):\n%s", diff)
			}
			if n := strings.Count(export.Out, "\r\n"); n != len(want)+1 {
				t.Errorf("%d rows end as RFC 4180 says, want %d", n, len(want)+1)
			}

			want, got = rows(t, s, c.where, "detail"), nil
			for _, e := range parsed(t, fenceline(t, operator, append([]string{"gc", "ledger", "--format=json"}, c.args...)...).ends(t, 0).Out) {
				size, detail := "", ""
				if e["size"] != nil {
					size = fmt.Sprint(e["size"])
				}
				if e["detail"] != nil {
					detail = fmt.Sprint(e["detail"])
				}
				got = append(got, fmt.Sprintf("%v|%v|%v|%v|%v|%v|%v|%s|%s", e["run_id"], e["action"], e["reason"], e["report"], e["fence"], e["object_id"], e["key"], size, detail))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the lines of JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnExportThatNobodyReadsToItsEndStops(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	ledger(t, s)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	r := startAs(t, func(c *exec.Cmd) { c.Stdout = write }, operatorSettings(s), "gc", "ledger")
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	r.ends(t, -1) // by SIGPIPE, as programs in a pipe do, and in silence
}

func TestAnExportOfNothingIsAHeaderOrAnError(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	operator := operatorSettings(s)
	fenceline(t, operator, "gc", "ledger").ends(t, 0, "run_id,at,action,reason,report,fence,object_id,key,size,detail\r\n")
	if got := fenceline(t, operator, "gc", "ledger", "--format=json").ends(t, 0); got.Out != "" {
		t.Errorf("as JSON nothing is %q", got.Out)
	}
	if got := fenceline(t, operator, "gc", "ledger", "7"); got.Code != 6 || !strings.Contains(got.Remark, "run_not_found") {
		t.Errorf("a run that is not there: %+v", got)
	}
	fenceline(t, operator, "gc", "ledger", "--format=xml").ends(t, 2, "--format")
}

func TestTheCollectorIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	operator := operatorSettings(s)
	for range 2 {
		fenceline(t, operator, "gc", "pause").ends(t, 0, "paused", "fenceline gc resume")
		if document(t, s, "/v1/status")["gc_paused_since"] == nil {
			t.Error("the collector is not paused")
		}
	}
	settings := append(storageSettings(s.Storage), "FENCELINE_DATABASE_URL="+s.DB.URL, "FENCELINE_LOG_LEVEL=error", "FENCELINE_GC_FIRST_RUN=collect")
	fenceline(t, settings, "gc", "run").ends(t, 5, "paused")
	fenceline(t, operator, "gc", "resume").ends(t, 0, "goes on")
	if document(t, s, "/v1/status")["gc_paused_since"] != nil {
		t.Error("the collector is paused still")
	}
	fenceline(t, workerSettings(s), "gc", "pause").ends(t, 1, "forbidden")
}
