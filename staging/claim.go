package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fenceline/fenceline/internal/database"
)

// ErrForeignBucket reports that the bucket, under its prefix, belongs to another catalog. Both would hand out the same
// keys, and each collector would delete what the other shows.
var ErrForeignBucket = errors.New("the bucket belongs to another catalog: use another bucket, or another --s3-prefix")

// ErrSecondBucket reports that the catalog's objects are in another bucket, and this one does not say that it is a copy.
var ErrSecondBucket = errors.New("the catalog's objects are in another bucket: a bucket in its place needs all of them, and the object <prefix>owner")

// Claim makes the bucket, under its prefix, that of the catalog in the database of pool, unless it is already: the
// object "<prefix>owner" says whose it is, and the catalog knows which bucket it has. Nothing overrides it. Errors:
// ErrForeignBucket, ErrSecondBucket, ErrStorageUnavailable, database.ErrUnavailable.
func Claim(ctx context.Context, pool *pgxpool.Pool, b *Bucket) error {
	catalog, ours, err := b.ownership(ctx, pool)
	if err == nil {
		err = b.becomesTheOne(ctx, pool, ours)
	}
	if err == nil && !ours {
		err = b.claim(ctx, catalog.ID)
	}
	if err != nil {
		return fmt.Errorf("claim the bucket: %w", err)
	}
	return nil
}

// Claimed tells whether the bucket is that of the catalog in the database of pool, as Claim has made it; false where it is
// nobody's and the catalog has none. It changes nothing. Errors: as Claim.
func Claimed(ctx context.Context, pool *pgxpool.Pool, b *Bucket) (bool, error) {
	catalog, ours, err := b.ownership(ctx, pool)
	if err == nil && !ours && catalog.Bucket != nil && *catalog.Bucket != b.address() {
		err = second(*catalog.Bucket, b.address())
	}
	if err != nil {
		return false, fmt.Errorf("look whose the bucket is: %w", err)
	}
	return ours, nil
}

// deployment is what the catalog knows of itself and of its bucket.
type deployment struct {
	ID     string
	Bucket *string // nil: it has none yet
}

// ownership reads which catalog it is, and whether the bucket says that it is its own. Error: ErrForeignBucket where it is another's.
func (b *Bucket) ownership(ctx context.Context, pool *pgxpool.Pool) (catalog deployment, ours bool, err error) {
	const query = `SELECT deployment_id::text AS id, bucket FROM deployment`
	catalog, found, err := database.Row[deployment](ctx, pool, query, nil)
	if err == nil && !found {
		err = errors.New("the catalog has no id")
	}
	if err != nil {
		return deployment{}, false, err
	}
	switch owner, err := b.owner(ctx); {
	case errors.Is(err, ErrNoBytes):
		return catalog, false, nil
	case err != nil:
		return deployment{}, false, err
	case owner != catalog.ID:
		return deployment{}, false, b.foreign(owner, catalog.ID)
	}
	return catalog, true, nil
}

// address is how the catalog knows the bucket.
func (b *Bucket) address() string {
	return strings.TrimSuffix(b.endpoint, "/") + "/" + b.name + "/" + b.prefix
}

// claim writes into the bucket whose it is, unless somebody was first.
func (b *Bucket) claim(ctx context.Context, id string) error {
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(b.name), Key: aws.String(b.ownerKey()), Body: bytes.NewReader([]byte(id)), IfNoneMatch: aws.String("*"),
	})
	if status := statusOf(err); err != nil && status != http.StatusPreconditionFailed && status != http.StatusConflict {
		return fmt.Errorf("create %q: %w", b.ownerKey(), storageError(err))
	}
	owner, err := b.owner(ctx)
	if err == nil && owner != id {
		err = b.foreign(owner, id)
	}
	return err
}

// becomesTheOne notes in the catalog that the bucket holds its objects.
func (b *Bucket) becomesTheOne(ctx context.Context, pool *pgxpool.Pool, proven bool) error {
	const query = `SELECT status, present FROM claim_bucket(@bucket, @proven)`
	type answer struct{ Status, Present string }
	name := b.address()
	got, err := database.Change[answer](ctx, pool, query, pgx.NamedArgs{"bucket": name, "proven": proven})
	if err == nil && got.Status != "claimed" {
		err = second(got.Present, name)
	}
	return err
}

// second is the error of a bucket that is not where the catalog's objects are.
func second(theOne, name string) error {
	return fmt.Errorf("%w (they are in %s, this one is %s)", ErrSecondBucket, theOne, name)
}

// foreign is the error of a bucket that is another catalog's.
func (b *Bucket) foreign(owner, id string) error {
	return fmt.Errorf("%w (%q names catalog %.64q, this one is %s)", ErrForeignBucket, b.ownerKey(), owner, id)
}

// ownerKey is the key of the object that says whose the bucket is.
func (b *Bucket) ownerKey() string { return b.prefix + "owner" }

// owner reads whose the bucket is. Error: ErrNoBytes where nothing says it.
func (b *Bucket) owner(ctx context.Context) (string, error) {
	key := b.ownerKey()
	got, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(b.name), Key: aws.String(key)})
	if err != nil {
		return "", fmt.Errorf("read %q: %w", key, storageError(err))
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, 1024))
	if err != nil {
		return "", fmt.Errorf("read %q: %w: %w", key, ErrStorageUnavailable, err)
	}
	return string(text), nil
}
