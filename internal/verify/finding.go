package verify

import "time"

// noted is a finding as note_verified takes it.
type noted struct {
	ReportID       string  `json:"report_id"`
	FenceEpoch     int32   `json:"fence_epoch"`
	FenceCounter   int64   `json:"fence_counter"`
	ObjectID       string  `json:"object_id"`
	Key            string  `json:"key"`
	Versions       []int64 `json:"versions"`
	Visible        bool    `json:"visible"`
	Fault          Fault   `json:"fault"`
	NeedsDeep      bool    `json:"needs_deep"`
	Detail         *string `json:"detail"`
	Size           int64   `json:"size"`
	SHA256         string  `json:"sha256"`
	ETag           string  `json:"etag"`
	VersionID      *string `json:"version_id"`
	FoundSize      *int64  `json:"found_size"`
	FoundSHA256    *string `json:"found_sha256"`
	FoundETag      *string `json:"found_etag"`
	FoundVersionID *string `json:"found_version_id"`
}

func (j judged) noted() noted {
	at, found := placeOf(j.object.Name), j.found()
	return noted{
		ReportID: at.Report, FenceEpoch: at.Epoch, FenceCounter: at.Counter, ObjectID: at.Object,
		Key: j.object.Key, Versions: j.object.Versions, Visible: j.object.Visible, Fault: j.seen.Fault, NeedsDeep: j.seen.Read,
		Detail: orNil(j.seen.Detail), Size: j.object.Size, SHA256: j.object.SHA256, ETag: j.object.ETag, VersionID: orNil(j.object.VersionID),
		FoundSize: found.Size, FoundSHA256: orNil(found.SHA256), FoundETag: orNil(found.ETag), FoundVersionID: orNil(found.VersionID),
	}
}

// found is what is there; empty where nothing was seen.
func (j judged) found() Stat {
	there := j.seen.Found
	if there.ETag == "" && there.Size == 0 {
		return Stat{}
	}
	return Stat{&there.Size, there.SHA256, there.ETag, there.VersionID}
}

func (j judged) finding(run int64) Finding {
	now := time.Now().UTC()
	return Finding{
		VerificationID: run, Object: j.object.Name, Key: j.object.Key, Versions: j.object.Versions, Visible: j.object.Visible,
		Fault: j.seen.Fault, Detail: j.seen.Detail, Found: j.found(), Present: true, FirstAt: now, FoundAt: now,
		Published: Stat{&j.object.Size, j.object.SHA256, j.object.ETag, j.object.VersionID},
	}
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
