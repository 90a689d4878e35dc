// Package lease is the grant authority: it admits one worker at a time to a report, for a bounded time by
// the database's clock, and gives each grant a greater fence than all before it.
//
// A lease controls admission and nothing else. It cannot stop a process that was paused and wakes after
// its time; the fence does, where the work is published. See Gray and Cheriton, "Leases" (SOSP 1989), for
// the one, and Kleppmann, "How to do distributed locking" (2016), for the other.
//
// The package also keeps the epochs: the first half of every fence, which rises whenever the database is
// not provably the one that granted the fences before.
package lease
