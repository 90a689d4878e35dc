package collect

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// How the objects that are due are spread: like those of workers that stage some files under each grant, report after
// report, and publish none. What is due one after the other is therefore of many reports.
const (
	perGrant        = 50
	grantsPerReport = 5
	mostReports     = 4000
	// neverSealed is that one of so many is not sealed although it was uploaded.
	neverSealed = 4

	retention = 24 * time.Hour // of what is staged
	urlLife   = time.Hour
	// The objects were reserved from so long ago on, for so long.
	longAgo  = 30 * 24 * time.Hour
	duration = 20 * 24 * time.Hour
)

// Objects go by names that tell what is to become of them.
const (
	dueName       = "due-"
	keptName      = "kept-"
	publishedName = "published-"
	unknownName   = "unknown-"
	foreignName   = "foreign-"
)

// layout is how many grants and reports the objects are of.
type layout struct{ objects, grants, reports int }

func layoutOf(objects int) layout {
	grants := max(1, (objects+perGrant-1)/perGrant)
	return layout{objects, grants, min(max(1, grants/grantsPerReport), mostReports)}
}

// spot is where one object is.
type spot struct {
	report  string
	counter int64
	object  string
}

func (l layout) report(n int) string { return fmt.Sprintf("collected-%05d", n%l.reports) }

// due is the place of the n-th object that is due.
func (l layout) due(n int) spot {
	grant := n / perGrant
	return spot{l.report(grant), int64(grant/l.reports) + 1, fmt.Sprintf("%s%08d", dueName, n)}
}

// kept is the place of the object of a report that is not due yet; it is of a grant that has objects which are.
func (l layout) kept(report int) spot {
	return spot{l.report(report), 1, fmt.Sprintf("%s%05d", keptName, report)}
}

// sealed tells whether the n-th object was sealed.
func sealed(n int) bool { return n%neverSealed != neverSealed-1 }

// key is the place's key in the bucket.
func (s spot) key(prefix string, epoch int32) string {
	return fmt.Sprintf("%sreports/%s/%d.%d/%s", prefix, s.report, epoch, s.counter, s.object)
}

// unknown is the key of the n-th object that no row knows, half of them of reports that no row knows either.
func (l layout) unknown(n int, prefix string, epoch int32) string {
	s := spot{l.report(n), 1, fmt.Sprintf("%s%08d", unknownName, n)}
	if n%2 == 1 {
		s.report = fmt.Sprintf("lost-%05d", n/1000)
	}
	return s.key(prefix, epoch)
}

// foreign is the n-th key that is none of ours.
func foreign(n int, prefix string) string {
	folder := "archive"
	if n%2 == 1 {
		folder = prefix + "reports/archive"
	}
	return fmt.Sprintf("%s/%05d/%s%08d", folder, n/1000, foreignName, n)
}

// body is what is stored under a key, and its digest: no two are the same.
func body(key string) (content []byte, digest [sha256.Size]byte) {
	content = []byte("the bytes of " + key + "\n")
	return content, sha256.Sum256(content)
}
