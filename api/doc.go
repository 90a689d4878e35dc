// Package api is the HTTP surface of Fenceline: it authenticates a request,
// decodes it strictly, makes one call into a domain package and encodes the
// answer. It decides nothing about leases, fences or publications.
//
// A [Server] is assembled from a table of routes. Every route says which role
// it needs, whether it changes anything and whether it streams, and from that
// the server derives authentication, time limits and the `outcome` of its
// errors, so that no handler can forget them.
//
// Errors leave as problem documents (RFC 9457). Which error becomes which
// status and code is written down in one place, errors.go; what is not listed
// there is a 500 whose reason is logged and never sent.
package api
