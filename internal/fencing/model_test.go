package fencing_test

import "fmt"

// model is what one report must do, said as plainly as can be: without a database, without locks, in one
// epoch. Its answers are short texts, which the real ones are turned into as well.
type model struct {
	exists bool
	mode   string // granted, accepted or live
	once   bool   // one publish a grant

	granted, accepted, barred int64

	holding string // the id of the lease that stands in the report's row
	until   int    // in seconds of the model's clock
	leases  map[string]*record

	versions []ask
	keys     map[string]int // the version that a key made, from 1
}

// record is what is known of a lease id; fence 0: released before it was ever granted.
type record struct {
	holder string
	fence  int64
	end    string
}

// ask is a request to publish: an object of the fence, an older version, or nothing.
type ask struct {
	key      string
	fence    int64
	object   string
	from     int64
	expected int64 // -1: not said
	shows    string
}

const modelTTL = 60 // seconds

func newModel() *model {
	return &model{mode: "granted", leases: map[string]*record{}, keys: map[string]int{}}
}

func (m *model) live(now int) bool { return m.holding != "" && m.until > now }

func (m *model) end(reason string) {
	if m.holding != "" {
		m.leases[m.holding].end = reason
		m.holding = ""
	}
}

func (m *model) lost(id string) string {
	r := m.leases[id]
	reason := r.end
	if reason == "" || reason == "expired" {
		reason = "expired"
		if m.granted > r.fence {
			reason = "superseded"
		}
	}
	if m.holding == id {
		m.end(reason)
	}
	return "lost " + reason
}

func (m *model) acquire(id, holder string, now int) string {
	m.exists = true
	r, known := m.leases[id]
	switch {
	case known && (m.holding != id || !m.live(now)):
		return m.lost(id)
	case known && r.holder != holder:
		return "id reused"
	case known:
		return fmt.Sprintf("replayed %d", r.fence)
	case m.live(now):
		return "busy " + m.leases[m.holding].holder
	}
	m.end("superseded")
	m.granted++
	m.leases[id] = &record{holder: holder, fence: m.granted}
	m.holding, m.until = id, now+modelTTL
	return fmt.Sprintf("acquired %d at version %d", m.granted, len(m.versions))
}

func (m *model) renew(id string, now int) string {
	r, known := m.leases[id]
	switch {
	case !known:
		return "no lease"
	case m.holding != id || !m.live(now):
		return m.lost(id)
	}
	m.until = max(m.until, now+modelTTL)
	return fmt.Sprintf("renewed %d", r.fence)
}

func (m *model) release(id string, now int) string {
	m.exists = true
	r, known := m.leases[id]
	switch {
	case !known:
		m.leases[id] = &record{end: "released"}
		return "already released"
	case m.holding == id && m.live(now):
		m.end("released")
		return "released"
	case r.end == "released":
		return "already released"
	}
	return m.lost(id)
}

func (m *model) revoke(fence int64, now int) string {
	if !m.exists {
		return "no report"
	}
	if fence == 0 {
		fence = m.granted
	}
	if fence == 0 || fence > m.granted {
		return fmt.Sprintf("not granted, but %d", m.granted)
	}
	m.barred = max(m.barred, fence)
	if fence == m.granted && m.live(now) {
		m.end("revoked")
	} else if fence == m.granted {
		m.end("expired")
	}
	return fmt.Sprintf("revoked %d", fence)
}

func (m *model) publish(q ask, now int) string {
	if !m.exists {
		return "no report"
	}
	version := int64(len(m.versions))
	if n, applied := m.keys[q.key]; applied {
		before := m.versions[n-1]
		before.shows = ""
		if before != q {
			return "key reused"
		}
		return fmt.Sprintf("duplicate of %d, visible: %v", n, int64(n) == version)
	}
	if refusal := m.judge(q, version, now); refusal != "" {
		return refusal
	}
	switch {
	case q.from > version:
		return "no version"
	case q.from > 0 && m.versions[q.from-1].shows == "", q.object == "missing":
		return "no object"
	case q.from > 0:
		q.shows = m.versions[q.from-1].shows
	case q.object != "":
		q.shows = fmt.Sprintf("1.%d/%s", q.fence, q.object)
	}
	m.accepted = q.fence
	m.versions = append(m.versions, q)
	m.keys[q.key] = len(m.versions)
	return fmt.Sprintf("applied %d", len(m.versions))
}

// judge compares the fence and the version.
func (m *model) judge(q ask, version int64, now int) string {
	bar := m.granted
	if m.mode == "accepted" {
		bar = m.accepted
	}
	highest := max(bar, m.barred)
	switch {
	case q.fence < bar:
		return fmt.Sprintf("stale, superseded by %d", highest)
	case q.fence <= m.barred:
		return fmt.Sprintf("stale, revoked by %d", highest)
	case q.fence > m.granted:
		return fmt.Sprintf("not granted, but %d", m.granted)
	case m.mode == "live" && !m.live(now):
		return "lease not live"
	case q.fence == m.accepted && m.once:
		return "grant already used"
	case q.fence == m.accepted && q.expected < 0:
		return "expected version required"
	case q.expected >= 0 && q.expected != version:
		return fmt.Sprintf("conflict %d with %d", q.expected, version)
	}
	return ""
}
