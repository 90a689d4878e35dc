package catalog_test

import (
	"fmt"

	"github.com/fenceline/fenceline/catalog"
	"github.com/fenceline/fenceline/internal/fencing"
)

// keepingModel is which bytes of one report must be there, and which must go, said as plainly as can be. Its time is in
// hours.
type keepingModel struct {
	now, grace int
	versions   []shown
	objects    map[fencing.ObjectID]*kept

	keep, retention               *int // the report's own
	defaultKeep, defaultRetention int
	frozen                        bool
}

// shown is what a version shows; no object: it is a withdrawal.
type shown struct {
	object       fencing.ObjectID
	held, erased bool
}

// kept is an object that was published.
type kept struct {
	state  string
	reason string // of its condemnation
	unkept int    // since when nothing keeps it; -1: something does
	purge  int
}

func (m *keepingModel) kept() int {
	if m.keep != nil {
		return *m.keep
	}
	return m.defaultKeep
}

func (m *keepingModel) retained() int {
	if m.retention != nil {
		return *m.retention
	}
	return m.defaultRetention
}

// why tells what keeps an object without limit.
func (m *keepingModel) why(id fencing.ObjectID) string {
	newest := len(m.versions) - 1
	if m.versions[newest].object == id {
		return "visible"
	}
	for _, v := range m.versions {
		if v.object == id && v.held {
			return "held"
		}
	}
	left := m.kept()
	for n := newest - 1; n >= 0 && left > 0; n-- {
		if m.versions[n].object == id {
			return "kept_version"
		}
		if m.versions[n].object != "" {
			left--
		}
	}
	return ""
}

// settle notes which objects something keeps, and when the last reason has ended.
func (m *keepingModel) settle() {
	for id, o := range m.objects {
		switch {
		case o.state != "sealed":
		case m.why(id) != "":
			o.unkept = -1
		case o.unkept < 0:
			o.unkept = m.now
		}
	}
}

// push adds a version.
func (m *keepingModel) push(id fencing.ObjectID) {
	m.versions = append(m.versions, shown{object: id})
	m.settle()
}

// stands tells of an object what the product must tell.
func (m *keepingModel) stands(id fencing.ObjectID) string {
	o := m.objects[id]
	switch {
	case o.state != "sealed":
		return o.state + " " + o.reason
	case m.why(id) != "":
		return "kept " + m.why(id)
	case o.unkept+m.retained() > m.now:
		return "kept within_retention"
	case m.frozen:
		return "kept frozen"
	}
	return "due superseded"
}

func (m *keepingModel) collect() {
	for id, o := range m.objects {
		if m.stands(id) == "due superseded" {
			*o = kept{state: "condemned", reason: "superseded", purge: m.now + m.grace}
		}
		if o.state == "condemned" && o.purge <= m.now && !m.frozen {
			o.state = "deleted"
		}
	}
}

// find is the version that an operation names, or why there is none that it can do anything with.
func (m *keepingModel) find(version int64) (*shown, error) {
	switch {
	case m.frozen:
		return nil, fencing.ErrFrozen
	case version > int64(len(m.versions)):
		return nil, catalog.ErrVersionNotFound
	case m.versions[version-1].object == "":
		return nil, fencing.ErrObjectNotFound
	}
	return &m.versions[version-1], nil
}

// show publishes an object, or nothing.
func (m *keepingModel) show(id fencing.ObjectID) error {
	if m.frozen {
		return fencing.ErrFrozen
	}
	if id != "" && m.objects[id] == nil {
		m.objects[id] = &kept{state: "sealed", unkept: -1}
	}
	m.push(id)
	return nil
}

func (m *keepingModel) rollBack(version int64) error {
	v, err := m.find(version)
	switch {
	case err != nil:
		return err
	case m.objects[v.object].state != "sealed":
		return fencing.ErrObjectGone
	}
	m.push(v.object)
	return nil
}

func (m *keepingModel) hold(version int64, hold bool) error {
	v, err := m.find(version)
	switch {
	case err != nil:
		return err
	case hold && m.objects[v.object].state != "sealed":
		return fencing.ErrObjectGone
	}
	v.held = hold
	m.settle()
	return nil
}

func (m *keepingModel) erase(version int64) error {
	v, err := m.find(version)
	switch {
	case err != nil:
		return err
	case v.erased:
		return nil
	case m.objects[v.object].state != "sealed":
		return fencing.ErrObjectGone
	case m.why(v.object) == "visible" || m.why(v.object) == "held":
		return catalog.ErrVersionInUse
	}
	id := v.object
	*m.objects[id] = kept{state: "condemned", reason: "erased", purge: m.now + m.grace}
	for n := range m.versions {
		if m.versions[n].object == id {
			m.versions[n].erased = true
		}
	}
	return nil
}

// String is what a version shows, and what was done with it.
func (v shown) String() string {
	return fmt.Sprintf("%q held %v erased %v", v.object, v.held, v.erased)
}
