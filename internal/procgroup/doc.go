// Package procgroup runs a command so that everything which comes of it can be found and ended: its process group, and on
// Linux also the processes that left the group or were orphaned.
//
// On Linux this process becomes the reaper of its orphaned descendants, so that each of them stays below it in the tree of
// processes, however often it has forked and whatever session it has made. Elsewhere the group alone is reached. The command
// itself is killed by the kernel, on Linux, when this process dies; its descendants are not.
//
// It waits for every child of this process. Children that were there before the command, such as a shell leaves to the program
// that it becomes, are left alone; but what they leave behind when they end comes to this process, and is taken for the
// command's.
package procgroup
