package catalog

// LookEvery is how often changes are looked for, give or take a half.
const LookEvery = lookEvery

// MostWatching is how many may wait for changes.
const MostWatching = mostWatching
