package staging

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fenceline/fenceline/internal/fencing"
)

// Layout is where the objects of one deployment are in its bucket: "<prefix>reports/<report>/<fence>/<object id>", and
// nothing else of what is there.
type Layout struct {
	// Prefix begins every key.
	Prefix string
}

// Root is what the keys of all objects begin with.
func (l Layout) Root() string { return l.Prefix + "reports/" }

// End is the least text that is above every key under Root.
func (l Layout) End() string { return l.Prefix + "reports0" }

// Name reads the name of the object whose key it is; ours tells whether it is any's.
func (l Layout) Name(key string) (name fencing.ObjectName, ours bool) {
	rest, under := strings.CutPrefix(key, l.Root())
	parts := strings.Split(rest, "/")
	if !under || len(parts) != 3 {
		return fencing.ObjectName{}, false
	}
	report, err1 := fencing.ParseReportID(parts[0])
	fence, err2 := fencing.ParseFence(parts[1])
	object, err3 := fencing.ParseObjectID(parts[2])
	if err1 != nil || err2 != nil || err3 != nil {
		return fencing.ObjectName{}, false
	}
	return fencing.ObjectName{Report: report, Fence: fence, Object: object}, true
}

// amongObjects is a prefix under which another deployment keeps the objects of one grant.
var amongObjects = regexp.MustCompile(`reports/[A-Za-z0-9][A-Za-z0-9._-]*/[1-9][0-9]*\.[1-9][0-9]*/`)

// apart refuses a prefix whose own keys another deployment of the bucket would take for objects that it does not know.
func (l Layout) apart() error {
	if amongObjects.MatchString(l.Prefix) {
		return fmt.Errorf("prefix %q is where another deployment would keep objects", l.Prefix)
	}
	return nil
}
