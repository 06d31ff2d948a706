// Package frontend carries the built inbox page, so that one binary is the whole program.
package frontend

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Dist is the built page: index.html and its assets. Before the first `make build` it is empty but for a placeholder.
func Dist() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // "dist" is a constant and a valid path: fs.Sub cannot fail on it
	}
	return sub
}
