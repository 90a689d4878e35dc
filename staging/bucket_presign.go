package staging

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	// MaxUploadSize is the most that S3 takes in a single PUT: 5 GiB.
	MaxUploadSize int64 = 5 << 30

	// maxURLLife is the longest life that a signature of version 4 can have.
	maxURLLife = 7 * 24 * time.Hour
)

// PutDeclaration is what an uploader said in advance about its bytes. What is
// declared is signed, so that the storage refuses anything else.
type PutDeclaration struct {
	ContentType string // "": left to the uploader
	Size        *int64 // bytes; nil: not declared
	SHA256      string // hex; "": not declared
}

// Upload is a request that a client with no credentials may send, once, to put
// the bytes of one object.
type Upload struct {
	Method string
	URL    string
	// Headers must be sent as they stand, each of them: they are part of the
	// signature. A declared length is signed too but not listed, since clients
	// send that of their bytes by themselves; curl, told another one, would cut
	// the file off there, and the storage would take it.
	Headers   map[string]string
	ExpiresAt time.Time
}

// Download is a URL that a client with no credentials may GET (and only GET:
// the method is part of the signature).
type Download struct {
	URL       string
	ExpiresAt time.Time
}

// PresignPut signs the upload of key, valid for life (whole seconds, at most
// seven days) or until the credentials expire, whichever is sooner. It signs
// If-None-Match: *, so that the bytes of a key are written once, and what was
// declared. Nothing is sent: the only errors are of the declaration, of life,
// and ErrStorageUnavailable where there are no credentials.
func (b *Bucket) PresignPut(ctx context.Context, key string, declared PutDeclaration, life time.Duration) (Upload, error) {
	input, err := b.putInput(key, declared)
	if err != nil {
		return Upload{}, fmt.Errorf("presign upload of %q: %w", key, err)
	}
	signed, expiresAt, err := b.presign(ctx, life, func(opt func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error) {
		return b.presigner.PresignPutObject(ctx, input, opt)
	})
	if err != nil {
		return Upload{}, fmt.Errorf("presign upload of %q: %w", key, err)
	}
	return Upload{Method: signed.Method, URL: signed.URL, Headers: headersToSend(signed), ExpiresAt: expiresAt}, nil
}

// headersToSend are the signed headers that a client does not send by itself.
func headersToSend(signed *v4.PresignedHTTPRequest) map[string]string {
	headers := make(map[string]string, len(signed.SignedHeader))
	for name := range signed.SignedHeader {
		headers[name] = signed.SignedHeader.Get(name)
	}
	delete(headers, "Host") // part of the URL
	delete(headers, "Content-Length")
	return headers
}

func (b *Bucket) putInput(key string, declared PutDeclaration) (*s3.PutObjectInput, error) {
	input := &s3.PutObjectInput{
		Bucket:      aws.String(b.name),
		Key:         aws.String(key),
		IfNoneMatch: aws.String("*"),
	}
	if declared.ContentType != "" {
		input.ContentType = aws.String(declared.ContentType)
	}
	if size := declared.Size; size != nil {
		switch {
		case *size < 0 || *size > MaxUploadSize:
			return nil, fmt.Errorf("size %d is not between 0 and %d", *size, MaxUploadSize)
		case *size == 0:
			// A length of 0 is not signed; the digest of nothing says the same.
			input.ChecksumSHA256 = aws.String(emptyChecksum)
		default:
			input.ContentLength = size
		}
	}
	if declared.SHA256 != "" {
		checksum, err := checksumOf(declared.SHA256)
		if err != nil {
			return nil, err
		}
		input.ChecksumSHA256 = aws.String(checksum)
	}
	return input, nil
}

// PresignGet signs the download of key, valid as in PresignPut. versionID pins
// the bytes on a versioned bucket; elsewhere it is "", and the URL serves what
// is there. The storage is made to answer with contentType and, for a filename
// that is not "", to have it saved under that name.
func (b *Bucket) PresignGet(ctx context.Context, key, versionID, contentType, filename string, life time.Duration) (Download, error) {
	input := &s3.GetObjectInput{
		Bucket:              aws.String(b.name),
		Key:                 aws.String(key),
		VersionId:           optional(versionID),
		ResponseContentType: optional(contentType),
	}
	if filename != "" {
		input.ResponseContentDisposition = optional(
			mime.FormatMediaType("attachment", map[string]string{"filename": filename}))
	}
	signed, expiresAt, err := b.presign(ctx, life, func(opt func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error) {
		return b.presigner.PresignGetObject(ctx, input, opt)
	})
	if err != nil {
		return Download{}, fmt.Errorf("presign download of %q: %w", key, err)
	}
	return Download{URL: signed.URL, ExpiresAt: expiresAt}, nil
}

// presign has sign make a URL that lives for life, and tells when it ends: with
// the credentials that signed it, if they end sooner.
func (b *Bucket) presign(
	ctx context.Context,
	life time.Duration,
	sign func(func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error),
) (*v4.PresignedHTTPRequest, time.Time, error) {
	if life < time.Second || life > maxURLLife {
		return nil, time.Time{}, fmt.Errorf("life %v is not between %v and %v", life, time.Second, maxURLLife)
	}
	creds, err := b.credentials.Retrieve(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	signed, err := sign(func(o *s3.PresignOptions) {
		o.Expires = life.Truncate(time.Second)
		// The same credentials whose end is announced below.
		s3.WithPresignClientFromClientOptions(func(o *s3.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return creds, nil
			})
		})(o)
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	expiresAt, err := signedExpiry(signed.URL)
	if err != nil {
		return nil, time.Time{}, err
	}
	if creds.CanExpire && creds.Expires.Before(expiresAt) {
		expiresAt = creds.Expires.UTC()
	}
	return signed, expiresAt, nil
}

// signedExpiry reads from a presigned URL when the storage will refuse it.
func signedExpiry(signed string) (time.Time, error) {
	u, err := url.Parse(signed)
	if err != nil {
		return time.Time{}, err
	}
	signedAt, err := time.Parse("20060102T150405Z", u.Query().Get("X-Amz-Date"))
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.Atoi(u.Query().Get("X-Amz-Expires"))
	if err != nil {
		return time.Time{}, errors.New("the signed URL has no expiry")
	}
	return signedAt.Add(time.Duration(seconds) * time.Second), nil
}

// optional is nil for "", as the SDK wants what is left out.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
