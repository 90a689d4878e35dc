package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fenceline/fenceline/staging"
)

// The clock's skew that is worth a word, and the one beyond which storages refuse what this machine signs.
const (
	noticeableSkew = 30 * time.Second
	refusedSkew    = 15 * time.Minute
)

// check is one thing that the service needs of a storage: err is nil if it works.
type check struct {
	name    string
	try     func(context.Context) error
	worse   Result // where it does not work
	follows string // from that
	works   string // what is said where it works
}

// storage looks at the storage.
func (d *Doctor) storage(ctx context.Context) (findings []Finding) {
	probe := d.Bucket.NewProbe()
	reached := probe.Reach(ctx)
	findings = reachFindings(reached)
	if reached.Access != staging.AccessGranted {
		return findings
	}
	defer func() {
		findings = append(findings, found("storage", "cleaned up", probe.Close(ctx), Warning,
			"remove what is under <prefix>probe/ by hand", ""))
	}()
	// What is under way is brought to its end, also where ctx ends: else nobody knows what it has left behind.
	whole := context.WithoutCancel(ctx)
	versioning, settings := d.settingFindings(whole, probe)
	findings = append(findings, settings...)
	for _, c := range storageChecks(d.Bucket, probe, versioning) {
		if ctx.Err() != nil {
			break
		}
		findings = append(findings, found("storage", c.name, bounded(whole, c.try), c.worse, c.follows, c.works))
	}
	if ctx.Err() == nil {
		findings = append(findings, wrongDigest(whole, probe), publicURL(whole, probe))
		findings = append(findings, deleteFindings(whole, probe)...)
	}
	return findings
}

// checkTimeout bounds one check.
const checkTimeout = 30 * time.Second

func bounded(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return try(ctx)
}

// reachFindings say whether the storage answers, lets the service in, has the bucket, and has the same time.
func reachFindings(r staging.Reached) []Finding {
	reach := Finding{About: "storage", Check: "reachable, credentials, bucket", Result: OK, Detail: r.Server}
	if r.Access != staging.AccessGranted {
		reach.Result, reach.Detail = Failed, r.Err.Error()
		reach.Follows = map[staging.Access]string{
			staging.AccessAway:     "nothing else was tried: see --s3-endpoint, and whether the storage runs",
			staging.AccessRefused:  "nothing else was tried: see the credentials, and what they may do",
			staging.AccessNoBucket: "nothing else was tried: make the bucket, or see --bucket",
			staging.AccessSkewed:   "nothing else was tried: set this machine's clock",
		}[r.Access]
	}
	clock := Finding{About: "storage", Check: "clock", Result: OK, Detail: "the same as here"}
	if skew := r.Skew.Abs(); skew > 0 {
		clock.Detail = fmt.Sprintf("%v ahead of this machine", r.Skew)
		if r.Skew < 0 {
			clock.Detail = fmt.Sprintf("%v behind this machine", skew)
		}
		if skew >= noticeableSkew {
			clock.Result, clock.Follows = Warning, "URLs end that much earlier or later: set the clocks"
		}
		if skew >= refusedSkew {
			clock.Result, clock.Follows = Failed, "storages refuse what is signed so far off: set the clocks"
		}
	}
	if r.Access == staging.AccessAway {
		return []Finding{reach}
	}
	return []Finding{reach, clock}
}

// settingFindings say how the bucket is set.
func (d *Doctor) settingFindings(ctx context.Context, probe *staging.Probe) (staging.Versioning, []Finding) {
	versioning, err := probe.Versioning(ctx)
	versions := found("storage", "versioning", err, Failed,
		"every scan of the bucket fails: give the credentials s3:GetBucketVersioning, or set --gc-scan-every=off", string(versioning))
	if err != nil && d.NoScans {
		versions.Result, versions.Follows = Warning, "no scan of the bucket can be asked for: give the credentials s3:GetBucketVersioning"
	}
	switch versioning {
	case staging.VersioningEnabled:
		versions.Follows = "the version that was sealed is served, and deleted by its id; delete markers go too"
	case staging.VersioningSuspended:
		versions.Result = Warning
		versions.Follows = "versions from before are reclaimed where the catalog knows them or the collector's scan finds them: enable it again, or remove old versions"
	}
	locked, rule, err := probe.ObjectLock(ctx)
	lock := found("storage", "object lock", err, Warning, "it could not be seen: give the credentials s3:GetBucketObjectLockConfiguration", "none")
	if rule != "" {
		lock.Detail = rule
	}
	if locked {
		lock.Result, lock.Follows = Warning, "nothing can be deleted before its time: objects show as stuck until then"
	}
	rules, err := probe.Lifecycle(ctx)
	life := found("storage", "lifecycle rules", err, Warning, "they could not be seen: give the credentials s3:GetLifecycleConfiguration", "none that touch the objects")
	if len(rules) > 0 {
		life.Result, life.Detail = Failed, strings.Join(rules, ", ")
		life.Follows = "they delete or move what is visible: take <prefix>reports/ out of them"
	}
	return versioning, []Finding{versions, lock, life}
}

