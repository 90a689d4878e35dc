package main_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	main "github.com/fenceline/fenceline/cmd/fenceline"
)

// asProgram is set in the environment of a test binary that is to be the program itself.
const asProgram = "FENCELINE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main.Main()
		return
	}
	os.Exit(m.Run())
}

// result is what a run of the program left behind.
type result struct {
	Code        int
	Out, Remark string
}

// fenceline runs the program with these arguments and NAME=value settings alone.
func fenceline(t *testing.T, settings []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append([]string{asProgram + "=1", "PATH=" + os.Getenv("PATH")}, settings...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestAWrongCommandLineIsOneLineAndExitCode2(t *testing.T) {
	t.Parallel()
	service := []string{"FENCELINE_URL=http://127.0.0.1:1", "FENCELINE_KEY=fl_k1_secret"}
	for name, c := range map[string]struct {
		settings []string
		args     []string
		names    string // what the line must name
	}{
		"nothing":          {service, nil, "expected one of"},
		"unknown command":  {service, []string{"publsh"}, "publish"},
		"unknown flag":     {service, []string{"get", "july", "--frob"}, "--frob"},
		"missing argument": {service, []string{"publish", "july"}, "<file>"},
		"no unit":          {service, []string{"lease", "acquire", "july", "--ttl", "30"}, "--ttl"},
		"no number":        {service, []string{"get", "july", "--version", "one"}, "--version"},
		"no service":       {nil, []string{"get", "july"}, "FENCELINE_URL"},
		"no address":       {[]string{"FENCELINE_URL=127.0.0.1:8080", "FENCELINE_KEY=k"}, []string{"get", "july"}, "FENCELINE_URL"},
		"no key":           {service[:1], []string{"lease", "release", "july", "a7"}, "FENCELINE_KEY"},
		"no host":          {[]string{"FENCELINE_URL=http:///path", "FENCELINE_KEY=k"}, []string{"get", "july"}, "FENCELINE_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fenceline(t, c.settings, c.args...)
			if got.Code != 2 || got.Out != "" {
				t.Errorf("exit code %d, output %q", got.Code, got.Out)
			}
			if !strings.HasPrefix(got.Remark, "fenceline: ") || strings.Count(got.Remark, "\n") != 1 || !strings.Contains(got.Remark, c.names) {
				t.Errorf("%q is not one line that names %s", got.Remark, c.names)
			}
		})
	}
}

func TestHelpTellsTheExitCodes(t *testing.T) {
	t.Parallel()
	got := fenceline(t, nil, "--help")
	if got.Code != 0 || got.Remark != "" {
		t.Errorf("exit code %d, %q", got.Code, got.Remark)
	}
	for _, line := range []string{"  2  the command line", "  3  the fence is stale", "130  interrupted"} {
		if !strings.Contains(got.Out, line) {
			t.Errorf("%q is not in:\n%s", line, got.Out)
		}
	}
	if got := fenceline(t, nil, "publish", "--help"); got.Code != 0 || !strings.Contains(got.Out, "$FENCELINE_URL") {
		t.Errorf("publish --help: %+v", got)
	}
}

func TestVersionIsOneLine(t *testing.T) {
	t.Parallel()
	got := fenceline(t, nil, "version")
	if got.Code != 0 || !strings.HasPrefix(got.Out, "fenceline ") || strings.Count(got.Out, "\n") != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestAServiceThatIsAwayHasItsExitCode(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() // so that its port refuses connections
	settings := []string{"FENCELINE_URL=http://" + listener.Addr().String(), "FENCELINE_KEY=fl_k1_s3cr3t"}
	got := fenceline(t, settings, "get", "july")
	if got.Code != 7 || got.Out != "" || strings.Count(got.Remark, "\n") != 1 || strings.Contains(got.Remark, "s3cr3t") {
		t.Errorf("got %+v", got)
	}
}

func TestAFileThatCannotBePublishedLeavesTheServiceAlone(t *testing.T) {
	t.Parallel()
	settings := []string{"FENCELINE_URL=http://127.0.0.1:1", "FENCELINE_KEY=fl_k1_secret"}
	for _, path := range []string{t.TempDir(), "/nowhere/july.csv", "/dev/null"} {
		if got := fenceline(t, settings, "publish", "july", path); got.Code != 1 || !strings.Contains(got.Remark, path) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
