package fencing

import "errors"

// ReportID names a report: [A-Za-z0-9][A-Za-z0-9._-]{0,199}, which is one segment of a URL and of a key.
type ReportID string

// LeaseID names one grant of a report: [A-Za-z0-9][A-Za-z0-9._-]{0,63}. Clients choose it.
type LeaseID string

// ObjectID names an object staged under one fence: [A-Za-z0-9][A-Za-z0-9._-]{0,127}. Clients choose it.
type ObjectID string

// ErrInvalidID reports that a text cannot be an id.
var ErrInvalidID = errors.New("an id begins with a letter or a digit and goes on with letters, digits, dots, underscores and hyphens")

// The longest ids, in bytes.
const (
	longestReportID = 200
	longestLeaseID  = 64
	longestObjectID = 128
)

// ParseReportID reads a report's id, or fails with ErrInvalidID.
func ParseReportID(text string) (ReportID, error) {
	return ReportID(text), checkID(text, longestReportID)
}

// ParseLeaseID reads a lease's id, or fails with ErrInvalidID.
func ParseLeaseID(text string) (LeaseID, error) { return LeaseID(text), checkID(text, longestLeaseID) }

// ParseObjectID reads an object's id, or fails with ErrInvalidID.
func ParseObjectID(text string) (ObjectID, error) {
	return ObjectID(text), checkID(text, longestObjectID)
}

func checkID(text string, longest int) error {
	if text == "" || len(text) > longest {
		return ErrInvalidID
	}
	for i := range len(text) {
		c := text[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '.' && c != '_' && c != '-') {
			return ErrInvalidID
		}
	}
	return nil
}

// ObjectName is the whole name of an object: which report it was staged for, and under which grant.
type ObjectName struct {
	Report ReportID
	Fence  Fence
	Object ObjectID
}

// ErrObjectNotFound reports that no such object was reserved under the fence, or that the version shows none.
var ErrObjectNotFound = errors.New("there is no such object")

// ErrObjectGone reports that an object was condemned, and cannot come back.
var ErrObjectGone = errors.New("the object is gone")
