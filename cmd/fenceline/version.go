package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the release, set by the linker: -X main.version=v1.2.3.
var version = "dev"

// versionCmd prints what this program is.
type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(out *console) error {
	_, err := fmt.Fprintf(out.Out, "fenceline %s (%s, %s/%s)\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// programVersion is the release, else what the build recorded of itself: the module's
// version, or the commit.
func programVersion() string {
	if version != "dev" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return version + "-" + setting.Value[:min(len(setting.Value), 12)]
		}
	}
	return version
}
