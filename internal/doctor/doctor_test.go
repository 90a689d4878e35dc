package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/internal/doctor"
	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
)

// examine looks at a bucket and a database.
func examine(t *testing.T, b *testbucket.Bucket, databaseURL string) doctor.Report {
	t.Helper()
	report, err := newDoctor(t, b, databaseURL).Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func newDoctor(t *testing.T, b *testbucket.Bucket, databaseURL string) *doctor.Doctor {
	t.Helper()
	return &doctor.Doctor{
		Pool: testdb.Open(t, database.Config{URL: databaseURL, Pool: 2}), PoolSize: 10, Bucket: b.Open(t),
	}
}

// want fails the test unless the check ended so, and what it says and what follows contain the words.
func want(t *testing.T, r doctor.Report, check string, result doctor.Result, words ...string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.About+": "+f.Check != check {
			continue
		}
		if f.Result != result {
			t.Errorf("%s: %s (%s; %s), want %s", check, f.Result, f.Detail, f.Follows, result)
		}
		for _, word := range words {
			if !strings.Contains(f.Detail+" "+f.Follows, word) {
				t.Errorf("%s says %q, %q; want %q in it", check, f.Detail, f.Follows, word)
			}
		}
		return
	}
	t.Errorf("nothing was found about %q", check)
}

// wantNothingLeft fails the test where a probe has left something behind.
func wantNothingLeft(t *testing.T, b *testbucket.Bucket) {
	t.Helper()
	if left := b.Versions(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left := b.Uploads(t); len(left) > 0 {
		t.Errorf("uploads left behind: %v", left)
	}
}

// refuse answers as storages do, with an error's code.
func refuse(t *testing.T, w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	if _, err := fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code); err != nil {
		t.Errorf("answer: %v", err)
	}
}

func TestAStorageAndADatabaseThatKeepTheirWordAreFoundToDoSo(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*testbucket.Bucket{"off": testbucket.New(t), "enabled": testbucket.NewVersioned(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.Config.Prefix = "team/"
			r := examine(t, b, testdb.New(t).URL)
			for _, f := range r.Findings {
				// The servers of the tests do not sync to the disk.
				if f.Result != doctor.OK && f.Check != "what is acknowledged is on disk" {
					t.Errorf("%s: %s is %s: %s; %s", f.About, f.Check, f.Result, f.Detail, f.Follows)
				}
			}
			if r.Result == doctor.Failed || len(r.Findings) < 30 {
				t.Errorf("%d findings, %s in all", len(r.Findings), r.Result)
			}
			want(t, r, "storage: versioning", doctor.OK, name)
			want(t, r, "database: identity", doctor.OK, "verified")
			wantNothingLeft(t, b)
		})
	}
}

func TestAStorageThatOverwritesMustNotBeUsed(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	r := examine(t, b.IgnoringConditions(t), testdb.New(t).URL)
	want(t, r, "storage: conditional create", doctor.Failed, "If-None-Match", "--s3-allow-overwrites")
	if r.Result != doctor.Failed {
		t.Errorf("in all it is %s", r.Result)
	}
	wantNothingLeft(t, b)
}

func TestTheWayToDeleteThatAStorageTakesIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuses func(*http.Request) bool
		advice  string
	}{
		"one that knows no batches":       {func(*http.Request) bool { return true }, "--s3-delete=single"},
		"one that demands Content-MD5":    {func(r *http.Request) bool { return r.Header.Get("Content-Md5") == "" }, "--s3-delete=md5"},
		"one that refuses newer checksum": {func(r *http.Request) bool { return r.Header.Get("X-Amz-Checksum-Crc32") != "" }, "--s3-delete=md5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbucket.New(t)
			proxy := b.Proxy(t)
			behind := b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.URL.Query().Has("delete") && tc.refuses(r) {
					refuse(t, w, http.StatusNotImplemented, "NotImplemented")
					return
				}
				proxy.ServeHTTP(w, r)
			}))
			r := examine(t, behind, testdb.New(t).URL)
			want(t, r, "storage: delete of many, with CRC32", doctor.Warning, tc.advice)
			want(t, r, "storage: delete of one", doctor.OK)
			if r.Result != doctor.Warning {
				t.Errorf("in all it is %s, want a warning", r.Result)
			}
			wantNothingLeft(t, b)
		})
	}
}

func TestWhatKeepsTheServiceOutOfTheStorageIsToldApart(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	refusing := func(status int, code string) func(*testing.T) *testbucket.Bucket {
		return func(t *testing.T) *testbucket.Bucket {
			return b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(t, w, status, code) }))
		}
	}
	db := testdb.New(t)
	for name, tc := range map[string]struct {
		bucket func(*testing.T) *testbucket.Bucket
		word   string
	}{
		"wrong credentials": {refusing(http.StatusForbidden, "InvalidAccessKeyId"), "credentials"},
		"wrong secret":      {refusing(http.StatusForbidden, "SignatureDoesNotMatch"), "credentials"},
		"another bucket": {func(*testing.T) *testbucket.Bucket {
			other := *b
			other.Config.Bucket = "not-there"
			return &other
		}, "--bucket"},
		"a clock that is off": {refusing(http.StatusForbidden, "RequestTimeTooSkewed"), "clock"},
		"nobody there": {func(*testing.T) *testbucket.Bucket {
			other := *b
			other.Config.Endpoint = "http://127.0.0.1:1"
			return &other
		}, "--s3-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, tc.bucket(t), db.URL)
			want(t, r, "storage: reachable, credentials, bucket", doctor.Failed, tc.word)
			want(t, r, "database: reachable", doctor.OK)
			want(t, r, "database: schema", doctor.OK)
		})
	}
}

