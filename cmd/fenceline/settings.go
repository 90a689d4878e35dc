package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/database"
	"github.com/fenceline/fenceline/staging"
)

// The settings of the service, each declared once: its flag, its variable, its default and its help. Commands
// embed the groups that they need.

// databaseSettings say where the catalog is.
type databaseSettings struct {
	DatabaseURL string `required:"" env:"FENCELINE_DATABASE_URL" placeholder:"URL" help:"PostgreSQL URL. For the service a member of the role fenceline_service, for migrations and keys the owner of the database."`
}

// poolSettings say how much of the database the service may take.
type poolSettings struct {
	DatabasePool int32 `default:"10" env:"FENCELINE_DATABASE_POOL" help:"Greatest number of connections to the database."`
}

// storageSettings say where the bytes are. Credentials come from the AWS SDK's default chain.
type storageSettings struct {
	Bucket           string `required:"" env:"FENCELINE_BUCKET" help:"Bucket that holds the objects."`
	S3Prefix         string `name:"s3-prefix" env:"FENCELINE_S3_PREFIX" placeholder:"PREFIX" help:"Beginning of every key, for a bucket that is shared; such as team-a/."`
	S3Endpoint       string `name:"s3-endpoint" env:"FENCELINE_S3_ENDPOINT,AWS_ENDPOINT_URL_S3" placeholder:"URL" help:"Base URL of an S3-compatible server, addressed by path. None: AWS itself."`
	S3PublicEndpoint string `name:"s3-public-endpoint" env:"FENCELINE_S3_PUBLIC_ENDPOINT" placeholder:"URL" help:"Base URL at which workers and readers see the storage; presigned URLs are signed for it. None: the endpoint."`
	S3Delete         string `name:"s3-delete" default:"auto" enum:"auto,batch,md5,single" env:"FENCELINE_S3_DELETE" help:"How objects are deleted: ${enum}. batch is DeleteObjects with a CRC32, md5 the same with Content-MD5 and no newer checksum, single a request an object; auto is batch, and single once the storage refuses the form of that. fenceline doctor finds out what the storage takes."`
	S3Region         string `name:"s3-region" env:"FENCELINE_S3_REGION,AWS_REGION" placeholder:"REGION" help:"Region that requests are signed for. None: us-east-1."`
}

// retentionSettings say how long things are kept.
type retentionSettings struct {
	UploadURLLife       time.Duration `name:"upload-url-life" default:"1h" env:"FENCELINE_UPLOAD_URL_LIFE" help:"How long an upload URL is valid."`
	DownloadURLLife     time.Duration `name:"download-url-life" default:"5m" env:"FENCELINE_DOWNLOAD_URL_LIFE" help:"How long a download URL is valid."`
	RetentionStaged     time.Duration `default:"24h" env:"FENCELINE_RETENTION_STAGED" help:"How long an object is kept that is not published. Longer than an upload URL's life."`
	RetentionSuperseded time.Duration `default:"336h" env:"FENCELINE_RETENTION_SUPERSEDED" help:"How long a version's object is kept after another became visible, unless the report says otherwise. Longer than the restore window. One default for all instances."`
	RetentionUnknown    time.Duration `default:"336h" env:"FENCELINE_RETENTION_UNKNOWN" help:"How long bytes are kept, once a scan of the bucket has found them under a key that the catalog does not know. Longer than the restore window, since after a restore the newest reports may be known by their bytes alone, and not shorter than a staged object's."`
	RestoreWindow       time.Duration `default:"168h" env:"FENCELINE_RESTORE_WINDOW" help:"The oldest backup of the database that might be restored."`
	PurgeGrace          time.Duration `default:"24h" env:"FENCELINE_PURGE_GRACE" help:"How long the bytes of a condemned object stay. Longer than a download URL's life and a request."`
	RetentionTombstones time.Duration `default:"2160h" env:"FENCELINE_RETENTION_TOMBSTONES" help:"How long the rows of deleted objects and the collector's records are kept. Longer than a superseded object."`
	RetentionLeases     time.Duration `default:"720h" env:"FENCELINE_RETENTION_LEASES" help:"How long the records of ended leases are kept. Longer than the longest lease."`
	RetentionRefusals   time.Duration `default:"720h" env:"FENCELINE_RETENTION_REFUSALS" help:"How long refusals for a fence are kept after the last one."`
	AllowShortRetention bool          `env:"FENCELINE_ALLOW_SHORT_RETENTION" help:"Allow objects to be kept for less than an hour."`
}

