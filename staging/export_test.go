package staging

// ReadLimit is readLimit, for tests.
var ReadLimit = readLimit
