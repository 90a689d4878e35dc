package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fenceline/fenceline/internal/testbucket"
	"github.com/fenceline/fenceline/internal/testdb"
)

func TestServeMigratesABlankDatabaseAndWorksUntilItIsTold(t *testing.T) {
	t.Parallel()
	testdb.Empty(t) // so that the service's role may log in
	blank, storage := testdb.Blank(t), testbucket.New(t)
	serviceURL := asUser(t, blank, "fenceline_service")
	s := serve(t, append(storageSettings(storage), "FENCELINE_DATABASE_URL="+serviceURL), "--migrate", "--migrate-database-url="+blank, "--log-level=debug")

	fenceline(t, []string{"FENCELINE_DATABASE_URL=" + serviceURL}, "key", "create", "--role=operator", "--name=own").ends(t, 1, "permission denied")
	key := fenceline(t, []string{"FENCELINE_DATABASE_URL=" + blank}, "key", "create", "--role=worker", "--name=test").ends(t, 0)
	if !regexp.MustCompile(`^fl_[a-z0-9]+_[A-Za-z0-9]+\n$`).MatchString(key.Out) {
		t.Errorf("%q is not a key alone", key.Out)
	}
	if secret := strings.TrimSpace(key.Out); strings.Contains(key.Remark, secret) {
		t.Errorf("the remark shows the key: %q", key.Remark)
	}
	worker := []string{"FENCELINE_URL=" + s.URL, "FENCELINE_KEY=" + strings.TrimSpace(key.Out)}
	fenceline(t, worker, "publish", "july", write(t, "july.csv", "region,total\n")).ends(t, 0, "version 1", "1.1")
	if got := fenceline(t, worker, "get", "july").ends(t, 0); got.Out != "region,total\n" {
		t.Errorf("got %q", got.Out)
	}
	ready, err := http.Get(s.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	ready.Body.Close()
	if ready.StatusCode != http.StatusOK {
		t.Errorf("/readyz answers %d", ready.StatusCode)
	}
	if code := s.stop(t); code != 0 {
		t.Errorf("SIGTERM ended it with exit code %d: %q", code, s.log())
	}
	inspectLog(t, s.log(), strings.TrimSpace(key.Out))
}

func TestFiveInstancesThatStartAtOnceOnAnEmptyDatabaseAllComeUp(t *testing.T) {
	t.Parallel()
	testdb.Empty(t) // so that the service's role may log in
	blank, storage := testdb.Blank(t), testbucket.New(t)
	serviceURL := asUser(t, blank, "fenceline_service")
	settings := append(storageSettings(storage), "FENCELINE_DATABASE_URL="+serviceURL)
	instances := make([]*served, 5)
	var starting sync.WaitGroup
	for n := range instances {
		starting.Go(func() {
			instances[n] = serve(t, settings, "--migrate", "--migrate-database-url="+blank, "--log-level=info")
		})
	}
	starting.Wait()
	if t.Failed() {
		return
	}
	key := strings.TrimSpace(fenceline(t, []string{"FENCELINE_DATABASE_URL=" + blank}, "key", "create", "--role=worker", "--name=test").ends(t, 0).Out)
	for n, s := range instances {
		answer, err := http.Get(s.URL + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("instance %d: /readyz answers %d", n, answer.StatusCode)
		}
		version := fmt.Sprint("version ", n+1) // of the one report that all share, in the one epoch that all verified
		worker := []string{"FENCELINE_URL=" + s.URL, "FENCELINE_KEY=" + key}
		fenceline(t, worker, "publish", "july", write(t, "july.csv", version)).ends(t, 0, version, fmt.Sprint("1.", n+1))
		next := []string{"FENCELINE_URL=" + instances[(n+1)%len(instances)].URL, "FENCELINE_KEY=" + key}
		if got := fenceline(t, next, "get", "july").ends(t, 0); got.Out != version {
			t.Errorf("the next instance reads %q, want %q", got.Out, version)
		}
	}
	for n, s := range instances {
		if code := s.stop(t); code != 0 {
			t.Errorf("SIGTERM ended instance %d with exit code %d: %q", n, code, s.log())
		}
	}
}

// inspectLog fails the test unless each line is a JSON object and none shows a secret.
func inspectLog(t *testing.T, lines []string, key string) {
	t.Helper()
	if len(lines) < 5 {
		t.Errorf("only %d lines were logged", len(lines))
	}
	secrets := []string{
		key, key[strings.LastIndex(key, "_")+1:], os.Getenv("AWS_SECRET_ACCESS_KEY"), "s3cr3t", "Authorization", "Bearer ",
		"X-Amz-Signature", "X-Amz-Credential",
	}
	for _, line := range lines {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["msg"] == nil || entry["level"] == nil || entry["time"] == nil {
			t.Errorf("no line of a JSON log: %q", line)
		}
		for _, secret := range secrets {
			if strings.Contains(line, secret) {
				t.Errorf("the log shows %q: %s", secret, line)
			}
		}
	}
}

func TestServeStartsOnNothingThatItCannotKeepItsPromisesOn(t *testing.T) {
	t.Parallel()
	db, storage := testdb.Empty(t), testbucket.New(t)
	overwriting := testbucket.New(t).IgnoringConditions(t)
	away := *storage
	away.Config.Endpoint = "http://127.0.0.1:1"
	missing := *storage
	missing.Config.Bucket = "nobody-made-this-one"
	for name, c := range map[string]struct {
		database string
		storage  *testbucket.Bucket
		code     int
		says     []string
	}{
		"a database without schema": {testdb.Blank(t), storage, 1, []string{"not migrated", "fenceline migrate up"}},
		"a database that is away":   {"postgres://nobody@127.0.0.1:1/x", storage, 7, []string{"127.0.0.1"}},
		"a storage that overwrites": {db.URL, overwriting, 1, []string{"check the storage", "If-None-Match"}},
		"a storage that is away":    {db.URL, &away, 7, []string{"check the storage", "unavailable"}},
		"a bucket that is missing":  {db.URL, &missing, 1, []string{"check the storage"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := append(storageSettings(c.storage), "FENCELINE_DATABASE_URL="+c.database, "FENCELINE_LISTEN=127.0.0.1:0", "FENCELINE_LOG_LEVEL=error")
			fenceline(t, settings, "serve").ends(t, c.code, c.says...)
		})
	}
}

func TestServeOnAnAddressThatIsTakenSaysSo(t *testing.T) {
	t.Parallel()
	db, storage := testdb.Empty(t), testbucket.New(t)
	settings := append(storageSettings(storage), "FENCELINE_DATABASE_URL="+db.URL, "FENCELINE_LOG_LEVEL=info")
	s := serve(t, settings)
	address := strings.TrimPrefix(s.URL, "http://")
	fenceline(t, settings, "serve", "--listen="+address).ends(t, 1, "listen on "+address)
	if code := s.stop(t); code != 0 {
		t.Errorf("SIGTERM ended it with exit code %d", code)
	}
}
