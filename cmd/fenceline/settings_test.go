package main_test

import (
	"slices"
	"strings"
	"testing"
)

// enough is what the service needs at least; no server is behind it.
func enough() []string {
	return []string{"FENCELINE_DATABASE_URL=postgres://fenceline_service:s3cr3t@127.0.0.1:1/fenceline", "FENCELINE_BUCKET=reports"}
}

// refusesSetting fails the test unless the run ended with one line that names the setting, and exit code 2.
func refusesSetting(t *testing.T, got result, names ...string) {
	t.Helper()
	if got.Code != 2 || got.Out != "" {
		t.Errorf("exit code %d, output %q, remark %q", got.Code, got.Out, got.Remark)
	}
	if !strings.HasPrefix(got.Remark, "fenceline: ") || strings.Count(got.Remark, "\n") != 1 {
		t.Errorf("%q is not one line", got.Remark)
	}
	for _, name := range names {
		if !strings.Contains(got.Remark, name) {
			t.Errorf("%q does not name %s", got.Remark, name)
		}
	}
	if strings.Contains(got.Remark, "s3cr3t") {
		t.Errorf("%q shows a secret", got.Remark)
	}
}

func TestASillyPeriodStopsTheStart(t *testing.T) {
	t.Parallel()
	for _, command := range commands(t) {
		if command.Name != "serve" && command.Path() != "gc run" {
			continue
		}
		periods := 0
		for _, f := range settings(command) {
			if f.Target.Type().String() != "time.Duration" {
				continue
			}
			periods++
			values := []string{"0", "-5m", "30", "876000h"}
			if periods == 1 { // what the library does, it does with all of them
				values = append(values, "", "soon", "99999999h")
			}
			if f.Name == "gc-time-limit" { // 0: none
				values = slices.DeleteFunc(values, func(value string) bool { return value == "0" })
			}
			for _, value := range values {
				t.Run(command.Path()+" "+f.Name+"="+value, func(t *testing.T) {
					t.Parallel()
					refusesSetting(t, fenceline(t, enough(), append(strings.Fields(command.Path()), "--"+f.Name+"="+value)...), f.Name)
				})
			}
		}
		if periods < 6 {
			t.Errorf("%s has only %d periods", command.Path(), periods)
		}
	}
}

func TestAWrongSettingOfTheServiceStopsTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		names []string // what the line must name
	}{
		"tombstones before superseded":   {[]string{"--retention-tombstones=300h"}, []string{"--retention-tombstones=300h", "--retention-superseded=336h"}},
		"superseded before the window":   {[]string{"--retention-superseded=168h"}, []string{"--retention-superseded=168h", "--restore-window=168h"}},
		"unknown before the window":      {[]string{"--retention-unknown=168h"}, []string{"--retention-unknown=168h", "--restore-window=168h"}},
		"unknown before staged":          {[]string{"--retention-unknown=200h", "--retention-staged=201h"}, []string{"--retention-unknown=200h", "--retention-staged=201h"}},
		"short retention of the unknown": {[]string{"--retention-unknown=59m", "--restore-window=10m", "--retention-staged=30m", "--upload-url-life=5m"}, []string{"--retention-unknown=59m", "--allow-short-retention"}},
		"scans in words":                 {[]string{"--gc-scan-every=daily"}, []string{"--gc-scan-every"}},
		"scans before the last":          {[]string{"--gc-scan-every=-1h"}, []string{"--gc-scan-every"}},
		"scans once in a century":        {[]string{"--gc-scan-every=876000h"}, []string{"--gc-scan-every"}},
		"staged before the upload's end": {[]string{"--retention-staged=2h", "--upload-url-life=2h"}, []string{"--retention-staged=2h", "--upload-url-life=2h"}},
		"purged before the download":     {[]string{"--purge-grace=4m"}, []string{"--purge-grace=4m", "--download-url-life=5m"}},
		"purged during a request":        {[]string{"--purge-grace=6m", "--request-timeout=6m"}, []string{"--purge-grace=6m", "--request-timeout=6m"}},
		"leases forgotten while they live": {
			[]string{"--retention-leases=24h"}, []string{"--retention-leases=24h", "--lease-ttl-max=24h"},
		},
		"short retention": {[]string{"--retention-staged=10m", "--upload-url-life=5m"}, []string{"--retention-staged=10m", "--allow-short-retention"}},
		"short retention of what was visible": {
			[]string{"--retention-superseded=59m", "--restore-window=10m"}, []string{"--retention-superseded=59m", "--allow-short-retention"},
		},
		"half a second of URL":     {[]string{"--upload-url-life=1500ms"}, []string{"--upload-url-life=1.5s", "whole seconds"}},
		"a URL for a month":        {[]string{"--download-url-life=720h", "--purge-grace=1000h"}, []string{"--download-url-life", "seven days"}},
		"a lease of milliseconds":  {[]string{"--lease-ttl-max=500ms"}, []string{"--lease-ttl-max"}},
		"brake that stops all":     {[]string{"--gc-brake-share=0"}, []string{"--gc-brake-share=0"}},
		"brake beyond all":         {[]string{"--gc-brake-share=2"}, []string{"--gc-brake-share=2"}},
		"brake below nothing":      {[]string{"--gc-brake-share=-0.1"}, []string{"--gc-brake-share=-0.1"}},
		"brake that is no number":  {[]string{"--gc-brake-share=NaN"}, []string{"--gc-brake-share=NaN"}},
		"brake in words":           {[]string{"--gc-brake-share=a fifth"}, []string{"--gc-brake-share"}},
		"time limit of nothing":    {[]string{"--gc-time-limit=-1s"}, []string{"--gc-time-limit=-1s"}},
		"first run that is none":   {[]string{"--gc-first-run=maybe"}, []string{"--gc-first-run"}},
		"brake without a minimum":  {[]string{"--gc-brake-min=0"}, []string{"--gc-brake-min=0"}},
		"pace below nothing":       {[]string{"--gc-pace=-1"}, []string{"--gc-pace=-1"}},
		"pace in words":            {[]string{"--gc-pace=slowly"}, []string{"--gc-pace"}},
		"a way to delete":          {[]string{"--s3-delete=gently"}, []string{"--s3-delete"}},
		"schedule of four fields":  {[]string{"--gc-schedule=* * * *"}, []string{"--gc-schedule"}},
		"schedule of minute 61":    {[]string{"--gc-schedule=61 * * * *"}, []string{"--gc-schedule"}},
		"schedule in words":        {[]string{"--gc-schedule=nightly"}, []string{"--gc-schedule", "nightly"}},
		"schedule without a unit":  {[]string{"--gc-schedule=@every 5"}, []string{"--gc-schedule"}},
		"log level":                {[]string{"--log-level=loud"}, []string{"--log-level"}},
		"log format":               {[]string{"--log-format=xml"}, []string{"--log-format"}},
		"no connections":           {[]string{"--database-pool=0"}, []string{"--database-pool=0"}},
		"fewer than none":          {[]string{"--database-pool=-1"}, []string{"--database-pool=-1"}},
		"a million connections":    {[]string{"--database-pool=1000000"}, []string{"--database-pool=1000000"}},
		"database that is no URL":  {[]string{"--database-url=postgres://u:s3cr3t@[::1/x"}, []string{"database URL"}},
		"database port in words":   {[]string{"--database-url=postgres://u:s3cr3t@localhost:many/x"}, []string{"database URL"}},
		"migration's is no URL":    {[]string{"--migrate", "--migrate-database-url=postgres://u:s3cr3t@localhost:many/x"}, []string{"--migrate-database-url"}},
		"storage that is no URL":   {[]string{"--s3-endpoint=://storage"}, []string{"endpoint"}},
		"storage without scheme":   {[]string{"--s3-endpoint=localhost:9000"}, []string{"endpoint"}},
		"public that is no URL":    {[]string{"--s3-public-endpoint=storage.example"}, []string{"endpoint"}},
		"empty bucket":             {[]string{"--bucket="}, []string{"bucket"}},
		"address without a port":   {[]string{"--listen=localhost"}, []string{"--listen"}},
		"address with a wild port": {[]string{"--listen=localhost:99999"}, []string{"--listen"}},
		"unknown flag":             {[]string{"--retention=5s"}, []string{"--retention"}},
		"a word too many":          {[]string{"now"}, []string{"now"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusesSetting(t, fenceline(t, enough(), append([]string{"serve"}, c.args...)...), c.names...)
		})
	}
}

