package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/fenceline/fenceline/internal/check"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// checkCommand checks the database and the bucket that the environment names, as `exec` sets it. It changes
// nothing, and may run beside a working service.
type checkCommand struct {
	DatabaseURL string        `env:"FENCELINE_DATABASE_URL" required:"" help:"The database, as its owner or the service's role."`
	Bucket      string        `env:"FENCELINE_BUCKET" required:"" help:"The bucket. Credentials, region and AWS_ENDPOINT_URL_S3 come from the environment too."`
	S3Endpoint  string        `env:"FENCELINE_S3_ENDPOINT" name:"s3-endpoint" help:"The S3 server, instead of AWS_ENDPOINT_URL_S3."`
	S3Prefix    string        `env:"FENCELINE_S3_PREFIX" name:"s3-prefix" help:"What the service puts before its keys."`
	Slack       time.Duration `default:"15m" help:"How late the collector may be."`
}

// Run prints every violation, and returns an [exitError] with code 1 if there are any.
func (c *checkCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	pool, err := database.Open(ctx, database.Config{URL: c.DatabaseURL, Pool: 2, Name: "fenceline-check"})
	if err != nil {
		return err
	}
	defer pool.Close()
	bucket, err := staging.OpenBucket(ctx, staging.BucketConfig{Bucket: c.Bucket, Prefix: c.S3Prefix, Endpoint: c.S3Endpoint})
	if err != nil {
		return err
	}
	report, err := check.Check(ctx, pool, bucket, check.Config{Prefix: c.S3Prefix, Slack: c.Slack})
	if err != nil {
		return err
	}
	for _, v := range report.Violations {
		fmt.Println(v)
	}
	s := report.Seen
	fmt.Printf("%d violations in %d reports, %d versions, %d leases, %d objects, %d keys, %d digests\n",
		len(report.Violations), s.Reports, s.Versions, s.Leases, s.Objects, s.Keys, s.Digests)
	if len(report.Violations) > 0 {
		return exitError{1}
	}
	return nil
}
