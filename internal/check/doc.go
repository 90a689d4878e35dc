// Package check looks at a catalog's database and bucket, and says what in them breaks the guarantees
// G1–G6: not whether the service would do right, but whether what it has done is right. It reads the tables
// and the bytes themselves, asks none of the functions by which the service decides, and changes nothing. It
// may run beside a working service.
//
// Given a [History], what workers and readers wrote down of the answers that they got, it also says whether
// anything that was acknowledged is lost, and whether the answers fit together in real time.
package check
