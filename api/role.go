package api

import (
	"fmt"
	"slices"
)

// Role says what a key may do.
type Role string

// The roles, each of which may do all that the one before it may.
const (
	RoleReader   Role = "reader"   // resolves reports and reads their bytes
	RoleWorker   Role = "worker"   // takes leases, stages objects, publishes
	RoleOperator Role = "operator" // looks after the whole service
)

// Roles lists the roles from the least to the most.
func Roles() []Role { return []Role{RoleReader, RoleWorker, RoleOperator} }

// ParseRole checks a role that came from outside.
func ParseRole(s string) (Role, error) {
	if !slices.Contains(Roles(), Role(s)) {
		return "", fmt.Errorf("role %q: want reader, worker or operator", s)
	}
	return Role(s), nil
}

// Includes tells whether who has role r may do what needs the role needed.
func (r Role) Includes(needed Role) bool {
	has, needs := slices.Index(Roles(), r), slices.Index(Roles(), needed)
	return needs >= 0 && has >= needs
}
