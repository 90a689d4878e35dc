package staging

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// folders are keys that stand in another order as bytes than as folders, or as words.
func folders() []string { return []string{"a-b/x", "a.b/x", "a/x", "a0/x", "aB/x"} }

// ByteOrder lists keys in which byte order, and that of folders and of words, differ.
func (p *Probe) ByteOrder(ctx context.Context) error { return p.list(ctx, 0) }

// PagesOfTwo lists the same keys two a page.
func (p *Probe) PagesOfTwo(ctx context.Context) error { return p.list(ctx, 2) }

// list lists as the collector's scan does.
func (p *Probe) list(ctx context.Context, size int32) error {
	folder := fmt.Sprintf("list/%d/", size)
	for _, name := range folders() {
		if err := p.put(ctx, p.key(folder+name), []byte("x")); err != nil {
			return err
		}
	}
	root := p.folder + folder
	var got []string
	for found, err := range p.bucket.stored(ctx, listing{prefix: root, size: size}) {
		if err != nil {
			return err
		}
		got = append(got, strings.TrimPrefix(found.Key, root))
	}
	if !slices.Equal(got, folders()) {
		return fmt.Errorf("it lists %q where %q are there", got, folders())
	}
	return nil
}

// Versioning asks what the bucket does.
func (p *Probe) Versioning(ctx context.Context) (Versioning, error) { return p.bucket.versioning(ctx) }

// Versions lists the versions of a key.
func (p *Probe) Versions(ctx context.Context) error {
	key := p.key("versions")
	if err := p.put(ctx, key, []byte("x")); err != nil {
		return err
	}
	refs, err := p.bucket.Versions(ctx, key)
	if err == nil && len(refs) != 1 {
		err = fmt.Errorf("it lists %d versions of what was written once", len(refs))
	}
	return err
}

// ObjectLock finds out whether what is written to the bucket cannot be deleted for a while, and how that is set.
func (p *Probe) ObjectLock(ctx context.Context) (locked bool, rule string, err error) {
	out, err := p.bucket.client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: aws.String(p.bucket.name)})
	if err != nil {
		if status := statusOf(err); status == http.StatusNotFound || status == http.StatusNotImplemented {
			return false, "", nil
		}
		return false, "", storageError(err)
	}
	c := out.ObjectLockConfiguration
	if c == nil || c.ObjectLockEnabled != types.ObjectLockEnabledEnabled {
		return false, "", nil
	}
	if c.Rule == nil || c.Rule.DefaultRetention == nil {
		return false, "on, without a default", nil
	}
	r := c.Rule.DefaultRetention
	return true, fmt.Sprintf("%s for %d days, %d years", r.Mode, aws.ToInt32(r.Days), aws.ToInt32(r.Years)), nil
}

// Lifecycle tells the bucket's own rules that would touch the service's objects.
func (p *Probe) Lifecycle(ctx context.Context) (rules []string, err error) {
	out, err := p.bucket.client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: aws.String(p.bucket.name)})
	if err != nil {
		if status := statusOf(err); status == http.StatusNotFound || status == http.StatusNotImplemented {
			return nil, nil
		}
		return nil, storageError(err)
	}
	ours := p.bucket.prefix + "reports/"
	for _, rule := range out.Rules {
		prefix := aws.ToString(rule.Prefix) //lint:ignore SA1019 rules that were made long ago have it there
		if rule.Filter != nil {
			prefix = aws.ToString(rule.Filter.Prefix)
			if rule.Filter.And != nil {
				prefix = aws.ToString(rule.Filter.And.Prefix)
			}
		}
		touches := strings.HasPrefix(ours, prefix) || strings.HasPrefix(prefix, ours)
		removes := rule.Expiration != nil && (rule.Expiration.Days != nil || rule.Expiration.Date != nil)
		if rule.Status == types.ExpirationStatusEnabled && touches && (removes || len(rule.Transitions) > 0) {
			rules = append(rules, fmt.Sprintf("%q of %q", aws.ToString(rule.ID), prefix))
		}
	}
	return rules, nil
}

// DeleteBy writes two keys, deletes them in one of the ways, and looks whether they are gone.
func (p *Probe) DeleteBy(ctx context.Context, way DeleteWay) error {
	refs := make([]ObjectRef, 2)
	for i := range refs {
		refs[i].Key = p.key(fmt.Sprintf("delete/%s/%d", way, i))
		if err := p.put(ctx, refs[i].Key, []byte("x")); err != nil {
			return err
		}
	}
	if err := p.deleteBy(ctx, way, refs); err != nil {
		return err
	}
	for _, ref := range refs {
		if _, err := p.bucket.Head(ctx, ref.Key, ""); !errors.Is(err, ErrNoBytes) {
			return errors.Join(errors.New("it says that it has deleted what is still there"), err)
		}
	}
	return nil
}

// DeleteMissing deletes a key that is not there.
func (p *Probe) DeleteMissing(ctx context.Context, way DeleteWay) error {
	return p.deleteBy(ctx, way, []ObjectRef{{Key: p.key("missing/" + string(way))}})
}

func (p *Probe) deleteBy(ctx context.Context, way DeleteWay, refs []ObjectRef) error {
	var results []DeleteResult
	var err error
	if way == DeleteSingle {
		results, err = p.bucket.deleteEach(ctx, refs, nil)
	} else {
		results, err = p.bucket.deleteTogether(ctx, refs, way == DeleteMD5, nil)
	}
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}

// LongSegment writes, reads and deletes a key with a segment of 200 bytes, as the longest name of a report makes it.
func (p *Probe) LongSegment(ctx context.Context) error {
	key := p.key(strings.Repeat("n", 200) + "/1.1/" + strings.Repeat("o", 128))
	if err := p.put(ctx, key, []byte("x")); err != nil {
		return err
	}
	stat, err := p.bucket.Head(ctx, key, "")
	if err == nil && stat.Size != 1 {
		err = fmt.Errorf("%d bytes are there of one", stat.Size)
	}
	return err
}
