// Package build carries what the packaging and the window share.
package build

import _ "embed"

// Icon is the program's icon, a PNG.
//
//go:embed appicon.png
var Icon []byte
