package staging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fenceline/fenceline/internal/metrics"
)

// BucketConfig says where the bytes of objects are kept. Credentials are not
// part of it: they come from the AWS SDK's default chain (environment, shared
// files, web identity, instance role).
type BucketConfig struct {
	// Bucket is the bucket's name. Required.
	Bucket string

	// Prefix begins every key that the service makes up by itself, so that
	// several deployments can share a bucket. It is put before the key as it
	// stands: end it with a slash to make it look like a folder. Default: none.
	Prefix string

	// Endpoint is the base URL of an S3-compatible server, such as
	// http://127.0.0.1:7070; buckets are then addressed by path. Default: what
	// AWS_ENDPOINT_URL_S3 says, else AWS itself.
	Endpoint string

	// PublicEndpoint is the base URL at which workers and readers see the same
	// server: presigned URLs are signed for it. Default: Endpoint.
	PublicEndpoint string

	// Region is the region that requests are signed for. Default: the SDK's
	// own (AWS_REGION, the profile), else us-east-1.
	Region string

	// Deletes is how objects are deleted. Default: DeleteAuto.
	Deletes DeleteWay

	// Log is told when DeleteAuto gives up its first way. Default: slog.Default().
	Log *slog.Logger

	// Metrics counts the calls of the storage. Default: nobody does.
	Metrics *metrics.Metrics
}

const (
	defaultRegion = "us-east-1"

	// maxAttempts bounds how often one request is sent.
	maxAttempts = 3

	dialTimeout = 5 * time.Second
	// headerTimeout is long enough for the deletion of a full batch by a slow
	// server.
	headerTimeout = 30 * time.Second
	// stallTimeout bounds the silence between two bytes of an answer. It is no
	// limit to a slow download that goes on.
	stallTimeout = 30 * time.Second

	// joinTimeout is both of these for the completion of an upload in parts: some servers copy all the bytes before
	// they answer, and say nothing meanwhile.
	joinTimeout = 10 * time.Minute
)

// Bucket is the storage that holds the bytes of objects: one bucket of an
// S3-compatible server. Its methods take whole keys, prefix included. It is
// safe for concurrent use.
type Bucket struct {
	name        string
	prefix      string
	endpoint    string
	client      *s3.Client
	patient     aws.HTTPClient // for what may take joinTimeout
	presigner   *s3.PresignClient
	credentials aws.CredentialsProvider
	deletes     *deletes
}

// OpenBucket builds the clients for the bucket that cfg names. It reads the
// environment and the shared AWS files, and sends nothing: a server that is
// away shows with the first request. The error says which setting is wrong.
func OpenBucket(ctx context.Context, cfg BucketConfig) (*Bucket, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	loaded, err := config.LoadDefaultConfig(ctx,
		config.WithRegion(cfg.Region),
		config.WithDefaultRegion(defaultRegion),
		config.WithHTTPClient(storageHTTPClient()),
		config.WithRetryMaxAttempts(maxAttempts),
		// Servers other than AWS refuse checksums that they do not know.
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	)
	if err != nil {
		return nil, fmt.Errorf("open bucket %q: load AWS configuration: %w", cfg.Bucket, err)
	}
	loaded.Credentials = knownCredentials(loaded.Credentials)

	public := cfg.PublicEndpoint
	if public == "" {
		public = cfg.Endpoint
	}
	return &Bucket{
		name:        cfg.Bucket,
		prefix:      cfg.Prefix,
		endpoint:    cfg.Endpoint,
		client:      s3.NewFromConfig(loaded, atEndpoint(cfg.Endpoint), measured(cfg.Metrics)),
		patient:     patientClient(loaded.HTTPClient),
		presigner:   s3.NewPresignClient(s3.NewFromConfig(loaded, atEndpoint(public))),
		credentials: loaded.Credentials,
		deletes:     &deletes{set: cmp.Or(cfg.Deletes, DeleteAuto), log: cmp.Or(cfg.Log, slog.Default())},
	}, nil
}

// storageHTTPClient is the SDK's own kind of client, since it alone takes up
// AWS_CA_BUNDLE, with limits for a server that hangs.
func storageHTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = headerTimeout }).
		WithReadTimeout(stallTimeout)
}

// patientClient is client, with whatever the environment has made of it, for what may take joinTimeout.
func patientClient(client aws.HTTPClient) aws.HTTPClient {
	known, ok := client.(*awshttp.BuildableClient)
	if !ok {
		return client
	}
	return known.
		WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = joinTimeout }).
		WithReadTimeout(joinTimeout)
}

// atEndpoint points a client at endpoint. Any endpoint, also one from the
// environment, implies addressing by path: few servers have a wildcard name.
func atEndpoint(endpoint string) func(*s3.Options) {
	return func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.UsePathStyle = o.BaseEndpoint != nil
	}
}

// knownCredentials marks a failure to get credentials, which the SDK gives no
// type of its own, as ErrStorageUnavailable.
func knownCredentials(chain aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		creds, err := chain.Retrieve(ctx)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("%w: no credentials: %w", ErrStorageUnavailable, err)
		}
		return creds, nil
	})
}

func (cfg BucketConfig) validate() error {
	if cfg.Bucket == "" {
		return errors.New("the name of the bucket is missing")
	}
	if err := validEndpoint(cfg.Endpoint); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if err := validEndpoint(cfg.PublicEndpoint); err != nil {
		return fmt.Errorf("public endpoint: %w", err)
	}
	switch cfg.Deletes {
	case "", DeleteAuto, DeleteBatch, DeleteMD5, DeleteSingle:
	default:
		return fmt.Errorf("there is no way to delete that is called %q", cfg.Deletes)
	}
	if err := validPrefix(cfg.Prefix); err != nil {
		return err
	}
	return Layout{Prefix: cfg.Prefix}.apart()
}

func validEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not a URL like https://s3.example.com", endpoint)
	}
	return nil
}

// validPrefix refuses what servers that keep objects as files treat each in
// its own way.
func validPrefix(prefix string) error {
	for segment := range strings.SplitSeq(strings.TrimSuffix(prefix, "/"), "/") {
		if (segment == "" && prefix != "") || segment == "." || segment == ".." {
			return fmt.Errorf("prefix %q has an empty segment, or one of dots only", prefix)
		}
	}
	for _, r := range prefix {
		if r <= ' ' || r > '~' || r == '\\' {
			return fmt.Errorf("prefix %q has a character other than printable ASCII", prefix)
		}
	}
	return nil
}