// storageChecks lists what works or does not.
func storageChecks(b *staging.Bucket, p *staging.Probe, versioning staging.Versioning) []check {
	const uploadsWrong = "workers cannot upload by the URLs that they are given"
	listVersions := check{"list of versions", p.Versions, Warning, "not needed without versions", ""}
	if versioning != staging.VersioningOff {
		listVersions.worse, listVersions.follows = Failed, "what is behind delete markers is never reclaimed: use a bucket without versions"
	}
	return []check{
		{"conditional create", b.ProbeConditionalCreate, Failed, "bytes can be written twice under a key; serve starts only with --s3-allow-overwrites", "one of 20 at once"},
		{"conditional completion of an upload in parts", p.CompletedOnce, Failed, "an upload in parts can replace what was sealed: do not use them", ""},
		{"upload by URL, size and digest declared", p.URLUpload, Failed, uploadsWrong, "1 MiB"},
		{"signed header left out is refused", p.LeftOutHeader, Failed, "a worker can overwrite what it has uploaded", ""},
		{"content type is kept", p.ContentType, Warning, "readers of download URLs get it all the same, by the URL", ""},
		{"If-Match on GET", p.IfMatch, Warning, "the service compares the ETag itself, of what comes", ""},
		{"Range on GET", p.Range, Failed, "parts of a report cannot be read", ""},
		{"SHA-256 on HEAD", p.Checksum, Warning, "sealing reads every object once to know its digest", ""},
		{"download by URL, type and name said in it", p.URLDownload, Warning, "readers get the type that was uploaded, and no name", ""},
		{"list in byte order", p.ByteOrder, Warning, "the collector's scan stops with an error, and what the catalog does not know stays", ""},
		{"list in pages of two", p.PagesOfTwo, Warning, "a scan of more than a page stops with an error", ""},
		listVersions,
		{"list and abort of unfinished uploads", p.UnfinishedUploads, Warning, "what is uploaded in parts and never finished is not reclaimed: do without uploads in parts, or have the storage do it", ""},
		{"names of 200 bytes", p.LongSegment, Warning, "reports and objects need shorter names", ""},
	}
}

// wrongDigest says what comes of bytes that do not have the digest that was declared.
func wrongDigest(ctx context.Context, p *staging.Probe) Finding {
	err := bounded(ctx, p.WrongDigest)
	f := found("storage", "wrong digest is refused", err, Warning, "it shows when the object is sealed, which reads it for that", "")
	if errors.Is(err, staging.ErrBelieves) {
		f.Result, f.Follows = Failed, "wrong bytes are taken for those that were declared"
	}
	return f
}

// publicURL says whether the address that workers and readers see works.
func publicURL(ctx context.Context, p *staging.Probe) Finding {
	err := bounded(ctx, p.PublicURL)
	f := found("storage", "address that workers see", err, Failed, "URLs are signed for it, and do not work: see --s3-public-endpoint", "")
	switch {
	case errors.Is(err, staging.ErrStorageUnavailable):
		f.Result, f.Follows = Warning, "it cannot be reached from here: see --s3-public-endpoint, and try a download from where workers are"
	case errors.Is(err, staging.ErrNoOverrides):
		f = found("storage", "address that workers see", nil, OK, "", "")
	}
	return f
}

// deleteFindings say which ways to delete there are, and which to set.
func deleteFindings(ctx context.Context, p *staging.Probe) (findings []Finding) {
	ways := []struct {
		way     staging.DeleteWay
		name    string
		missing string
	}{
		{staging.DeleteBatch, "delete of many, with CRC32", "delete of many, of what is not there"},
		{staging.DeleteMD5, "delete of many, with Content-MD5", ""},
		{staging.DeleteSingle, "delete of one", "delete of one, of what is not there"},
	}
	errs := map[staging.DeleteWay]error{}
	for _, w := range ways {
		errs[w.way] = bounded(ctx, func(ctx context.Context) error { return p.DeleteBy(ctx, w.way) })
	}
	for _, w := range ways {
		f := found("storage", w.name, errs[w.way], Warning, "", "")
		if f.Result != OK {
			f.Follows = deleteAdvice(w.way, errs)
		}
		if w.way == staging.DeleteMD5 && errs[staging.DeleteBatch] == nil {
			f.Result = OK // nobody needs it then
		}
		if errs[staging.DeleteBatch] != nil && errs[staging.DeleteMD5] != nil && errs[staging.DeleteSingle] != nil {
			f.Result, f.Follows = Failed, "nothing is ever reclaimed"
		}
		findings = append(findings, f)
		if w.missing != "" && errs[w.way] == nil {
			findings = append(findings, found("storage", w.missing, p.DeleteMissing(ctx, w.way), Warning,
				"objects whose bytes are gone already show as stuck: set another --s3-delete", ""))
		}
	}
	return findings
}

// deleteAdvice says what to set where a way does not work.
func deleteAdvice(way staging.DeleteWay, errs map[staging.DeleteWay]error) string {
	switch {
	case way == staging.DeleteBatch && errs[staging.DeleteMD5] == nil:
		return "set --s3-delete=md5"
	case way == staging.DeleteBatch:
		return "set --s3-delete=single"
	case way == staging.DeleteMD5 && errs[staging.DeleteBatch] == nil:
		return "not needed: the CRC32 is taken"
	case way == staging.DeleteMD5:
		return "do not set --s3-delete=md5"
	default:
		return "do not set --s3-delete=single; versions behind delete markers may stay"
	}
}
