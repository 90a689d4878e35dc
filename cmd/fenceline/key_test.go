package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fenceline/fenceline/internal/testdb"
)

// keyLine is the form of a key that is printed alone.
var keyLine = regexp.MustCompile(`^fl_([a-z2-7]{16})_[a-z2-7]{32}\n$`)

// keyCommands runs `fenceline key …` on a database of the test's own.
type keyCommands struct {
	t  *testing.T
	db *testdb.DB
}

func newKeyCommands(t *testing.T) keyCommands {
	t.Helper()
	return keyCommands{t, testdb.New(t)}
}

func (k keyCommands) run(args ...string) result {
	k.t.Helper()
	return fenceline(k.t, []string{"FENCELINE_DATABASE_URL=" + k.db.OwnerURL}, append([]string{"key"}, args...)...)
}

// make runs a command that prints a key, and returns the key and its id.
func (k keyCommands) make(args ...string) (secret, id string) {
	k.t.Helper()
	got := k.run(args...)
	match := keyLine.FindStringSubmatch(got.Out)
	if got.Code != 0 || match == nil {
		k.t.Fatalf("%q: %+v", args, got)
	}
	if !strings.Contains(got.Remark, "key "+match[1]+": ") || strings.Contains(got.Remark, strings.TrimSpace(got.Out)) {
		k.t.Errorf("%q remarks %q", args, got.Remark)
	}
	return strings.TrimSpace(got.Out), match[1]
}

// listed is a key of `key list --json`.
type listed struct {
	ID, Name, Role, Pattern, State string
	CreatedAt                      time.Time  `json:"created_at"`
	ExpiresAt                      *time.Time `json:"expires_at"`
	RevokedAt                      *time.Time `json:"revoked_at"`
	LastUsedAt                     *time.Time `json:"last_used_at"`
}

func (k keyCommands) list() map[string]listed {
	k.t.Helper()
	got := k.run("list", "--json")
	var list struct{ Items []listed }
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil || got.Code != 0 {
		k.t.Fatalf("key list --json: %v: %+v", err, got)
	}
	byID := map[string]listed{}
	for _, key := range list.Items {
		byID[key.ID] = key
	}
	return byID
}

func TestAKeyLivesFromItsCreationToItsRevocation(t *testing.T) {
	t.Parallel()
	k := newKeyCommands(t)
	if got := k.run("list", "--json"); got.Out != "{\n  \"items\": []\n}\n" {
		t.Errorf("before the first key: %+v", got)
	}
	secret, id := k.make("create", "--role", "worker", "--name", "night run", "--pattern", "sales.*", "--expires-in", "2160h")
	got := k.list()[id]
	if got.Name != "night run" || got.Role != "worker" || got.Pattern != "sales.*" || got.State != "active" ||
		got.RevokedAt != nil || got.LastUsedAt != nil || got.ExpiresAt == nil || got.ExpiresAt.Sub(got.CreatedAt) != 2160*time.Hour {
		t.Errorf("key %+v", got)
	}

	for _, name := range []string{id, secret, id} {
		revoked := k.run("revoke", name)
		if revoked.Code != 0 || !strings.Contains(revoked.Out, id) || strings.Contains(revoked.Out+revoked.Remark, secret) {
			t.Errorf("revoke: %+v", revoked)
		}
	}
	if got := k.list()[id]; got.State != "revoked" || got.RevokedAt == nil {
		t.Errorf("after it was revoked: %+v", got)
	}
}

func TestATableOfKeysIsForPeople(t *testing.T) {
	t.Parallel()
	k := newKeyCommands(t)
	var secrets []string
	create := func(name string, more ...string) string {
		secret, id := k.make(append([]string{"create", "--role", "reader", "--name", name}, more...)...)
		secrets = append(secrets, secret)
		return id
	}
	ended, short, rotated := create("ended"), create("short", "--expires-in", "1h"), create("rotated")
	k.db.Advance(t, time.Hour)
	if got := k.run("revoke", ended); got.Code != 0 {
		t.Fatalf("revoke: %+v", got)
	}
	secret, successor := k.make("rotate", rotated)
	secrets = append(secrets, secret)

	got := k.run("list")
	lines := strings.Split(strings.TrimSuffix(got.Out, "\n"), "\n")
	if got.Code != 0 || got.Remark != "" || len(lines) != 5 {
		t.Fatalf("key list: %+v", got)
	}
	if head := strings.Fields(lines[0]); !slices.Equal(head, strings.Fields("ID NAME ROLE PATTERN CREATED EXPIRES LAST USED STATE")) {
		t.Errorf("head %q", head)
	}
	const at = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	for _, want := range []string{
		ended + `  ended    reader  \*  +` + at + `  never +never +revoked`,
		short + `  short    reader  \*  +` + at + `  ` + at + `  never +expired`,
		rotated + `  rotated  reader  \*  +` + at + `  never +never +active until ` + at,
		successor + `  rotated  reader  \*  +` + at + `  never +never +active`,
	} {
		if !slices.ContainsFunc(lines[1:], regexp.MustCompile(`^`+want+`$`).MatchString) {
			t.Errorf("no line %s in:\n%s", want, got.Out)
		}
	}
	all := got.Out + k.run("list", "--json").Out
	for _, secret := range secrets {
		if strings.Contains(all, secret) || strings.Contains(all, strings.Split(secret, "_")[2]) || strings.Contains(all, "hash") {
			t.Errorf("a secret or hash is listed:\n%s", all)
		}
	}
}

