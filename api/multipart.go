package api

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/fenceline/fenceline/staging"
)

// inParts declares that an object is uploaded in parts.
type inParts struct {
	PartSize int64 `json:"part_size"`
}

// check is of the declared size too, from which the number of parts follows.
func (m inParts) check(size *int64) error {
	const member = "multipart.part_size"
	switch {
	case m.PartSize < staging.MinPartSize || m.PartSize > staging.MaxPartSize:
		return invalid(member, "part_size must be from 5242880 (5 MiB) to 5368709120 bytes (5 GiB).")
	case size == nil:
		return invalid("size", "size must be declared of an object that is uploaded in parts.")
	case *size < 1 || *size > staging.MaxObjectSize:
		return invalid("size", "size must be from 1 to 5497558138880 bytes (5 TiB), the most that an upload in parts takes.")
	case *size > staging.MaxParts*m.PartSize:
		return invalid(member, fmt.Sprintf("There would be more than %d parts: choose a greater part_size.", staging.MaxParts))
	}
	return nil
}

var partsQuery = regexp.MustCompile(`^([1-9][0-9]{0,4})-([1-9][0-9]{0,4})$`)

// parsePartRange reads `1001-2000`, the parts of d whose URLs are wanted.
func parsePartRange(text string, d staging.Declaration) (staging.PartRange, error) {
	if text == "" {
		return staging.PartRange{}, nil
	}
	found := partsQuery.FindStringSubmatch(text)
	if found == nil {
		return staging.PartRange{}, invalid("parts", "parts must be the first and the last of the parts that are wanted, such as 1001-2000.")
	}
	var wanted staging.PartRange
	wanted.First, _ = strconv.Atoi(found[1]) // at most five digits
	wanted.Last, _ = strconv.Atoi(found[2])
	switch {
	case d.PartSize == 0:
		return wanted, invalid("parts", "The object is not declared to be uploaded in parts.")
	case wanted.Last < wanted.First || wanted.Last-wanted.First >= staging.MaxPartURLs:
		return wanted, invalid("parts", fmt.Sprintf("parts must be 1 to %d parts, the first of them first.", staging.MaxPartURLs))
	case wanted.First > d.PartCount():
		return wanted, invalid("parts", fmt.Sprintf("The object has %d parts.", d.PartCount()))
	}
	return wanted, nil
}

// uploadView is the right to upload an object as a whole.
type uploadView struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt time.Time         `json:"expires_at"`
}

// partsView is the right to upload some of the parts of an object.
type partsView struct {
	Parts     []partView `json:"parts"`
	PartSize  int64      `json:"part_size"`
	PartCount int        `json:"part_count"`
	ExpiresAt time.Time  `json:"expires_at"` // of the one that ends first
}

type partView struct {
	Number  int32             `json:"number"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// viewUpload is what a worker is told of how to upload.
func viewUpload(r staging.Reservation, d staging.Declaration) any {
	if d.PartSize == 0 {
		return uploadView{r.Upload.Method, r.Upload.URL, r.Upload.Headers, r.Upload.ExpiresAt}
	}
	v := partsView{PartSize: d.PartSize, PartCount: d.PartCount()}
	for i, p := range r.Parts {
		if i == 0 || p.ExpiresAt.Before(v.ExpiresAt) {
			v.ExpiresAt = p.ExpiresAt
		}
		v.Parts = append(v.Parts, partView{p.Number, p.Method, p.URL, p.Headers})
	}
	return v
}

// sealRequest names the parts of an object that was uploaded in parts.
type sealRequest struct {
	Parts []struct {
		Number int32  `json:"number"`
		ETag   string `json:"etag"`
	} `json:"parts"`
}

func (r sealRequest) check() ([]staging.Part, error) {
	if len(r.Parts) > staging.MaxParts {
		return nil, invalid("parts", fmt.Sprintf("There are at most %d parts.", staging.MaxParts))
	}
	named := map[int32]bool{}
	parts := make([]staging.Part, len(r.Parts))
	for i, p := range r.Parts {
		switch {
		case p.Number < 1 || p.Number > staging.MaxParts:
			return nil, invalid("parts", fmt.Sprintf("The parts are numbered from 1 to %d.", staging.MaxParts))
		case named[p.Number]:
			return nil, invalid("parts", fmt.Sprintf("Part %d appears more than once.", p.Number))
		case p.ETag == "":
			return nil, invalid("parts", fmt.Sprintf("Part %d has no etag: it is in the storage's answer to its upload.", p.Number))
		}
		named[p.Number] = true
		parts[i] = staging.Part{Number: p.Number, ETag: p.ETag}
	}
	return parts, nil
}
