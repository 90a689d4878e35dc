// Package testbucket gives each test a bucket of its own on the S3 server that
// "make test" starts, and a way past the service to look at it and to tamper
// with it. It is for tests only.
package testbucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/fenceline/fenceline/staging"
)

// callTimeout bounds each call to the server: what hangs is a failure.
const callTimeout = time.Minute

// Bucket is an empty bucket for one test. Its methods act with the server's
// credentials, past the service, and end the test where the server refuses.
type Bucket struct {
	// Config opens the bucket as the service does.
	Config staging.BucketConfig

	client *s3.Client
}

// New makes a bucket without versions. It is emptied and removed when the test
// ends. A test that runs without the server fails.
func New(t testing.TB) *Bucket {
	t.Helper()
	endpoint := required(t, "FENCELINE_TEST_S3_ENDPOINT")
	region := required(t, "AWS_REGION")
	b := &Bucket{
		Config: staging.BucketConfig{
			Bucket:   "t-" + strings.ToLower(rand.Text()),
			Endpoint: endpoint,
			Region:   region,
		},
		client: s3.New(s3.Options{
			BaseEndpoint: aws.String(endpoint),
			UsePathStyle: true,
			Region:       region,
			Credentials: credentials.NewStaticCredentialsProvider(
				required(t, "AWS_ACCESS_KEY_ID"), required(t, "AWS_SECRET_ACCESS_KEY"), ""),
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
			ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		}),
	}
	if _, err := b.client.CreateBucket(callContext(t), &s3.CreateBucketInput{Bucket: b.name()}); err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	t.Cleanup(func() { b.remove(t) })
	return b
}

// NewVersioned makes a bucket that keeps versions.
func NewVersioned(t testing.TB) *Bucket {
	t.Helper()
	b := New(t)
	_, err := b.client.PutBucketVersioning(callContext(t), &s3.PutBucketVersioningInput{
		Bucket:                  b.name(),
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatalf("enable versions (versitygw needs --versioning-dir): %v", err)
	}
	return b
}

// Open opens the bucket as the service does.
func (b *Bucket) Open(t testing.TB) *staging.Bucket {
	t.Helper()
	opened, err := staging.OpenBucket(t.Context(), b.Config)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// Put writes body under key, over whatever is there, and returns its ETag and,
// on a versioned bucket, its version.
func (b *Bucket) Put(t testing.TB, key, body string) (etag, versionID string) {
	t.Helper()
	out, err := b.client.PutObject(callContext(t), &s3.PutObjectInput{
		Bucket: b.name(), Key: aws.String(key), Body: bytes.NewReader([]byte(body)),
	})
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return aws.ToString(out.ETag), aws.ToString(out.VersionId)
}

// PutMultipart writes body as an upload of one part, with a SHA-256 for each
// part and none for the whole, and returns its ETag.
func (b *Bucket) PutMultipart(t testing.TB, key, body string) (etag string) {
	t.Helper()
	ctx := callContext(t)
	upload, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: b.name(), Key: aws.String(key), ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	if err != nil {
		t.Fatalf("begin multipart %q: %v", key, err)
	}
	part, err := b.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: b.name(), Key: aws.String(key), UploadId: upload.UploadId, PartNumber: aws.Int32(1),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256, Body: bytes.NewReader([]byte(body)),
	})
	if err != nil {
		t.Fatalf("upload part of %q: %v", key, err)
	}
	out, err := b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: b.name(), Key: aws.String(key), UploadId: upload.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{
			PartNumber: aws.Int32(1), ETag: part.ETag, ChecksumSHA256: part.ChecksumSHA256,
		}}},
	})
	if err != nil {
		t.Fatalf("complete multipart %q: %v", key, err)
	}
	return aws.ToString(out.ETag)
}