func TestASettingInAVariableIsReadAsStrictlyAsAFlag(t *testing.T) {
	t.Parallel()
	for setting, name := range map[string]string{
		"FENCELINE_RETENTION_STAGED=0":            "--retention-staged",
		"FENCELINE_RETENTION_SUPERSEDED=14":       "FENCELINE_RETENTION_SUPERSEDED",
		"FENCELINE_MIGRATE=maybe":                 "FENCELINE_MIGRATE",
		"FENCELINE_ALLOW_SHORT_RETENTION=perhaps": "FENCELINE_ALLOW_SHORT_RETENTION",
		"FENCELINE_DATABASE_POOL=ten":             "FENCELINE_DATABASE_POOL",
		"FENCELINE_GC_BRAKE_MIN=1.5":              "FENCELINE_GC_BRAKE_MIN",
		"FENCELINE_GC_BRAKE_SHARE=0":              "--gc-brake-share",
		"FENCELINE_GC_SCHEDULE=weekly on monday":  "--gc-schedule",
		"FENCELINE_LOG_LEVEL=loud":                "FENCELINE_LOG_LEVEL",
		"FENCELINE_LOG_FORMAT=yaml":               "--log-format",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			refusesSetting(t, fenceline(t, append(enough(), setting), "serve"), name)
		})
	}
}

func TestASettingThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		without string
		args    []string
		name    string
	}{
		{"FENCELINE_BUCKET", []string{"serve"}, "--bucket"},
		{"FENCELINE_DATABASE_URL", []string{"serve"}, "--database-url"},
		{"FENCELINE_BUCKET", []string{"gc", "run"}, "--bucket"},
		{"FENCELINE_DATABASE_URL", []string{"migrate", "up"}, "--database-url"},
		{"FENCELINE_DATABASE_URL", []string{"migrate", "status"}, "--database-url"},
		{"FENCELINE_DATABASE_URL", []string{"key", "create", "--role=worker", "--name=x"}, "--database-url"},
		{"", []string{"key", "create", "--name=x"}, "--role"},
		{"", []string{"key", "create", "--role=worker"}, "--name"},
		{"", []string{"key", "create", "--role=king", "--name=x"}, "--role"},
		{"", []string{"key", "create", "--role=worker", "--name=x", "--pattern=a*b"}, "a*b"},
		{"", []string{"migrate", "sideways"}, "sideways"},
		{"", []string{"migrate", "up", "--database-url=postgres://u:s3cr3t@[::1/x"}, "database URL"},
		{"", []string{"migrate", "down", "--database-url=postgres://u:s3cr3t@[::1/x"}, "database URL"},
		{"", []string{"migrate", "up", "--destroy"}, "--destroy"},
	} {
		t.Run(strings.Join(c.args, " ")+" without "+c.without, func(t *testing.T) {
			t.Parallel()
			given := slices.DeleteFunc(enough(), func(s string) bool { return c.without != "" && strings.HasPrefix(s, c.without+"=") })
			refusesSetting(t, fenceline(t, given, c.args...), c.name)
		})
	}
}

func TestAFlagBeatsItsVariable(t *testing.T) {
	t.Parallel()
	got := fenceline(t, append(enough(), "FENCELINE_RETENTION_LEASES=1h"), "serve", "--retention-leases=2h")
	refusesSetting(t, got, "--retention-leases=2h")
}
