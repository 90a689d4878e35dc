package main_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/internal/testservice"
)

// through are the settings of a worker whose way to the service is a proxy.
func through(s *testservice.Service, p *testproxy.Proxy) []string {
	return []string{"FENCELINE_URL=http://" + p.Addr, "FENCELINE_KEY=" + s.Worker}
}

// hangs is a command that leaves a process in the background and waits for ever.
const hangs = "touch running; sleep 300 & sleep 300"

// pausing is a command that waits for a file, and then writes its output.
const pausing = "touch running; until test -e go; do sleep 0.01; done; echo revenue,100 > july.csv"

// mustBeFree fails the test unless nobody holds the report's lease.
func mustBeFree(t *testing.T, s *testservice.Service, report string) {
	t.Helper()
	s.Do(t, "PUT", "/v1/reports/"+report+"/leases/"+"next", map[string]any{"holder": "next", "ttl_ms": 1000}).Want(t, 201)
}

func TestWhatACommandHasWrittenIsPublishedUnderItsLease(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	script := `cat; echo "$FENCELINE_REPORT $FENCELINE_LEASE_ID $FENCELINE_FENCE $FENCELINE_VERSION" > july.csv; echo spoken`
	for version, fence := range []string{"1.1", "1.2"} {
		r := start(t, append(workerSettings(s), "FENCELINE_FENCE=9.9", "FENCELINE_LEASE_ID=outer"),
			"exec", "--report=july", "--output=july.csv", "-m", "job=nightly", "--holder=cron", "--object-id=o1", "--content-type=text/x-july", "--", "sh", "-c", script)
		r.ends(t, 0)
		if r.out() != "spoken\n" {
			t.Errorf("the output is %q", r.out())
		}
		published := s.Do(t, "GET", "/v1/reports/july/publications/"+string(rune('1'+version)), nil).Want(t, 200)
		content := strings.Fields(string(s.Do(t, "GET", "/v1/reports/july/content", nil).Want(t, 200).Body))
		if published.String(t, "fence") != fence || len(content) != 4 || content[0] != "july" || content[1] == "outer" ||
			content[2] != fence || content[3] != string(rune('0'+version)) {
			t.Errorf("version %d is %v: %s", version+1, content, published.Body)
		}
		for _, member := range []string{`"job":"nightly"`, `"object_id":"o1"`, `"content_type":"text/x-july"`} {
			if !strings.Contains(string(published.Body), member) {
				t.Errorf("%s is not in %s", member, published.Body)
			}
		}
	}
	mustBeFree(t, s, "july")
}

func TestWithoutAnOutputItIsALockAroundTheCommand(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	for _, options := range [][]string{{}, {"--output=july.csv", "--lock-only"}} {
		r := start(t, workerSettings(s), append(append([]string{"exec", "--report=july"}, options...), "--", "sh", "-c", pausing)...)
		r.awaitFile(t, "running")
		start(t, workerSettings(s), "exec", "--report=july", "--", "true").ends(t, 4, "busy")
		start(t, workerSettings(s), "exec", "--report=july", "--wait=200ms", "--", "true").ends(t, 4, "busy")
		waits := start(t, workerSettings(s), "exec", "--report=july", "--wait=1m", "--", "true")
		r.touch(t, "go")
		r.ends(t, 0)
		waits.ends(t, 0)
	}
	s.Do(t, "GET", "/v1/reports/july", nil).Refused(t, 404, "not_published")
}

func TestTheCodeOfTheCommandIsTheCodeOfExec(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	notExecutable := write(t, "july.sh", "exit 0\n")
	for _, c := range []struct {
		code    int
		says    []string
		command []string
	}{
		{7, nil, []string{"sh", "-c", "echo half > july.csv; exit 7"}},
		{255, nil, []string{"sh", "-c", "exit 255"}},
		{128 + 9, nil, []string{"sh", "-c", "kill -KILL $$"}},
		{128 + 15, nil, []string{"sh", "-c", "kill -TERM $$"}},
		{124, []string{"july.csv", "no such file"}, []string{"true"}},
		{126, []string{notExecutable}, []string{notExecutable}},
		{127, []string{"no-such-program"}, []string{"no-such-program"}},
		{127, []string{"/no/such/program"}, []string{"/no/such/program"}},
		{2, []string{"command"}, nil},
	} {
		start(t, workerSettings(s), append([]string{"exec", "--report=july", "--output=july.csv", "--"}, c.command...)...).ends(t, c.code, c.says...)
	}
	s.Do(t, "GET", "/v1/reports/july", nil).Refused(t, 404, "not_published")
	mustBeFree(t, s, "july")
}

