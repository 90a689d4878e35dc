// Package gc is the collector: it removes the bytes that no reader can reach any more, once their retention
// has ended, and nothing else.
//
// One pass is up to four phases, the classic mark and sweep made safe against publishes that go on meanwhile:
//
//	condemn  objects that are due, judged under the locks of their reports; it is final, and whoever
//	         publishes the object afterwards is refused
//	purge    the bytes of what was condemned long enough ago, and mark the rows
//	forget   rows that nothing can refer to any more
//	scan     compare the bucket with the rows: what no row knows is recorded, and what came back is removed
//
// Each phase works in batches and keeps its progress in the database, so that a pass that dies at any point
// is taken up by the next one.
//
// The work is a pass; what is written down of it, and has an id, is its run.
package gc
