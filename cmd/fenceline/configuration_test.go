package main_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	main "github.com/fenceline/fenceline/cmd/fenceline"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

// configurationPage is the page that is made of the declarations.
const configurationPage = "../../docs/configuration.md"

func TestThePageOfSettingsSaysWhatTheDeclarationsSay(t *testing.T) {
	t.Parallel()
	want := writeConfiguration(t)
	if *update {
		if err := os.WriteFile(configurationPage, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the page is behind the declarations: run `go test ./cmd/fenceline -run Settings -update`\n%s", diff)
	}
}

func TestHelpNamesEverySettingWithItsVariableAndDefault(t *testing.T) {
	t.Parallel()
	for _, command := range commands(t) {
		args := strings.Fields(command.Path())
		got := fenceline(t, nil, append(args, "--help")...)
		if got.Code != 0 || got.Remark != "" {
			t.Errorf("%v --help: exit code %d, %q", args, got.Code, got.Remark)
		}
		text := strings.Join(strings.Fields(got.Out), " ")
		for _, f := range settings(command) {
			if !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%v --help does not name --%s", args, f.Name)
			}
			for _, variable := range f.Envs {
				if !strings.Contains(text, "$"+variable) {
					t.Errorf("%v --help does not name %s", args, variable)
				}
			}
			if f.HasDefault && !strings.Contains(text, f.Default) {
				t.Errorf("%v --help does not tell the default of --%s, %s", args, f.Name, f.Default)
			}
			if !strings.Contains(text, strings.TrimSuffix(f.Help, ".")) {
				t.Errorf("%v --help does not explain --%s", args, f.Name)
			}
		}
	}
}

func TestEverySettingOfTheServiceHasAVariableNamedAfterItsFlag(t *testing.T) {
	t.Parallel()
	for _, command := range commands(t) {
		if command.Name != "serve" {
			continue
		}
		for _, f := range settings(command) {
			want := "FENCELINE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			if len(f.Envs) == 0 || f.Envs[0] != want {
				t.Errorf("--%s has the variables %v, want %s", f.Name, f.Envs, want)
			}
		}
	}
}

// commands lists the commands that can be run.
func commands(t testing.TB) []*kong.Node {
	t.Helper()
	model, err := main.Model()
	if err != nil {
		t.Fatal(err)
	}
	leaves := model.Leaves(true)
	if len(leaves) < 10 {
		t.Fatalf("only %d commands were found", len(leaves))
	}
	return leaves
}

// settings lists the flags of a command.
func settings(command *kong.Node) []*kong.Flag {
	var found []*kong.Flag
	for _, group := range command.AllFlags(true) {
		for _, f := range group {
			if f.Name != "help" {
				found = append(found, f)
			}
		}
	}
	return found
}

// writeConfiguration makes the page.
func writeConfiguration(t testing.TB) []byte {
	t.Helper()
	var page bytes.Buffer
	page.WriteString(`# Configuration

<!-- Made of the declarations in cmd/fenceline: go test ./cmd/fenceline -run Settings -update -->

Every setting is a flag and an environment variable; the flag wins. Periods have a unit: ` + "`30s`, `5m`, `24h`" + `. A setting that
is missing, unreadable, or at odds with another is one line on standard error and exit code 2: nothing is started.

The credentials of the storage come from the AWS SDK's default chain, such as ` + "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`" + `.

The periods depend on each other, and ` + "`serve` and `gc run`" + ` check their order: tombstones > superseded > restore window;
unknown > restore window, unknown ≥ staged; staged > an upload URL's life; purge grace > a download URL's life and the longest request; ended leases > the longest lease.

## The service

`)
	inService := map[string]bool{}
	for _, command := range commands(t) {
		if command.Name == "serve" {
			page.WriteString("`fenceline serve`\n\n")
			for _, f := range settings(command) {
				inService[f.Name] = true
			}
			writeTable(&page, settings(command))
		}
	}
	page.WriteString("\n## The other commands\n\nWhat they share with the service is not listed again.\n")
	for _, command := range commands(t) {
		if command.Name == "serve" {
			continue
		}
		own := slices.DeleteFunc(settings(command), func(f *kong.Flag) bool { return len(f.Envs) > 0 && inService[f.Name] })
		fmt.Fprintf(&page, "\n### `fenceline %s`\n\n%s\n", command.Path(), command.Help)
		if shared := len(settings(command)) - len(own); shared > 0 {
			var names []string
			for _, f := range settings(command) {
				if !slices.Contains(own, f) {
					names = append(names, "`--"+f.Name+"`")
				}
			}
			fmt.Fprintf(&page, "\nShared: %s.\n", strings.Join(names, ", "))
		}
		if len(own) > 0 {
			page.WriteString("\n")
			writeTable(&page, own)
		}
	}
	return page.Bytes()
}

// writeTable writes a row a setting.
func writeTable(page *bytes.Buffer, flags []*kong.Flag) {
	page.WriteString("| flag | variable | default | |\n|---|---|---|---|\n")
	for _, f := range flags {
		var variables []string
		for _, v := range f.Envs {
			variables = append(variables, "`"+v+"`")
		}
		standard := ""
		switch {
		case f.Required:
			standard = "required"
		case f.HasDefault:
			standard = "`" + f.Default + "`"
		case f.IsBool():
			standard = "`false`"
		}
		help := strings.ReplaceAll(f.Help, "|", `\|`)
		fmt.Fprintf(page, "| `--%s` | %s | %s | %s |\n", f.Name, strings.Join(variables, ", else "), standard, help)
	}
}
