package main_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/fenceline/fenceline/internal/testproxy"
	"github.com/fenceline/fenceline/internal/testservice"
)

// scattered is a command whose processes have left its group, its session and their parents, are stopped, or do not hear
// of SIGTERM; each says that it runs.
const scattered = `setsid sh -c 'trap "" TERM; touch 1; while :; do sleep 300; done' &
(setsid sh -c 'touch 2; sleep 300 & sleep 300' &)
sh -c 'touch 3; kill -STOP $$; sleep 300' &
sh -c '(sh -c "(touch 4; sleep 300) &") &'
until test -e 1 -a -e 2 -a -e 3 -a -e 4; do sleep 0.01; done; touch running`

// leaseOf reads the newest lease of a report.
func leaseOf(t *testing.T, s *testservice.Service) map[string]any {
	t.Helper()
	items := s.Do(t, "GET", "/v1/reports/july/leases?limit=1", nil).Want(t, 200).JSON(t)["items"].([]any)
	return items[0].(map[string]any)
}

func TestAllThatCameOfACommandIsDeadBeforeItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the group":  hangs,
		"out of it":     scattered + "; sleep 300",
		"without ears":  "trap '' TERM INT HUP; touch running; while :; do sleep 300; done",
		"ends and says": "trap 'sleep 0.3; echo late > july.csv; exit 0' TERM; touch running; while :; do sleep 0.01; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t)
			p := testproxy.New(t, "tcp", strings.TrimPrefix(s.URL, "http://"))
			r := start(t, through(s, p), "exec", "--report=july", "--output=july.csv", "--ttl=5s", "--", "sh", "-c", script)
			r.awaitFile(t, "running")
			p.BlackHole()
			await(t, "all are dead", func() bool { return len(r.command(t)) == 0 })
			if lease := leaseOf(t, s); lease["state"] != "live" {
				t.Errorf("they were dead only after the lease: %v", lease)
			}
			r.ends(t, 121, "lease lost")
			if heard := fileIn(r.Folder, "july.csv"); name == "ends and says" && heard != "late\n" {
				t.Error("it was not asked to end before it was killed")
			}
			s.Do(t, "GET", "/v1/reports/july", nil).Refused(t, 404, "not_published")
		})
	}
}

func TestACommandIsKilledWhenItsLeaseIsTakenAway(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	r := start(t, workerSettings(s), "exec", "--report=july", "--ttl=3s", "--", "sh", "-c", "trap '' TERM; "+scattered+"; sleep 300")
	r.awaitFile(t, "running")
	s.Do(t, "POST", "/v1/reports/july/lease/revoke", map[string]any{"reason": "it hangs"}).Want(t, 200)
	r.ends(t, 121, "revoked")
}

func TestNoProcessIsLeftWhenACommandHasEnded(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	for script, code := range map[string]int{
		scattered + "; exit 7":                     7,
		scattered + "; kill -KILL $$":              128 + 9,
		scattered + "; echo revenue,100 >july.csv": 0,
	} {
		start(t, workerSettings(s), "exec", "--report=july", "--output=july.csv", "--ttl=5s", "--", "sh", "-c", script).ends(t, code)
	}
	if got := s.Do(t, "GET", "/v1/reports/july", nil).Want(t, 200).Int(t, "version"); got != 1 {
		t.Errorf("the version is %d", got)
	}
	mustBeFree(t, s, "july")
}

func TestWhatWasSuspendedPastItsLeasePublishesNothing(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"still running": "trap '' TERM; echo early > july.csv; " + hangs,
		"ended":         pausing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testservice.Start(t)
			r := start(t, workerSettings(s), "exec", "--report=july", "--output=july.csv", "--ttl=3s", "--", "sh", "-c", script)
			r.awaitFile(t, "running")
			r.signal(t, syscall.SIGSTOP)
			awaitState(t, r.Process.Pid, "T")
			r.touch(t, "go")
			await(t, "the lease has expired", func() bool { return leaseOf(t, s)["reason"] == "expired" })
			if name == "still running" && len(r.command(t)) == 0 {
				t.Error("the command has not survived so long")
			}
			r.signal(t, syscall.SIGCONT)
			r.ends(t, 121, "lease lost")
			s.Do(t, "GET", "/v1/reports/july", nil).Refused(t, 404, "not_published")
		})
	}
}

func TestTheCommandDiesWithItsWrapper(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	r := start(t, workerSettings(s), "exec", "--report=july", "--", "sh", "-c", "touch running; while :; do sleep 0.01; done")
	r.awaitFile(t, "running")
	r.signal(t, syscall.SIGKILL)
	r.ends(t, -1) // killed by a signal, as Go tells it
}

func TestAnInnerExecHasAFenceOfItsOwn(t *testing.T) {
	t.Parallel()
	s := testservice.Start(t)
	script := `fenceline exec --report july -- touch ran; echo $? > same
fenceline exec --report august --output august.csv -- sh -c 'echo "$FENCELINE_REPORT $FENCELINE_LEASE_ID $FENCELINE_FENCE $FENCELINE_VERSION" > august.csv'
echo "$? $FENCELINE_LEASE_ID" > other`
	s.Do(t, "PUT", "/v1/reports/july/leases/before", map[string]any{"holder": "A", "ttl_ms": 60000}).Want(t, 201)
	s.Do(t, "DELETE", "/v1/reports/july/leases/before", nil).Want(t, 200)
	start(t, workerSettings(s), "exec", "--report=july", "--", "sh", "-c", script).ends(t, 0, "busy")
	r := start(t, workerSettings(s), "exec", "--report=july", "--", "sh", "-c", script)
	same, other := r.awaitFile(t, "same"), ""
	r.ends(t, 0, "busy")
	other = fileIn(r.Folder, "other")
	inner := strings.Fields(string(s.Do(t, "GET", "/v1/reports/august/content", nil).Want(t, 200).Body))
	if same != "4\n" || fileIn(r.Folder, "ran") != "" || len(inner) != 4 || inner[0] != "august" || inner[2] != "1.2" || inner[3] != "1" ||
		!strings.HasPrefix(other, "0 ") || strings.Contains(other, inner[1]) {
		t.Errorf("the inner ones: %q, %q, %v", same, other, inner)
	}
}
