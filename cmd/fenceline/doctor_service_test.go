package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestDoctorPrintsATableAndNoSecret(t *testing.T) {
	t.Parallel()
	storage := testbucket.New(t)
	settings := append(storageSettings(storage), "FENCELINE_DATABASE_URL="+testdb.New(t).URL)
	got := fenceline(t, settings, "doctor").ends(t, 0, "WHAT", "RESULT", "WHAT FOLLOWS",
		"storage: conditional create", "storage: delete of many, with CRC32", "database: schema", "0 failed")
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "AWS_SECRET") && strings.Contains(got.Out+got.Remark, value) {
			t.Errorf("it shows %s", name)
		}
	}
	if keys := storage.Keys(t); len(keys) > 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func TestDoctorAsJSONSaysTheSame(t *testing.T) {
	t.Parallel()
	settings := append(storageSettings(testbucket.New(t)), "FENCELINE_DATABASE_URL="+testdb.New(t).URL)
	got := fenceline(t, settings, "doctor", "--json").ends(t, 0)
	var report struct {
		Result   string
		Findings []struct{ About, Check, Result, Detail, Follows string }
	}
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil {
		t.Fatalf("%v: %s", err, got.Out)
	}
	if report.Result != "warning" || len(report.Findings) < 30 { // the tests' database does not sync
		t.Errorf("%s in all, %d findings", report.Result, len(report.Findings))
	}
	for _, f := range report.Findings {
		if f.About == "" || f.Check == "" || f.Result == "" || f.Result == "warning" && f.Follows == "" {
			t.Errorf("an incomplete finding: %+v", f)
		}
	}
}

func TestDoctorFailsWhereSomethingMustNotBeUsed(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	db := testdb.New(t)
	fenceline(t, append(storageSettings(b.IgnoringConditions(t)), "FENCELINE_DATABASE_URL="+db.URL), "doctor").
		ends(t, 1, "failed: ", "--s3-allow-overwrites", "something must not be used so")
	fenceline(t, append(storageSettings(b), "FENCELINE_DATABASE_URL=postgres://u:s3cr3t@127.0.0.1:1/x"), "doctor").
		ends(t, 1, "database: reachable", "storage: conditional create", "1 failed")
	away := *b
	away.Config.Endpoint = "http://127.0.0.1:1"
	fenceline(t, append(storageSettings(&away), "FENCELINE_DATABASE_URL="+db.URL), "doctor").
		ends(t, 1, "storage: reachable", "database: schema", "1 failed")
	fenceline(t, storageSettings(b), "doctor").ends(t, 2)
	fenceline(t, append(storageSettings(b), "FENCELINE_DATABASE_URL="+db.URL), "doctor", "--s3-delete=gently").ends(t, 2, "--s3-delete")
}

func TestDoctorCallsForTheRightToScanUnlessNothingScans(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	proxy := b.Proxy(t)
	behind := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("versioning") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	settings := append(storageSettings(behind), "FENCELINE_DATABASE_URL="+testdb.New(t).URL)
	fenceline(t, settings, "doctor").ends(t, 1, "every scan of the bucket fails", "s3:GetBucketVersioning")
	fenceline(t, settings, "doctor", "--gc-scan-every=off").ends(t, 0, "s3:GetBucketVersioning")
}

func TestACollectorBeforeAStorageWithoutBatchesSaysSoAndGoesOn(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	db := testdb.New(t)
	proxy := b.Proxy(t)
	behind := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Query().Has("delete") {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	db.Exec(t, `INSERT INTO report (report_id, created_at) VALUES ('july', fenceline_now())`)
	db.Exec(t, `
		INSERT INTO object (report_id, fence_epoch, fence_counter, object_id, prefix, state, reserved_at, upload_until, eligible_at)
		VALUES ('july', 1, 1, 'left', '', 'reserved', fenceline_now(), fenceline_now(), fenceline_now())`)
	settings := append(storageSettings(behind), "FENCELINE_DATABASE_URL="+db.URL, "FENCELINE_PURGE_GRACE=31s",
		"FENCELINE_DOWNLOAD_URL_LIFE=1s", "FENCELINE_LOG_FORMAT=text", "FENCELINE_GC_FIRST_RUN=collect")
	fenceline(t, settings, "gc", "run").ends(t, 0, "condemned 1")
	db.Exec(t, "UPDATE object SET purge_after = fenceline_now()")
	fenceline(t, settings, "gc", "run").ends(t, 0, "deleted 1", "level=WARN", "--s3-delete", "501")
}
