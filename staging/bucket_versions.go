package staging

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Versioning is what a bucket does with bytes that are replaced or deleted.
type Versioning string

// What a bucket does.
const (
	VersioningOff       Versioning = "off"
	VersioningEnabled   Versioning = "enabled"
	VersioningSuspended Versioning = "suspended" // versions from before may be there still
)

// versioning asks what the bucket does. Where it is not off, the plain listing shows less than is there.
func (b *Bucket) versioning(ctx context.Context) (Versioning, error) {
	out, err := b.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String(b.name)})
	switch statusOf(err) {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return VersioningOff, nil // a storage that does not know the request keeps none
	}
	switch {
	case err != nil:
		return "", storageError(err)
	case out.Status == types.BucketVersioningStatusEnabled:
		return VersioningEnabled, nil
	case out.Status != "":
		return VersioningSuspended, nil
	}
	return VersioningOff, nil
}

// Versions lists every version of key, delete markers included, as references
// for Delete. On a bucket without versions that is the key itself, if it is
// there. With ErrListingBroken come those that could be found: some servers never get beyond a page of one key's
// versions, and show the next ones when these are deleted.
func (b *Bucket) Versions(ctx context.Context, key string) ([]ObjectRef, error) {
	var refs []ObjectRef
	var broken error
	l := listing{prefix: key, several: true, fetch: b.versionPage}
	l.walk(ctx, func(found Stored, err error) bool {
		broken = err
		if err != nil || found.Key != key { // in byte order what only begins so comes behind
			return false
		}
		refs = append(refs, ObjectRef{Key: key, VersionID: found.VersionID})
		return true
	})
	if broken != nil && !errors.Is(broken, ErrListingBroken) {
		refs = nil
	}
	if broken != nil {
		return refs, fmt.Errorf("list versions of %q: %w", key, broken)
	}
	return refs, nil
}