func TestADatabaseThatIsAwayDoesNotKeepTheStorageFromBeingLookedAt(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	r := examine(t, b, "postgres://u:s3cr3t@127.0.0.1:1/x")
	want(t, r, "database: reachable", doctor.Failed, "--database-url")
	want(t, r, "storage: conditional create", doctor.OK)
	wantNothingLeft(t, b)
	for _, f := range r.Findings {
		if strings.Contains(f.Detail+f.Follows, "s3cr3t") {
			t.Errorf("%s shows the password", f.Check)
		}
	}
}

func TestWhatIsWrongWithADatabaseIsTold(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	db := testdb.New(t)
	r := examine(t, b, db.OwnerURL)
	want(t, r, "database: role", doctor.Warning, "fenceline_service")

	b.Put(t, "owner", "another catalog")
	r = examine(t, b, db.URL)
	want(t, r, "database: bucket's owner", doctor.Failed, "another catalog")
	b.Delete(t, "owner")

	db.Exec(t, "VACUUM FULL report")
	r = examine(t, b, db.URL)
	want(t, r, "database: identity", doctor.Warning, "epoch")

	r = examine(t, b, testdb.Blank(t))
	want(t, r, "database: schema", doctor.Failed, "migrate up")

	d := newDoctor(t, b, db.URL)
	d.PoolSize = 5000
	r, err := d.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, "database: connections", doctor.Failed, "--database-pool")
}

func TestAClockThatIsOffIsFound(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	proxy := b.Proxy(t)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat))
		return nil
	}
	r := examine(t, b.Behind(t, proxy), testdb.New(t).URL)
	want(t, r, "storage: clock", doctor.Warning, "behind this machine")
}

func TestTheAddressThatWorkersSeeIsTried(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	db := testdb.New(t)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(t, w, http.StatusForbidden, "SignatureDoesNotMatch")
	}))
	t.Cleanup(stranger.Close)
	for address, result := range map[string]doctor.Result{
		b.Behind(t, b.Proxy(t)).Config.Endpoint: doctor.OK,
		stranger.URL:                            doctor.Failed,
		"http://127.0.0.1:1":                    doctor.Warning,
	} {
		through := *b
		through.Config.PublicEndpoint = address
		r := examine(t, &through, db.URL)
		want(t, r, "storage: address that workers see", result)
		want(t, r, "storage: upload by URL, size and digest declared", doctor.OK)
		for _, f := range r.Findings {
			if strings.Contains(f.Detail, "X-Amz-Signature") {
				t.Errorf("%s shows a signed URL: %s", f.Check, f.Detail)
			}
		}
	}
}

func TestAnExaminationThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	for _, after := range []int32{5, 30, 45, 60} {
		b := testbucket.NewVersioned(t)
		ctx, cancel := context.WithCancel(t.Context())
		var requests atomic.Int32
		proxy := b.Proxy(t)
		d := newDoctor(t, b.Behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			proxy.ServeHTTP(w, r)
			if requests.Add(1) == after {
				cancel()
			}
		})), db.URL)
		if _, err := d.Examine(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted after %d requests it ended in %v", after, err)
		}
		wantNothingLeft(t, b)
	}
}

func TestAStorageThatKnowsNoVersioningKeepsNoVersions(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotImplemented, http.StatusMethodNotAllowed} {
		b := testbucket.New(t)
		r := examine(t, b.Behind(t, refusing(t, b, status, func(r *http.Request) bool { return r.URL.Query().Has("versioning") })), testdb.New(t).URL)
		want(t, r, "storage: versioning", doctor.OK, "off")
		want(t, r, "storage: list in byte order", doctor.OK)
	}
}

func TestWithoutTheRightToSeeTheVersioningEveryScanFails(t *testing.T) {
	t.Parallel()
	b := testbucket.New(t)
	behind := b.Behind(t, refusing(t, b, http.StatusForbidden, func(r *http.Request) bool { return r.URL.Query().Has("versioning") }))
	d := newDoctor(t, behind, testdb.New(t).URL)
	for noScans, result := range map[bool]doctor.Result{false: doctor.Failed, true: doctor.Warning} {
		d.NoScans = noScans
		r, err := d.Examine(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want(t, r, "storage: versioning", result, "s3:GetBucketVersioning")
	}
}

// On a bucket with versions the scan lists these.
func TestTheListThatIsTriedIsTheOneThatTheScanUses(t *testing.T) {
	t.Parallel()
	b := testbucket.NewVersioned(t)
	r := examine(t, b.Behind(t, refusing(t, b, http.StatusNotImplemented, func(r *http.Request) bool {
		return r.URL.Query().Has("versions") && strings.Contains(r.URL.Query().Get("prefix"), "/list/")
	})), testdb.New(t).URL)
	want(t, r, "storage: list in byte order", doctor.Warning, "scan")
	want(t, r, "storage: list in pages of two", doctor.Warning, "scan")
}

// refusing is the storage, but for some requests.
func refusing(t *testing.T, b *testbucket.Bucket, status int, these func(*http.Request) bool) http.Handler {
	t.Helper()
	proxy := b.Proxy(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if these(r) {
			refuse(t, w, status, "Refused")
			return
		}
		proxy.ServeHTTP(w, r)
	})
}
