package staging

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Probe tries what the service needs of a storage, with keys of its own under "<prefix>probe/". Close removes them.
type Probe struct {
	bucket *Bucket // as the service has it
	inside *Bucket // the same, with URLs for the address that the service itself uses
	folder string

	mu      sync.Mutex
	keys    map[string]bool
	uploads []UploadRef
}

// probeURLLife is how long the URLs of a probe are valid.
const probeURLLife = time.Minute

// NewProbe makes a probe of the bucket. It sends nothing.
func (b *Bucket) NewProbe() *Probe {
	inside := *b
	inside.presigner = s3.NewPresignClient(b.client)
	return &Probe{bucket: b, inside: &inside, folder: b.prefix + "probe/" + rand.Text() + "/", keys: map[string]bool{}}
}

// Close removes what the probe has written, also when ctx is over.
func (p *Probe) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, u := range p.uploads {
		err = errors.Join(err, p.bucket.AbortUpload(ctx, u.Key, u.UploadID, nil))
	}
	for key := range p.keys {
		err = errors.Join(err, p.remove(ctx, key))
	}
	if err != nil {
		return fmt.Errorf("clean up after the probe: %w", err)
	}
	return nil
}

// remove deletes all versions of a key, where the storage tells them, and else the key.
func (p *Probe) remove(ctx context.Context, key string) error {
	for {
		refs, err := p.bucket.Versions(ctx, key)
		partly := errors.Is(err, ErrListingBroken) && len(refs) > 0
		if err != nil && !partly {
			refs = []ObjectRef{{Key: key}}
		}
		results, err := p.bucket.deleteEach(ctx, refs, nil)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		if err != nil || !partly {
			return err
		}
	}
}

// key makes up a key, and notes that it is to be removed.
func (p *Probe) key(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.folder + name
	p.keys[key] = true
	return key
}

func (p *Probe) put(ctx context.Context, key string, body []byte) error {
	_, err := p.bucket.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(p.bucket.name), Key: aws.String(key), Body: bytes.NewReader(body),
	})
	return storageError(err)
}

// Access is how far the storage lets the service in.
type Access string

// What keeps the service out, and that nothing does.
const (
	AccessGranted  Access = "granted"
	AccessAway     Access = "away"      // nobody answers, or only with faults
	AccessRefused  Access = "refused"   // the credentials are wrong, or may not list the bucket
	AccessNoBucket Access = "no bucket" // there is none of the name
	AccessSkewed   Access = "skewed"    // this machine's clock is too far off for a signature
)

// Reached is the storage's first answer.
type Reached struct {
	Access Access
	Server string        // what it calls itself; "" where it does not say
	Skew   time.Duration // how far its clock is ahead of this machine's, to the second; 0 where it does not say
	Err    error         // what was answered instead, unless access was granted
}

// Reach finds out whether the storage lets the service in.
func (p *Probe) Reach(ctx context.Context) Reached {
	began := time.Now()
	out, err := p.bucket.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: aws.String(p.bucket.name), Prefix: aws.String(p.folder), MaxKeys: aws.Int32(1),
	})
	r := Reached{Access: AccessGranted, Err: storageError(err)}
	var header http.Header
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		header = answer.Response.Header
	} else if err == nil {
		if raw, ok := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response); ok {
			header = raw.Header
		}
	}
	r.Server = header.Get("Server")
	if at, dateErr := http.ParseTime(header.Get("Date")); dateErr == nil {
		middle := began.Add(time.Since(began) / 2)
		// A date of whole seconds is up to one second behind.
		if skew := at.Sub(middle); skew > time.Second || skew < -2*time.Second {
			r.Skew = skew.Round(time.Second)
		}
	}
	switch {
	case err == nil:
	case codeOf(err) == "NoSuchBucket":
		r.Access = AccessNoBucket
	case codeOf(err) == "RequestTimeTooSkewed":
		r.Access = AccessSkewed
	case statusOf(err) == http.StatusForbidden, statusOf(err) == http.StatusUnauthorized, codeOf(err) == "InvalidAccessKeyId":
		r.Access = AccessRefused
	default:
		r.Access = AccessAway
	}
	return r
}

// send sends a request as a client does that has no credentials, and reads the answer, of which it returns the beginning.
func (p *Probe) send(ctx context.Context, method, address string, headers map[string]string, body []byte) (status int, header http.Header, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, withoutURL(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := p.bucket.client.Options().HTTPClient.Do(request)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%w: %w", ErrStorageUnavailable, withoutURL(err))
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, 4<<20))
	return response.StatusCode, response.Header, answer, err
}

// withoutURL leaves the URL out of an error, since whoever has it may use it.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// refusal is what an answer to a request by URL says, in a few words.
func refusal(status int, answer []byte) string {
	text := string(answer)
	_, after, found := strings.Cut(text, "<Code>")
	if code, _, ended := strings.Cut(after, "</Code>"); found && ended {
		return fmt.Sprintf("%d %s", status, code)
	}
	return fmt.Sprint(status)
}
