//go:build !bindings

package app

// Generating is true in a build that only writes bindings.
const Generating = false