func TestEachPublishOfExecThatIsRefusedHasItsCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   int
		says   string
		happen func(*testing.T, *testservice.Service, *testproxy.Proxy, string)
	}{
		"stale": {120, "1.1", func(t *testing.T, s *testservice.Service, _ *testproxy.Proxy, _ string) {
			s.Do(t, "POST", "/v1/reports/july/lease/revoke", map[string]any{"reason": "it hangs"}).Want(t, 200)
		}},
		"another version": {122, "version_conflict", func(t *testing.T, s *testservice.Service, _ *testproxy.Proxy, fence string) {
			s.Do(t, "POST", "/v1/reports/july/publications", map[string]any{"fence": fence, "withdraw": true}, "Idempotency-Key", "k").Want(t, 201)
		}},
		"grant used": {122, "grant_already_used", func(t *testing.T, s *testservice.Service, _ *testproxy.Proxy, fence string) {
			s.Do(t, "PATCH", "/v1/reports/july/settings", map[string]any{"publishes_per_grant": "one"}).Want(t, 200)
			s.Do(t, "POST", "/v1/reports/july/publications", map[string]any{"fence": fence, "withdraw": true}, "Idempotency-Key", "k").Want(t, 201)
		}},
		"another object": {122, "object_", func(t *testing.T, s *testservice.Service, _ *testproxy.Proxy, fence string) {
			s.Do(t, "PUT", "/v1/reports/july/objects/"+fence+"/july.csv", map[string]any{"content_type": "text/other"}).Want(t, 201)
		}},
		"away": {123, "july", func(_ *testing.T, _ *testservice.Service, p *testproxy.Proxy, _ string) { p.Refuse() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t)
			p := testproxy.New(t, "tcp", strings.TrimPrefix(s.URL, "http://"))
			r := start(t, through(s, p), "exec", "--report=july", "--output=july.csv", "--", "sh", "-c", `echo "$FENCELINE_FENCE" > .fence; mv .fence fence; `+pausing)
			fence := strings.TrimSpace(r.awaitFile(t, "fence"))
			c.happen(t, s, p, fence)
			r.touch(t, "go")
			r.ends(t, c.code, c.says)
		})
	}
}

func TestAPublishOfExecWhoseOutcomeIsUnknownNamesItsKey(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	p := testproxy.New(t, "tcp", strings.TrimPrefix(s.URL, "http://"))
	r := start(t, through(s, p), "exec", "--report=july", "--output=july.csv", "--", "sh", "-c", pausing)
	r.awaitFile(t, "running")
	p.Hold("/publications")
	r.touch(t, "go")
	p.AwaitHeld(t)
	p.Refuse()
	r.ends(t, 123, "outcome is unknown", "idempotency key")
}

func TestSignalsArePassedOnToTheCommand(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	script := `exec 2>/dev/null
for s in USR1 USR2 WINCH HUP INT QUIT TERM; do trap "touch got-$s" $s; done
touch running; until test -e go; do sleep 0.01; done; exit 0`
	r := start(t, workerSettings(s), "exec", "--report=july", "--", "sh", "-c", script)
	r.awaitFile(t, "running")
	for name, number := range map[string]syscall.Signal{
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH, "HUP": syscall.SIGHUP,
		"INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
	} {
		r.signal(t, number)
		r.awaitFile(t, "got-"+name)
	}
	r.touch(t, "go")
	r.ends(t, 0)

	r = start(t, workerSettings(s), "exec", "--report=july", "--output=july.csv", "--", "sh", "-c", hangs)
	r.awaitFile(t, "running")
	r.signal(t, syscall.SIGTERM)
	r.ends(t, 128+15)
	mustBeFree(t, s, "july")
}

func TestACommandIsStoppedAndContinuedWithItsWrapper(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	// What stops a shell's group leaves it alone where no shell looks after the job: so the command stops itself.
	r := start(t, workerSettings(s), "exec", "--report=july", "--", "sh", "-c", "touch running; kill -TTIN $$; touch continued")
	awaitState(t, r.Process.Pid, "T")
	r.signal(t, syscall.SIGCONT)
	r.awaitFile(t, "continued")
	r.ends(t, 0)
}

func TestASignalEndsTheWaitForALeaseAndLeavesNone(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	for n, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		p := testproxy.New(t, "tcp", strings.TrimPrefix(s.URL, "http://"))
		p.Hold(`"wait_ms"`)
		r := start(t, through(s, p), "exec", "--report=july", "--wait=1m", "--", "echo", "running")
		p.AwaitHeld(t)
		r.signal(t, sent)
		r.ends(t, 128+int(sent), "waiting for the lease")
		p.LetGo() // the request may arrive even now
		if r.out() != "" {
			t.Error("the command was run")
		}
		// What comes late would find that its id has ended.
		if ended := s.Do(t, "GET", "/v1/reports/july/leases", nil).Want(t, 200).JSON(t)["items"].([]any); len(ended) != n+1 {
			t.Errorf("%d leases are known, want %d: %v", len(ended), n+1, ended)
		}
	}
	s.Do(t, "PUT", "/v1/reports/july/leases/a7", map[string]any{"holder": "A", "ttl_ms": 60000}).Want(t, 201)
	waits := start(t, workerSettings(s), "exec", "--report=july", "--wait=1m", "--", "true")
	awaitSockets(t, waits.Process.Pid)
	waits.signal(t, syscall.SIGTERM)
	waits.ends(t, 128+15, "waiting for the lease")
	s.Do(t, "DELETE", "/v1/reports/july/leases/a7", nil).Want(t, 200)
	mustBeFree(t, s, "july")
}
