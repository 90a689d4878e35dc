package staging

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	// probeCreates is how many creates race in a probe: servers that check and
	// then write let two of a few win only now and then.
	probeCreates = 20

	// probeCleanup bounds the clean-up after a probe, whose context may be over.
	probeCleanup = 30 * time.Second
)

// ProbeConditionalCreate finds out whether the storage honours If-None-Match: *,
// on which every upload relies: of 20 concurrent creates of one fresh key under
// "<prefix>probe/" exactly one may win, a later one must be refused as well, and
// the winner's bytes must be the ones that stay, and nothing be under the key in
// lower case. ErrOverwrites or ErrFoldsCase if it does not;
// any other error leaves the question open. The key is deleted at the end.
func (b *Bucket) ProbeConditionalCreate(ctx context.Context) (err error) {
	key := b.prefix + "probe/" + rand.Text()
	p := &createProbe{bucket: b, key: key}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer cancel()
		err = errors.Join(err, p.clean(cleanup))
	}()
	if err := p.race(ctx); err != nil {
		return fmt.Errorf("probe conditional create of %q: %w", key, err)
	}
	if err := p.again(ctx); err != nil {
		return fmt.Errorf("probe conditional create of %q: %w", key, err)
	}
	return nil
}

// createProbe is one probe: what its creates have left behind.
type createProbe struct {
	bucket *Bucket
	key    string
	won    []createdBytes
}

// createdBytes is what one create that was not refused has written.
type createdBytes struct {
	body      []byte
	versionID string
}

// race lets the creates go at once.
func (p *createProbe) race(ctx context.Context) error {
	var (
		wg       sync.WaitGroup
		start    = make(chan struct{})
		outcomes [probeCreates]createOutcome
	)
	for i := range outcomes {
		wg.Go(func() {
			<-start
			outcomes[i] = p.create(ctx)
		})
	}
	close(start)
	wg.Wait()

	var faults []error
	for _, o := range outcomes {
		switch {
		case o.err != nil:
			faults = append(faults, o.err)
		case !o.refused:
			p.won = append(p.won, o.createdBytes)
		}
	}
	switch {
	case len(p.won) > 1: // proof, whatever became of the others
		return fmt.Errorf("%w: %d of %d concurrent creates won", ErrOverwrites, len(p.won), probeCreates)
	case len(faults) > 0:
		return errors.Join(faults...)
	case len(p.won) == 0:
		return fmt.Errorf("%w: it refused every create of a fresh key", ErrStorageUnavailable)
	}
	return nil
}

// again tries one create more, onto the key that the race's winner has made,
// and looks whose bytes are there.
func (p *createProbe) again(ctx context.Context) error {
	o := p.create(ctx)
	if o.err != nil {
		return o.err
	}
	if !o.refused {
		p.won = append(p.won, o.createdBytes)
		return fmt.Errorf("%w: a create onto an existing key won", ErrOverwrites)
	}
	kept, err := p.read(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(kept, p.won[0].body) {
		return fmt.Errorf("%w: a create that it refused has written", ErrOverwrites)
	}
	return p.otherCase(ctx)
}

// otherCase looks whether the key is also there in other letters.
func (p *createProbe) otherCase(ctx context.Context) error {
	other := p.bucket.prefix + "probe/" + strings.ToLower(strings.TrimPrefix(p.key, p.bucket.prefix+"probe/"))
	switch _, err := p.bucket.Head(ctx, other, ""); {
	case errors.Is(err, ErrNoBytes):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: %q can be read as %q", ErrFoldsCase, p.key, other)
}

// createOutcome is the end of one create: it wrote, or was refused, or failed.
type createOutcome struct {
	createdBytes
	refused bool
	err     error
}

// create is sent once, since a create that is tried again is refused for what
// its own first try has written.
func (p *createProbe) create(ctx context.Context) createOutcome {
	body := []byte(rand.Text())
	out, err := p.bucket.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:      aws.String(p.bucket.name),
		Key:         aws.String(p.key),
		IfNoneMatch: aws.String("*"),
		Body:        bytes.NewReader(body),
	}, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
	switch status := statusOf(err); {
	case err == nil:
		return createOutcome{createdBytes: createdBytes{body: body, versionID: aws.ToString(out.VersionId)}}
	case status == http.StatusPreconditionFailed, status == http.StatusConflict:
		// AWS answers 409 ConditionalRequestConflict while another is under way.
		return createOutcome{refused: true}
	default:
		return createOutcome{err: storageError(err)}
	}
}

func (p *createProbe) read(ctx context.Context) ([]byte, error) {
	out, err := p.bucket.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(p.bucket.name),
		Key:    aws.String(p.key),
	})
	if err != nil {
		return nil, storageError(err)
	}
	defer out.Body.Close()
	return io.ReadAll(out.Body)
}

// clean deletes what the probe has written. Without a winner that it knows of,
// the key goes all the same: an answer may have been lost.
func (p *createProbe) clean(ctx context.Context) error {
	var refs []ObjectRef
	for _, w := range p.won {
		refs = append(refs, ObjectRef{Key: p.key, VersionID: w.versionID})
	}
	if refs = slices.Compact(refs); len(refs) == 0 {
		refs = []ObjectRef{{Key: p.key}}
	}
	results, err := p.bucket.Delete(ctx, refs, nil)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil {
		return fmt.Errorf("clean up after probe: %w", err)
	}
	return nil
}
