package staging

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// ErrBelieves reports that the storage vouches for a digest that the bytes do not have: sealing would believe it.
var ErrBelieves = errors.New("the storage vouches for a digest that it has not compared")

// probeType is a content type that no server makes up by itself.
const probeType = "application/vnd.fenceline.probe"

// probeBody is a MiB that nobody else has, and its digest.
func probeBody() (body []byte, digest string) {
	body = bytes.Repeat([]byte(rand.Text()), 1<<20/26+1)[:1<<20]
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:])
}

// URLUpload uploads a MiB to a URL as it is handed out, with size and digest declared, and looks at what has come.
func (p *Probe) URLUpload(ctx context.Context) error {
	body, digest := probeBody()
	key := p.key("upload")
	u, err := p.inside.PresignPut(ctx, key, PutDeclaration{ContentType: probeType, Size: aws.Int64(int64(len(body))), SHA256: digest}, probeURLLife)
	if err != nil {
		return err
	}
	status, _, answer, err := p.send(ctx, u.Method, u.URL, u.Headers, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("it answered %s", refusal(status, answer))
	}
	stat, err := p.bucket.Head(ctx, key, "")
	if err == nil && stat.Size != int64(len(body)) {
		err = fmt.Errorf("%d bytes came of %d", stat.Size, len(body))
	}
	return err
}

// WrongDigest uploads other bytes than were declared. It is nil if the storage refuses them, and ErrBelieves if it takes
// them and says afterwards that they have the digest.
func (p *Probe) WrongDigest(ctx context.Context) error {
	body, _ := probeBody()
	_, other := probeBody()
	key := p.key("digest")
	u, err := p.inside.PresignPut(ctx, key, PutDeclaration{Size: aws.Int64(int64(len(body))), SHA256: other}, probeURLLife)
	if err != nil {
		return err
	}
	status, _, _, err := p.send(ctx, u.Method, u.URL, u.Headers, body)
	if err != nil || status >= http.StatusBadRequest {
		return err
	}
	stat, err := p.bucket.Head(ctx, key, "")
	if err == nil && stat.SHA256 == other {
		return ErrBelieves
	}
	if errors.Is(err, ErrNoBytes) {
		return nil // it said that it took them, and did not
	}
	return errors.Join(errors.New("it takes bytes that do not have the digest that was declared"), err)
}

// LeftOutHeader uploads onto a key that is there, without the header that forbids that. It is nil if the storage refuses
// it for the header that is missing from what was signed.
func (p *Probe) LeftOutHeader(ctx context.Context) error {
	key := p.key("header")
	if err := p.put(ctx, key, []byte("first")); err != nil {
		return err
	}
	u, err := p.inside.PresignPut(ctx, key, PutDeclaration{Size: aws.Int64(5)}, probeURLLife)
	if err != nil {
		return err
	}
	delete(u.Headers, "If-None-Match")
	status, _, _, err := p.send(ctx, u.Method, u.URL, u.Headers, []byte("other"))
	if err == nil && status < http.StatusBadRequest {
		return fmt.Errorf("%w for whoever leaves the header out of an upload", ErrOverwrites)
	}
	return err
}

// CompletedOnce completes two uploads in parts of one key. It is nil if the second is refused, since the first is there.
func (p *Probe) CompletedOnce(ctx context.Context) error {
	key := p.key("completed")
	first, parts, err := p.onePart(ctx, key)
	if err != nil {
		return err
	}
	second, others, err := p.onePart(ctx, key)
	if err != nil {
		return err
	}
	if err := p.bucket.CompleteUpload(ctx, key, first, parts); err != nil {
		return err
	}
	switch err := p.bucket.CompleteUpload(ctx, key, second, others); {
	case errors.Is(err, ErrBytesChanged):
		return nil
	case err == nil:
		return fmt.Errorf("%w when it completes an upload in parts", ErrOverwrites)
	default:
		return err
	}
}

// onePart begins an upload in parts and sends its only part.
func (p *Probe) onePart(ctx context.Context, key string) (uploadID string, parts []Part, err error) {
	if uploadID, err = p.begin(ctx, key); err != nil {
		return "", nil, err
	}
	u, err := p.inside.PresignPart(ctx, key, uploadID, 1, 5, probeURLLife)
	if err != nil {
		return "", nil, err
	}
	status, header, answer, err := p.send(ctx, u.Method, u.URL, u.Headers, []byte("hello"))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("it answered a part with %s", refusal(status, answer))
	}
	return uploadID, []Part{{Number: 1, ETag: header.Get("ETag")}}, err
}

// begin begins an upload in parts, and notes that it is to be aborted.
func (p *Probe) begin(ctx context.Context, key string) (string, error) {
	uploadID, err := p.bucket.CreateUpload(ctx, key, "")
	if err == nil {
		p.mu.Lock()
		p.uploads = append(p.uploads, UploadRef{Key: key, UploadID: uploadID})
		p.mu.Unlock()
	}
	return uploadID, err
}

// UnfinishedUploads begins an upload in parts, finds it in the list, aborts it, and finds it no more.
func (p *Probe) UnfinishedUploads(ctx context.Context) error {
	key := p.key("unfinished")
	uploadID, err := p.begin(ctx, key)
	if err != nil {
		return err
	}
	listed := func() (bool, error) {
		for page, err := range p.bucket.Uploads(ctx, key) {
			if err != nil {
				return false, err
			}
			if slices.Contains(page, UploadRef{Key: key, UploadID: uploadID}) {
				return true, nil
			}
		}
		return false, nil
	}
	there, err := listed()
	if err == nil && !there {
		err = errors.New("an upload that was begun is not in the list")
	}
	if err == nil {
		err = p.bucket.AbortUpload(ctx, key, uploadID, nil)
	}
	if err != nil {
		return err
	}
	there, err = listed()
	if err == nil && there {
		err = errors.New("an upload that was aborted is still in the list")
	}
	return err
}
