package staging

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// DeleteWay is how a bucket's objects are deleted: storages differ in what they take.
type DeleteWay string

// The ways to delete.
const (
	// DeleteAuto is DeleteBatch, and DeleteSingle from then on once the storage has refused the form of the request.
	DeleteAuto DeleteWay = "auto"
	// DeleteBatch is DeleteObjects with a CRC32, as the SDK sends it.
	DeleteBatch DeleteWay = "batch"
	// DeleteMD5 is DeleteObjects with Content-MD5 and no newer checksum.
	DeleteMD5 DeleteWay = "md5"
	// DeleteSingle is DeleteObject, a request an object.
	DeleteSingle DeleteWay = "single"
)

// deletes is the way that is set, and whether it has been given up.
type deletes struct {
	set     DeleteWay
	log     *slog.Logger
	refused atomic.Bool
}

func (d *deletes) way() DeleteWay {
	if d.refused.Load() {
		return DeleteSingle
	}
	return d.set
}

// fallBack gives the way up for as long as the process lives.
func (d *deletes) fallBack(ctx context.Context, refusal error) {
	if d.refused.CompareAndSwap(false, true) {
		d.log.WarnContext(ctx, "the storage refuses to delete many objects in one request: from now on they are deleted one by one; "+
			"`fenceline doctor` finds out what --s3-delete should be", "error", refusal)
	}
}
