// Package archtest holds the rules of the house as tests: who may import whom, how long a file may grow, and what no
// file may contain. They read the source, and run nothing of it.
package archtest