// reportSettings are the defaults of what a report may set for itself. The instance that is started last sets them for all.
type reportSettings struct {
	Fencing           catalog.Mode              `default:"granted" enum:"granted,accepted,live" env:"FENCELINE_FENCING" help:"What a publish's fence is compared with, unless the report says otherwise: ${enum}. One default for all instances: that of the last to start."`
	PublishesPerGrant catalog.PublishesPerGrant `default:"many" enum:"many,one" env:"FENCELINE_PUBLISHES_PER_GRANT" help:"How often one grant may publish, unless the report says otherwise: ${enum}. One default for all instances."`
	KeepVersions      int                       `default:"0" env:"FENCELINE_KEEP_VERSIONS" help:"How many versions are kept beyond the visible one, unless the report says otherwise: 0 to 1000. One default for all instances."`
}

// collectorSettings say how the collector works.
type collectorSettings struct {
	GCSchedule    string        `name:"gc-schedule" default:"*/5 * * * *" env:"FENCELINE_GC_SCHEDULE" help:"When the collector runs: five cron fields, in UTC unless CRON_TZ=ZONE stands before them; @every 1h; or off."`
	GCBrakeShare  float64       `name:"gc-brake-share" default:"0.2" env:"FENCELINE_GC_BRAKE_SHARE" help:"Greatest share of objects and of bytes, never published, that is condemned within the window; what is due beyond it is held back until an operator approves. 1 releases the brake."`
	GCBrakeMin    int64         `name:"gc-brake-min" default:"20" env:"FENCELINE_GC_BRAKE_MIN" help:"So many objects may be condemned within the window whatever their share."`
	GCBrakeWindow time.Duration `name:"gc-brake-window" default:"24h" env:"FENCELINE_GC_BRAKE_WINDOW" help:"The brake's window."`
	GCFirstRun    string        `name:"gc-first-run" default:"report" enum:"report,collect" env:"FENCELINE_GC_FIRST_RUN" help:"What passes do where nothing was collected yet: ${enum}. report: nothing but to say what they would do, until an operator approves one."`
	GCTimeLimit   time.Duration `name:"gc-time-limit" default:"0s" env:"FENCELINE_GC_TIME_LIMIT" help:"How long one pass of the collector may take; the next one goes on. 0s: as long as it needs."`
	scanSettings
	GCPace int `name:"gc-pace" default:"0" env:"FENCELINE_GC_PACE" help:"Greatest number of objects that are deleted in a second. 0: as many as the storage manages."`
}

// scanSettings say how often the collector scans the bucket.
type scanSettings struct {
	GCScanEvery scanEvery `name:"gc-scan-every" default:"24h" env:"FENCELINE_GC_SCAN_EVERY" help:"How old the last complete scan of the bucket may be before the collector compares the bucket with the catalog again; 0s: in every pass; off: never by schedule."`
}

// verifySettings say how fast the bytes of what is shown are looked at.
type verifySettings struct {
	VerifyConcurrency int     `default:"8" env:"FENCELINE_VERIFY_CONCURRENCY" help:"How many objects are verified side by side: 1 to 1000."`
	VerifyPace        float64 `default:"0" env:"FENCELINE_VERIFY_PACE" aliases:"pace" help:"Greatest number of objects a second that are verified. 0: as many as the storage answers for."`
}

// limitSettings bound what one client can ask for.
type limitSettings struct {
	LeaseTTLMax     time.Duration `name:"lease-ttl-max" default:"24h" env:"FENCELINE_LEASE_TTL_MAX" help:"The longest lease."`
	RequestTimeout  time.Duration `default:"30s" env:"FENCELINE_REQUEST_TIMEOUT" help:"Longest work on one request; for a download, the longest pause."`
	ShutdownTimeout time.Duration `default:"30s" env:"FENCELINE_SHUTDOWN_TIMEOUT" help:"How long requests in flight may take to finish when the service stops."`
}

// logSettings say what is logged, to standard error.
type logSettings struct {
	LogLevel  slog.Level `default:"info" env:"FENCELINE_LOG_LEVEL" help:"Least level that is logged: debug, info, warn, error."`
	LogFormat string     `default:"json" enum:"json,text" env:"FENCELINE_LOG_FORMAT" help:"Format of the log: ${enum}."`
}

func (s databaseSettings) config(pool poolSettings) database.Config {
	return database.Config{URL: s.DatabaseURL, Pool: pool.DatabasePool}
}

func (s storageSettings) config() staging.BucketConfig {
	return staging.BucketConfig{
		Bucket: s.Bucket, Prefix: s.S3Prefix, Endpoint: s.S3Endpoint, PublicEndpoint: s.S3PublicEndpoint, Region: s.S3Region,
		Deletes: staging.DeleteWay(s.S3Delete),
	}
}

// logger makes the program's logger.
func (s logSettings) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(os.Stderr, options))
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, options))
}
