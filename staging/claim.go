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
	id, err := deployment(ctx, pool)
	if err == nil {
		err = b.claim(ctx, pool, id)
	}
	if err != nil {
		return fmt.Errorf("claim the bucket: %w", err)
	}
	return nil
}

// Owned tells whether the bucket, under its prefix, says that it is that of the catalog in the database of pool; it changes
// nothing. Errors: ErrForeignBucket, ErrNoBytes (it says nothing of any catalog), ErrStorageUnavailable,
// database.ErrUnavailable.
func Owned(ctx context.Context, pool *pgxpool.Pool, b *Bucket) error {
	key := b.prefix + "owner"
	id, err := deployment(ctx, pool)
	if err != nil {
		return fmt.Errorf("look whose the bucket is: %w", err)
	}
	owner, err := b.owner(ctx, key)
	switch {
	case errors.Is(err, ErrNoBytes):
		err = fmt.Errorf("nothing in it says that it is this catalog's: %w", err)
	case err == nil && owner != id:
		err = foreign(key, owner, id)
	}
	if err != nil {
		return fmt.Errorf("look whose the bucket is: %w", err)
	}
	return nil
}

// deployment is the id of the catalog.
func deployment(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	const query = `SELECT deployment_id::text AS id FROM deployment`
	type row struct{ ID string }
	catalog, found, err := database.Row[row](ctx, pool, query, nil)
	if err == nil && !found {
		err = errors.New("the catalog has no id")
	}
	return catalog.ID, err
}

// Claimed tells whether the bucket is that of the catalog in the database of pool, as Claim has made it; false where it is
// nobody's and the catalog has none. It changes nothing. Errors: as Claim.
func Claimed(ctx context.Context, pool *pgxpool.Pool, b *Bucket) (bool, error) {
	const query = `SELECT deployment_id::text AS id, bucket FROM deployment`
	type row struct {
		ID     string
		Bucket *string
	}
	catalog, found, err := database.Row[row](ctx, pool, query, nil)
	if err != nil || !found {
		return false, err
	}
	key := b.prefix + "owner"
	owner, err := b.owner(ctx, key)
	switch {
	case err == nil && owner != catalog.ID:
		return false, foreign(key, owner, catalog.ID)
	case err == nil:
		return true, nil
	case !errors.Is(err, ErrNoBytes):
		return false, err
	case catalog.Bucket != nil && *catalog.Bucket != b.address():
		return false, fmt.Errorf("%w (they are in %s, this one is %s)", ErrSecondBucket, *catalog.Bucket, b.address())
	}
	return false, nil
}

// address is how the catalog knows the bucket.
func (b *Bucket) address() string {
	return strings.TrimSuffix(b.endpoint, "/") + "/" + b.name + "/" + b.prefix
}

func (b *Bucket) claim(ctx context.Context, pool *pgxpool.Pool, id string) error {
	key := b.prefix + "owner"
	owner, err := b.owner(ctx, key)
	proven := owner == id
	if err != nil && !errors.Is(err, ErrNoBytes) {
		return err
	}
	if err == nil && !proven {
		return foreign(key, owner, id)
	}
	if err := b.becomesTheOne(ctx, pool, proven); err != nil || proven {
		return err
	}
	_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(b.name), Key: aws.String(key), Body: bytes.NewReader([]byte(id)), IfNoneMatch: aws.String("*"),
	})
	if status := statusOf(err); err != nil && status != http.StatusPreconditionFailed && status != http.StatusConflict {
		return fmt.Errorf("create %q: %w", key, storageError(err))
	}
	owner, err = b.owner(ctx, key) // whoever was first
	if err == nil && owner != id {
		err = foreign(key, owner, id)
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
		err = fmt.Errorf("%w (they are in %s, this one is %s)", ErrSecondBucket, got.Present, name)
	}
	return err
}

// foreign is the error of a bucket that is another catalog's.
func foreign(key, owner, id string) error {
	return fmt.Errorf("%w (%q names catalog %.64q, this one is %s)", ErrForeignBucket, key, owner, id)
}

// owner reads whose the bucket is.
func (b *Bucket) owner(ctx context.Context, key string) (string, error) {
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
