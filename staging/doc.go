// Package staging keeps the objects: what workers upload before it is published, and what readers get
// after it was.
//
// Bytes in a bucket cannot be fenced. So they are made immutable (a key names its grant, and is written
// once) and stay invisible until the catalog's fenced pointer names them. Every object is reserved in
// the database before a byte of it is uploaded, so that nothing that a crash leaves behind is unknown.
package staging
