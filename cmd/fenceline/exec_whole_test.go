package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/increments"
	"github.com/fenceline/fenceline/internal/testservice"
)

func TestTheScriptThatShowsExecFindsAllAsPromised(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	script, err := filepath.Abs("../../tools/exec-check")
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), script)
	check.Env = append(programOnPath(t), storageSettings(s.Storage)...)
	check.Env = append(check.Env, "FENCELINE_URL="+s.URL, "FENCELINE_KEY="+s.Operator, "FENCELINE_DATABASE_URL="+s.DB.URL)
	said, err := check.Output()
	if err != nil || strings.Contains(string(said), "NOT OK") || strings.Count(string(said), "\nok ") < 15 {
		t.Errorf("%v:\n%s", err, said)
	}
}

func TestANumberIsExactlyHowOftenItsIncrementWasAppliedThoughWorkersAreSuspended(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	r, err := increments.Run(t.Context(), increments.Config{
		Program: os.Args[0], Env: append(programOnPath(t), workerSettings(s)...), Folder: t.TempDir(),
		Service: client.Config{URL: s.URL, Key: s.Worker}, Workers: 2, Times: 12, Share: 0.25, Seed: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Broken) > 0 || r.Codes[0] == 0 || r.Suspended == 0 {
		t.Errorf("%+v", r)
	}
}
