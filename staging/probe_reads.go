package staging

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// readable writes ten bytes for the probes that read, with a type and a digest, and returns their key.
func (p *Probe) readable(ctx context.Context, name string) (key string, digest string, err error) {
	const body = "0123456789"
	sum := sha256.Sum256([]byte(body))
	key = p.key(name)
	_, err = p.bucket.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(p.bucket.name), Key: aws.String(key), Body: strings.NewReader(body), ContentType: aws.String(probeType),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
	})
	return key, hex.EncodeToString(sum[:]), storageError(err)
}

// ContentType finds out whether bytes keep the type that they were uploaded with.
func (p *Probe) ContentType(ctx context.Context) error {
	key, _, err := p.readable(ctx, "type")
	if err != nil {
		return err
	}
	out, err := p.bucket.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String(p.bucket.name), Key: aws.String(key)})
	if err == nil && aws.ToString(out.ContentType) != probeType {
		return fmt.Errorf("%q came back as %q", probeType, aws.ToString(out.ContentType))
	}
	return storageError(err)
}

// Checksum finds out whether the storage vouches for the SHA-256 that bytes were uploaded with.
func (p *Probe) Checksum(ctx context.Context) error {
	key, digest, err := p.readable(ctx, "checksum")
	if err != nil {
		return err
	}
	stat, err := p.bucket.Head(ctx, key, "")
	switch {
	case err == nil && stat.SHA256 == "":
		return errors.New("it gives none, or not one of the whole")
	case err == nil && stat.SHA256 != digest:
		return errors.New("it gives another than the bytes have")
	}
	return err
}

// IfMatch reads with another ETag than the bytes have. It is nil if the storage refuses.
func (p *Probe) IfMatch(ctx context.Context) error {
	key, _, err := p.readable(ctx, "match")
	if err != nil {
		return err
	}
	out, err := p.bucket.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(p.bucket.name), Key: aws.String(key), IfMatch: aws.String(`"0123456789abcdef0123456789abcdef"`),
	})
	if err == nil {
		return errors.Join(errors.New("it sends bytes whose ETag is another than was demanded"), out.Body.Close())
	}
	if err = storageError(err); errors.Is(err, ErrBytesChanged) {
		return nil
	}
	return err
}

// Range reads a part of some bytes.
func (p *Probe) Range(ctx context.Context) error {
	key, _, err := p.readable(ctx, "range")
	if err != nil {
		return err
	}
	out, err := p.bucket.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(p.bucket.name), Key: aws.String(key), Range: Range{Offset: 2, Length: 3}.header(),
	})
	if err != nil {
		return storageError(err)
	}
	defer out.Body.Close()
	got, err := io.ReadAll(io.LimitReader(out.Body, 100))
	if err == nil && (string(got) != "234" || wholeSize(out) != 10) {
		err = fmt.Errorf("%q of %d bytes came where %q of 10 was asked for", got, wholeSize(out), "234")
	}
	return err
}

// URLDownload downloads by a URL that says under which name and as what the bytes are to be saved.
func (p *Probe) URLDownload(ctx context.Context) error { return p.download(ctx, p.inside, "download") }

// PublicURL downloads by a URL for the address that workers and readers see. ErrStorageUnavailable if this machine does
// not get there.
func (p *Probe) PublicURL(ctx context.Context) error { return p.download(ctx, p.bucket, "public") }

func (p *Probe) download(ctx context.Context, signer *Bucket, name string) error {
	key, _, err := p.readable(ctx, name)
	if err != nil {
		return err
	}
	d, err := signer.PresignGet(ctx, key, "", "text/csv", "july.csv", probeURLLife)
	if err != nil {
		return err
	}
	status, header, answer, err := p.send(ctx, http.MethodGet, d.URL, nil, nil)
	switch {
	case err != nil:
		return err
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: it answered %s", ErrStorageUnavailable, refusal(status, answer))
	case status != http.StatusOK:
		return fmt.Errorf("it answered %s", refusal(status, answer))
	case string(answer) != "0123456789":
		return errors.New("other bytes came than were stored")
	case header.Get("Content-Type") != "text/csv", !strings.Contains(header.Get("Content-Disposition"), "july.csv"):
		return fmt.Errorf("%w: %q, %q", ErrNoOverrides, header.Get("Content-Type"), header.Get("Content-Disposition"))
	}
	return nil
}

// ErrNoOverrides reports that the storage sends another type or name than the URL says.
var ErrNoOverrides = errors.New("the type and name that the URL says are not those that came")
