package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/client"
	"github.com/fenceline/fenceline/internal/collect"
	"github.com/fenceline/fenceline/internal/stack"
	"github.com/fenceline/fenceline/staging"
)

// collectCommand lets the collector loose on objects that it has made before.
type collectCommand struct {
	Objects    int           `default:"1000000" help:"How many objects are due."`
	Foreign    int           `default:"0" help:"How many keys the bucket has besides that are none of Fenceline's."`
	Unknown    int           `default:"0" help:"How many keys it has besides that look like Fenceline's, and that no row knows."`
	Publishers int           `default:"4" help:"How many go on publishing meanwhile, ten times a second each."`
	Kills      int           `default:"2" help:"How often the collector is killed on the way."`
	Quiet      time.Duration `default:"20s" help:"How long they publish before the collector begins."`
	Grace      time.Duration `default:"10s" help:"How long the bytes of a condemned object stay: at least 3s."`
	Memory     byteCount     `default:"100MiB" help:"How much memory the collector may have used at its peak."`
	Spread     float64       `default:"0.2" help:"By which share the last ten thousand objects may go slower than the first."`
	JSON       bool          `name:"json" help:"Print the figures as JSON to the standard output, and what is going on to the standard error."`
}

// Run returns nil only if exactly what was due is gone, and the collector kept within its memory and to its rate.
func (c *collectCommand) Run() (err error) {
	if c.Objects < 1 || c.Foreign < 0 || c.Unknown < 0 || c.Publishers < 0 || c.Kills < 0 || c.Grace < 3*time.Second || c.Spread <= 0 {
		return errors.New("at least one object is due, nothing is less than none, and the grace is at least 3s")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	binary, err := fencelineBinary()
	if err != nil {
		return err
	}
	folder, err := stack.Throwaway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	p, err := startThrowaway(ctx, folder, 0, false, c.settings()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.useStorage(); err != nil {
		return err
	}
	c.tell(fmt.Sprintf("%d objects are made in %s, which need about %v of disk …", c.Objects, folder.Path(), byteCount(c.Objects+c.Foreign+c.Unknown)*diskPerObject))
	field, err := collect.Prepare(ctx, c.config(p, binary))
	if err != nil {
		return err
	}
	defer field.Close()
	used, err := diskUsed(folder.Path())
	if err != nil {
		return err
	}
	c.tell(fmt.Sprintf("all is made, and takes %v of disk", byteCount(used)))
	r, err := field.Run(ctx)
	if err != nil {
		return errors.Join(err, p.failure())
	}
	if err := c.report(r, used); err != nil {
		return err
	}
	if len(r.Broken) > 0 {
		return fmt.Errorf("%d things were not as they must be", len(r.Broken))
	}
	return nil
}

// settings are those of the service and of the collector's program, so that what is condemned may soon be deleted, the brake
// holds nothing back, and no other pass begins. What was published is kept as long as by default.
func (c *collectCommand) settings() []string {
	short := (c.Grace - time.Second).String()
	return []string{
		"FENCELINE_GC_SCHEDULE=off", "FENCELINE_GC_BRAKE_SHARE=1", "FENCELINE_GC_FIRST_RUN=collect",
		"FENCELINE_PURGE_GRACE=" + c.Grace.String(), "FENCELINE_REQUEST_TIMEOUT=" + short,
		"FENCELINE_DOWNLOAD_URL_LIFE=" + (c.Grace / 2).Truncate(time.Second).String(), "FENCELINE_LOG_LEVEL=warn",
	}
}

func (c *collectCommand) config(p *platform, binary string) collect.Config {
	return collect.Config{
		OwnerURL: p.ownerURL(), Storage: staging.BucketConfig{Bucket: bucketName},
		Service: client.Config{URL: p.service.URL, Key: p.state.Keys["worker"], UserAgent: "fenceline-collect"},
		Program: binary, Env: environment(p.settings, p.serviceVariables()),
		Objects: c.Objects, Foreign: c.Foreign, Unknown: c.Unknown, Publishers: c.Publishers, Kills: c.Kills, Quiet: c.Quiet,
		Memory: int64(c.Memory), Spread: c.Spread, Tell: c.tell,
	}
}

// useStorage has this process find the storage as the service does: the AWS SDK looks for its credentials in the environment.
func (p *platform) useStorage() error {
	for _, variable := range p.storageVariables() {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// tell says what is going on.
func (c *collectCommand) tell(what string) {
	out := os.Stdout
	if c.JSON {
		out = os.Stderr
	}
	fmt.Fprintln(out, time.Now().Format(time.TimeOnly), what)
}

// report prints what came of it.
func (c *collectCommand) report(r collect.Result, used int64) error {
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(struct {
			collect.Result
			Disk int64 `json:"disk_bytes"`
		}{r, used})
	}
	printCollected(os.Stdout, r)
	return nil
}

// diskPerObject is about how much of the disk an object, its row and its ledger's rows need.
const diskPerObject byteCount = 10 << 10

// diskUsed is how much of the disk a folder takes.
func diskUsed(folder string) (used int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a server's temporary file
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			used += stat.Blocks * 512
		}
		return nil
	})
	return used, err
}
