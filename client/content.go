package client

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Content is the bytes of a report on their way. Its Read checks them against the digest
// that was published and returns an error for [ErrDigestMismatch], instead of [io.EOF],
// where they differ: what was read before that is not to be used. Close it when done.
type Content struct {
	ContentType string
	Filename    string // "" if it has none
	Size        int64  // in bytes; −1 if it was not told
	SHA256      string // in hex, as published

	op       string
	response *http.Response
	hash     hash.Hash
	stalled  *stall
	stop     func()
}

// Open begins to fetch the bytes of the newest version of a report. It fails as
// [Client.Report] does. The context bounds the reading too.
func (c *Client) Open(ctx context.Context, report string) (*Content, error) {
	return c.open(ctx, opName("fetch", "the newest version", report), report, "content")
}

// OpenVersion begins to fetch the bytes of one version of a report. It fails with
// [ErrGone] where they are no longer kept.
func (c *Client) OpenVersion(ctx context.Context, report string, version int64) (*Content, error) {
	number := strconv.FormatInt(version, 10)
	return c.open(ctx, opName("fetch", "version "+number, report), report, "publications", number, "content")
}

func (c *Client) open(ctx context.Context, op, report string, below ...string) (*Content, error) {
	if err := checkIDs(op, "report", report); err != nil {
		return nil, err
	}
	request := call{
		op: op, method: http.MethodGet, path: append([]string{"reports", report}, below...),
		// Bytes that a proxy has compressed on the way would not have the digest.
		header: http.Header{"Accept-Encoding": {"identity"}},
	}
	var content *Content
	err := c.persist(ctx, request, func(ctx context.Context) *Error {
		moving, stalled, stop := watch(ctx, c.config.AttemptTimeout) // until it begins
		response, failure := c.send(moving, request, nil)
		if failure != nil {
			stop()
			if stalled.ended.Load() {
				return unanswered(ctx, request, true, stalled.reason(failure))
			}
			return failure
		}
		stalled.after = c.config.StallTimeout
		stalled.moved()
		if response.StatusCode != http.StatusOK {
			defer stop()
			defer response.Body.Close()
			body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // half a problem document is none
			return refusal(request, response, body)
		}
		digest, err := announcedDigest(response.Header)
		if err != nil {
			response.Body.Close()
			stop()
			return &Error{Op: op, kind: ErrDigestMismatch, cause: err, final: true}
		}
		content = newContent(op, response, digest)
		content.stalled, content.stop = stalled, stop
		stalled.timer.Stop() // until the first read
		return nil
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

func newContent(op string, response *http.Response, digest string) *Content {
	_, parameters, _ := mime.ParseMediaType(response.Header.Get("Content-Disposition"))
	return &Content{
		ContentType: response.Header.Get("Content-Type"),
		Filename:    parameters["filename"],
		Size:        response.ContentLength,
		SHA256:      digest,
		op:          op, response: response, hash: sha256.New(),
	}
}

// Read reads the next bytes, and at their end compares the digest.
func (c *Content) Read(p []byte) (int, error) {
	c.stalled.moved()
	n, err := c.response.Body.Read(p)
	c.stalled.timer.Stop() // the caller may take its time between two reads
	c.hash.Write(p[:n])
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		ctx := c.response.Request.Context()
		if c.stalled.ended.Load() {
			ctx = context.WithoutCancel(ctx) // nobody but the stall has ended it
		}
		return n, unanswered(ctx, call{op: c.op}, true, c.stalled.reason(err))
	}
	if actual := hex.EncodeToString(c.hash.Sum(nil)); actual != c.SHA256 {
		cause := fmt.Errorf("the bytes have SHA-256 %s, published were those of %s", actual, c.SHA256)
		return n, &Error{Op: c.op, kind: ErrDigestMismatch, cause: cause}
	}
	return n, io.EOF
}

// Close ends the transfer, finished or not.
func (c *Content) Close() error {
	defer c.stop()
	return c.response.Body.Close()
}

// announcedDigest is the SHA-256, in hex, that an answer says its bytes have: in
// Repr-Digest (RFC 9530), else as the ETag.
func announcedDigest(header http.Header) (string, error) {
	for _, member := range strings.Split(strings.Join(header.Values("Repr-Digest"), ","), ",") {
		encoded, ok := strings.CutPrefix(strings.TrimSpace(member), "sha-256=:")
		if !ok {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, ":"))
		if err != nil || len(sum) != sha256.Size {
			return "", fmt.Errorf("the header Repr-Digest: %q is no SHA-256", member)
		}
		return hex.EncodeToString(sum), nil
	}
	tag := strings.Trim(header.Get("ETag"), `"`)
	if sum, err := hex.DecodeString(tag); err == nil && len(sum) == sha256.Size {
		return strings.ToLower(tag), nil
	}
	return "", errors.New("the answer does not say which digest its bytes have")
}