// Uploads lists the unfinished uploads in parts, as "key upload".
func (b *Bucket) Uploads(t testing.TB) []string {
	t.Helper()
	var all []string
	pages := s3.NewListMultipartUploadsPaginator(b.client, &s3.ListMultipartUploadsInput{Bucket: b.name()})
	for pages.HasMorePages() {
		page, err := pages.NextPage(callContext(t))
		if err != nil {
			t.Fatalf("list uploads: %v", err)
		}
		for _, u := range page.Uploads {
			all = append(all, aws.ToString(u.Key)+" "+aws.ToString(u.UploadId))
		}
	}
	return all
}

// BeginUpload begins an upload of key in parts that nobody knows of, and returns its id.
func (b *Bucket) BeginUpload(t testing.TB, key string) string {
	t.Helper()
	out, err := b.client.CreateMultipartUpload(callContext(t), &s3.CreateMultipartUploadInput{Bucket: b.name(), Key: aws.String(key)})
	if err != nil {
		t.Fatalf("begin upload of %q: %v", key, err)
	}
	return aws.ToString(out.UploadId)
}

// Get returns the bytes under key.
func (b *Bucket) Get(t testing.TB, key string) string {
	t.Helper()
	out, err := b.client.GetObject(callContext(t), &s3.GetObjectInput{Bucket: b.name(), Key: aws.String(key)})
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return string(body)
}

// Delete removes key, which need not be there.
func (b *Bucket) Delete(t testing.TB, key string) {
	t.Helper()
	_, err := b.client.DeleteObject(callContext(t), &s3.DeleteObjectInput{Bucket: b.name(), Key: aws.String(key)})
	if err != nil {
		t.Fatalf("delete %q: %v", key, err)
	}
}

// Keys lists the keys that can be read, in byte order.
func (b *Bucket) Keys(t testing.TB) []string {
	t.Helper()
	var keys []string
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: b.name()})
	for pages.HasMorePages() {
		page, err := pages.NextPage(callContext(t))
		if err != nil {
			t.Fatalf("list keys: %v", err)
		}
		for _, object := range page.Contents {
			if key := aws.ToString(object.Key); key != "owner" { // which names the catalog, and is nobody's report
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// Versions lists the first thousand of all that the bucket holds, as
// "key version": what can be read, old versions, and delete markers.
func (b *Bucket) Versions(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, v := range b.versions(t) {
		all = append(all, aws.ToString(v.Key)+" "+aws.ToString(v.VersionId))
	}
	return all
}

// Address returns the host and port of the server, for a proxy before it.
func (b *Bucket) Address(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(b.Config.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func (b *Bucket) name() *string { return aws.String(b.Config.Bucket) }

// versions lists a first page of all that the bucket holds.
func (b *Bucket) versions(t testing.TB) []types.ObjectIdentifier {
	t.Helper()
	page, err := b.client.ListObjectVersions(callContext(t), &s3.ListObjectVersionsInput{Bucket: b.name()})
	if err != nil {
		t.Fatalf("list versions: %v", err)
	}
	var all []types.ObjectIdentifier
	for _, v := range page.Versions {
		all = append(all, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, m := range page.DeleteMarkers {
		all = append(all, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
	}
	return all
}

// remove empties the bucket page by page, old versions included, and deletes it.
func (b *Bucket) remove(t testing.TB) {
	t.Helper()
	for left := b.versions(t); len(left) > 0; left = b.versions(t) {
		out, err := b.client.DeleteObjects(callContext(t), &s3.DeleteObjectsInput{
			Bucket: b.name(), Delete: &types.Delete{Objects: left},
		})
		if err != nil || len(out.Errors) > 0 {
			t.Fatalf("empty bucket: %v, %d keys refused", err, len(out.Errors))
		}
	}
	if _, err := b.client.DeleteBucket(callContext(t), &s3.DeleteBucketInput{Bucket: b.name()}); err != nil {
		t.Fatalf("delete bucket: %v", err)
	}
}

// callContext is bounded, and outlives the test's own context, so that it
// serves the clean-up too.
func callContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), callTimeout)
	t.Cleanup(cancel)
	return ctx
}

func required(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run \"make test\", which starts the servers that the tests need", name)
	}
	return value
}