func TestARotationPrintsTheNewKeyAloneAndEndsTheOldOneLater(t *testing.T) {
	t.Parallel()
	k := newKeyCommands(t)
	_, old := k.make("create", "--role", "operator", "--name", "deploy", "--pattern", "july", "--expires-in", "1000h")
	_, successor := k.make("rotate", old, "--overlap", "2h")

	keys := k.list()
	from, to := keys[old], keys[successor]
	if to.Name != from.Name || to.Role != from.Role || to.Pattern != from.Pattern ||
		to.ExpiresAt == nil || to.ExpiresAt.Sub(to.CreatedAt) != 1000*time.Hour {
		t.Errorf("from %+v to %+v", from, to)
	}
	if from.State != "active" || from.RevokedAt == nil {
		t.Errorf("within the overlap: %+v", from)
	}
	k.db.Advance(t, 2*time.Hour)
	keys = k.list()
	if keys[old].State != "revoked" || keys[successor].State != "active" {
		t.Errorf("after the overlap: %+v", keys)
	}
}

func TestARotationThatCannotPrintEndsNothing(t *testing.T) {
	t.Parallel()
	k := newKeyCommands(t)
	_, old := k.make("create", "--role", "reader", "--name", "a")
	readOnly, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	var remark bytes.Buffer
	command := exec.CommandContext(t.Context(), os.Args[0], "key", "rotate", old, "--overlap", "0s")
	command.Env = []string{asProgram + "=1", "FENCELINE_DATABASE_URL=" + k.db.OwnerURL}
	command.Stdout, command.Stderr = readOnly, &remark
	if err := command.Run(); command.ProcessState.ExitCode() != 1 {
		t.Errorf("%v: %s", err, remark.String())
	}
	keys := k.list()
	if len(keys) != 2 || keys[old].State != "active" || keys[old].RevokedAt != nil {
		t.Errorf("keys %+v", keys)
	}
	for id, key := range keys {
		if key.State != "active" || !strings.Contains(remark.String(), id) {
			t.Errorf("%s is %s and must be named in %q", id, key.State, remark.String())
		}
	}
}

func TestAKeyThatIsNotThereIsExitCode6(t *testing.T) {
	t.Parallel()
	k := newKeyCommands(t)
	_, ended := k.make("create", "--role", "reader", "--name", "a")
	if got := k.run("revoke", ended); got.Code != 0 {
		t.Fatalf("revoke: %+v", got)
	}
	for _, args := range [][]string{
		{"revoke", "abcdefgh22222222"},
		{"revoke", "no such key"},
		{"revoke", "fl_abcdefgh_s3cr3t_"},
		{"rotate", "abcdefgh22222222"},
		{"rotate", ended},
	} {
		got := k.run(args...)
		if got.Code != 6 || got.Out != "" || strings.Count(got.Remark, "\n") != 1 || strings.Contains(got.Remark, "s3cr3t") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestAKeyCommandThatMakesNoSenseIsExitCode2(t *testing.T) {
	t.Parallel()
	settings := []string{"FENCELINE_DATABASE_URL=postgres://127.0.0.1:1/nothing"}
	create := func(args ...string) []string { return append([]string{"create", "--role", "reader"}, args...) }
	for names, args := range map[string][]string{
		"--name":          create(),
		`name ""`:         create("--name", ""),
		`pattern "a*b"`:   create("--name", "a", "--pattern", "a*b"),
		"--role":          {"create", "--name", "a", "--role", "root"},
		"--expires-in=0s": create("--name", "a", "--expires-in", "0s"),
		"--expires-in=-1": create("--name", "a", "--expires-in=-1h"),
		"ten years":       create("--name", "a", "--expires-in", "900000h"),
		"life 1ms":        create("--name", "a", "--expires-in", "1ms"),
		"missing unit":    create("--name", "a", "--expires-in", "90"),
		"--overlap=-1h":   {"rotate", "abcdefgh", "--overlap=-1h"},
		"from 0s to":      {"rotate", "abcdefgh", "--overlap", "900000h"},
		"<id>":            {"revoke"},
	} {
		got := fenceline(t, settings, append([]string{"key"}, args...)...)
		if got.Code != 2 || got.Out != "" || strings.Count(got.Remark, "\n") != 1 || !strings.Contains(got.Remark, names) {
			t.Errorf("%q: %+v, want one line that names %s", args, got, names)
		}
	}
}

func TestKeysOfADatabaseThatIsAwayAreExitCode7(t *testing.T) {
	t.Parallel()
	settings := []string{"FENCELINE_DATABASE_URL=postgres://u:s3cr3t@127.0.0.1:1/nothing"}
	for _, args := range [][]string{{"list"}, {"revoke", "abcdefgh"}, {"rotate", "abcdefgh"}, {"create", "--role", "reader", "--name", "a"}} {
		got := fenceline(t, settings, append([]string{"key"}, args...)...)
		if got.Code != 7 || got.Out != "" || strings.Count(got.Remark, "\n") != 1 || strings.Contains(got.Remark, "s3cr3t") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
