package staging

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
)

// emptyChecksum is the SHA-256 of no bytes, as S3 writes it.
const emptyChecksum = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

// Digest reads the bytes of key once, as they come, and returns their SHA-256
// (hex) and their number. versionID and etag say which bytes, as in Open, and
// the errors are Open's. It takes as long as the storage takes to send them:
// bound it with ctx.
func (b *Bucket) Digest(ctx context.Context, key, versionID, etag string) (sum string, size int64, err error) {
	body, stat, err := b.Open(ctx, key, versionID, etag, Range{})
	if err != nil {
		return "", 0, fmt.Errorf("digest: %w", err)
	}
	defer body.Close()
	hash := sha256.New()
	size, err = io.Copy(hash, body)
	if err != nil {
		return "", 0, fmt.Errorf("digest %q: %w", key, err)
	}
	if size != stat.Size {
		return "", 0, fmt.Errorf("digest %q: %w: %d of %d bytes came", key, ErrStorageUnavailable, size, stat.Size)
	}
	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// checksumOf turns a SHA-256 in hex into the base64 that S3 speaks.
func checksumOf(sum string) (string, error) {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%q is not a SHA-256 of %d hex digits", sum, 2*sha256.Size)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// sumOf turns S3's base64 of a SHA-256 into hex, or into "" if it is none.
func sumOf(checksum string) string {
	raw, err := base64.StdEncoding.DecodeString(checksum)
	if err != nil || len(raw) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(raw)
}
