package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	main "github.com/fenceline/fenceline/tools/composecheck"
)

// sound is a file without a mistake. Each test makes one.
const sound = `
x-hardened: &hardened
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  user: "1000:1000"
services:
  serve:
    <<: *hardened
    image: fenceline:v1.2.3
    command: [serve, --bucket=reports]
    environment:
      FENCELINE_DATABASE_URL: postgres://app@db/x?passfile=/run/secrets/app
      AWS_SECRET_ACCESS_KEY: ${S3_SECRET:?make one}
    secrets: [app]
    ports: ["127.0.0.1:8080:8080"]
    restart: unless-stopped
    healthcheck: {test: [CMD, /healthcheck]}
    depends_on:
      migrate: {condition: service_completed_successfully}
  migrate:
    <<: *hardened
    image: fenceline:v1.2.3
    command: [migrate, up]
    environment: {FENCELINE_DATABASE_URL: "postgres://owner@db/x"}
    depends_on:
      db: {condition: service_healthy}
  db:
    <<: *hardened
    image: registry.example:5000/postgres:15.18-bookworm
    environment: {POSTGRES_PASSWORD_FILE: /run/secrets/app}
    restart: unless-stopped
    healthcheck: {test: [CMD, pg_isready]}
  built:
    <<: *hardened
    image: fenceline-tool
    build: {context: ., dockerfile: Dockerfile}
    restart: unless-stopped
    healthcheck: {test: [CMD, "true"]}
secrets:
  app: {file: app.txt}
`

const soundDockerfile = "FROM golang:1.26.8-bookworm AS build\nRUN true\nFROM scratch\nCOPY --from=build /x /x\n"

// declarations are those of a small program.
func declarations(_ context.Context, command []string) (*main.Declared, error) {
	const url = "\n\nFlags:\n      --database-url=URL    PostgreSQL URL ($FENCELINE_DATABASE_URL)."
	switch strings.Join(command, " ") {
	case "serve":
		return main.ParseHelp("Usage: fenceline serve --database-url=URL --bucket=STRING [flags]" + url +
			"\n      --bucket=STRING    See --migrate ($FENCELINE_BUCKET).\n      --migrate    Migrate ($FENCELINE_MIGRATE).\n")
	case "migrate up":
		return main.ParseHelp("Usage: fenceline migrate up --database-url=URL" + url + "\n")
	}
	return nil, fmt.Errorf("%w: %s", main.ErrUnknownCommand, command)
}

// mistakesIn writes a file and its Dockerfile, and checks them.
func mistakesIn(t *testing.T, compose, dockerfile string) []string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "docker-compose.yml")
	for name, text := range map[string]string{path: compose, filepath.Join(dir, "Dockerfile"): dockerfile} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mistakes, err := main.Check(t.Context(), path, declarations)
	if err != nil {
		t.Fatal(err)
	}
	return mistakes
}

func TestASoundFileHasNoMistakes(t *testing.T) {
	t.Parallel()
	if mistakes := mistakesIn(t, sound, soundDockerfile); len(mistakes) > 0 {
		t.Errorf("mistakes in a sound file: %q", mistakes)
	}
}

func TestEachKindOfMistakeIsFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new string // in the sound file
		want     string
	}{
		{"a mistyped key", "restart: unless-stopped\n    healthcheck: {test: [CMD, pg", "restarts: unless-stopped\n    healthcheck: {test: [CMD, pg", "Compose refuses it"},
		{"a wait for what is not there", "      db: {condition", "      dbs: {condition", "Compose refuses it"},
		{"an unknown condition", "service_healthy", "service_well", "Compose refuses it"},
		{"a secret that is not declared", "secrets: [app]", "secrets: [apps]", "Compose refuses it"},
		{"a variable that the program does not read", "FENCELINE_DATABASE_URL: postgres://app", "FENCELINE_DATABASE_URI: postgres://app", "reads no variable FENCELINE_DATABASE_URI"},
		{"a variable that only another command reads", "{FENCELINE_DATABASE_URL: \"postgres://owner@db/x\"}", "{FENCELINE_DATABASE_URL: u, FENCELINE_BUCKET: b}", "migrate up reads no variable FENCELINE_BUCKET"},
		{"a variable of the program on something else", "{POSTGRES_PASSWORD_FILE:", "{FENCELINE_BUCKET: b, POSTGRES_PASSWORD_FILE:", "something that is not fenceline"},
		{"a flag that the program does not have", "--bucket=reports", "--bucket=reports, --buckets=x", "has no flag --buckets"},
		{"a required setting that is missing", "[serve, --bucket=reports]", "[serve]", "needs --bucket, or FENCELINE_BUCKET"},
		{"a command that the program does not have", "[migrate, up]", "[migrate, upwards]", "no such command"},
		{"a port on every address", "127.0.0.1:8080:8080", "8080:8080", "published on"},
		{"a port on an address of the network", "127.0.0.1:8080:8080", "192.0.2.1:8080:8080", "published on \"192.0.2.1\""},
		{"the host's network", "    ports: [\"127.0.0.1:8080:8080\"]", "    network_mode: host", "publishes every port"},
		{"an image without a tag", "postgres:15.18-bookworm", "postgres", "not pinned"},
		{"the latest image", "postgres:15.18-bookworm", "postgres:latest", "not pinned"},
		{"a tag that moves", "postgres:15.18-bookworm", "postgres:15", "not pinned"},
		{"no health check", "    healthcheck: {test: [CMD, /healthcheck]}\n", "", "serve: it has no health check"},
		{"a health check that is turned off", "{test: [CMD, /healthcheck]}", "{disable: true}", "serve: it has no health check"},
		{"no restart policy", "    restart: unless-stopped\n    healthcheck: {test: [CMD, /", "    healthcheck: {test: [CMD, /", "serve: it has no restart policy"},
		{"a wait for the health of what is not watched", "    healthcheck: {test: [CMD, pg_isready]}\n", "", "db is healthy, which has no health check"},
		{"one that runs once and is started again", "[migrate, up]", "[migrate, up]\n    restart: always", "would start it again"},
		{"a service that does not wait for the migration", "migrate: {condition: service_completed_successfully}", "db: {condition: service_healthy}", "does not wait until `fenceline migrate up`"},
		{"a service that waits for the migration's start alone", "service_completed_successfully", "service_started", "does not wait until `fenceline migrate up`"},
		{"a secret in a variable", "${S3_SECRET:?make one}", "hunter2", "environment.AWS_SECRET_ACCESS_KEY: a secret"},
		{"a default for a secret", "${S3_SECRET:?make one}", "${S3_SECRET:-hunter2}", "environment.AWS_SECRET_ACCESS_KEY: a secret"},
		{"a password in a URL", "postgres://app@db", "postgres://app:hunter2@db", "FENCELINE_DATABASE_URL: a secret"},
		{"a password in a URL's query", "passfile=/run/secrets/app", "password=hunter2", "FENCELINE_DATABASE_URL: a secret"},
		{"a secret among the arguments", "[CMD, pg_isready]", "[CMD, pg_isready, --password, hunter2]", "healthcheck.test: a secret"},
		{"a secret's content", "{file: app.txt}", "{content: hunter2}", "Compose refuses it"},
		{"an API key", "[CMD, /healthcheck]", "[CMD, /healthcheck, fl_ab12cd_0123456789abcdefghij]", "healthcheck.test: a secret"},
		{"a root file system that can be written to", "read_only: true", "read_only: false", "not read_only"},
		{"the user root", "user: \"1000:1000\"", "user: \"0:0\"", "not root"},
		{"capabilities", "cap_drop: [ALL]", "cap_drop: [CHOWN]", "keeps capabilities"},
		{"a way to more privileges", "no-new-privileges:true", "no-new-privileges:false", "may gain privileges"},
		{"privileges that are given", "cap_drop: [ALL]", "cap_drop: [ALL]\n  privileged: true", "is given privileges"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(sound, test.old) {
				t.Fatalf("the sound file has no %q", test.old)
			}
			broken := strings.ReplaceAll(sound, test.old, test.new)
			mistakes := mistakesIn(t, broken, soundDockerfile)
			if !slices.ContainsFunc(mistakes, func(m string) bool { return strings.Contains(m, test.want) }) {
				t.Errorf("none of %q says %q", mistakes, test.want)
			}
		})
	}
}

func TestABaseImageThatIsNotPinnedIsFound(t *testing.T) {
	t.Parallel()
	for _, image := range []string{"golang", "golang:1", "golang:latest", "golang:${GO}"} {
		dockerfile := strings.Replace(soundDockerfile, "golang:1.26.8-bookworm", image, 1)
		mistakes := mistakesIn(t, sound, dockerfile)
		if len(mistakes) != 1 || !strings.Contains(mistakes[0], fmt.Sprintf("base image %q", image)) {
			t.Errorf("FROM %s: mistakes %q", image, mistakes)
		}
	}
	digest := "golang@sha256:" + strings.Repeat("0a", 32)
	if unpinned := main.UnpinnedBases("FROM --platform=linux/amd64 " + digest + " AS build\nFROM build\n"); len(unpinned) > 0 {
		t.Errorf("taken for unpinned: %q", unpinned)
	}
}

func TestHelpTellsFlagsVariablesAndWhatIsRequired(t *testing.T) {
	t.Parallel()
	d, err := main.ParseHelp("Usage: fenceline serve --bucket=STRING [flags]\n\nRun it.\n\nFlags:\n" +
		"  -h, --help         Show help.\n      --bucket=STRING\n                     Not --pail\n                     ($FENCELINE_BUCKET,\n                     $BUCKET).\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		flag, variable string
		known          bool
	}{
		{"--bucket", "FENCELINE_BUCKET", true},
		{"--help", "BUCKET", true},
		{"--pail", "FENCELINE_PAIL", false},
	} {
		required, hasFlag, hasVariable := d.NeedsAndKnows(row.flag, row.variable)
		if !slices.Equal(required, []string{"--bucket"}) || hasFlag != row.known || hasVariable != row.known {
			t.Errorf("%s, $%s: known %v and %v, required %q", row.flag, row.variable, hasFlag, hasVariable, required)
		}
	}
	if _, err := main.ParseHelp("fenceline: unexpected argument\n"); err == nil {
		t.Error("an error message was taken for help")
	}
}
