//go:build bindings

package app

import (
	"context"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
)

// Available says whether this binary can open a window. This one only writes TypeScript for the Desktop methods: the
// Wails command line builds it so and runs main, which therefore calls Run before it touches anything.
const Available = false

// Generating is true in a build that only writes bindings.
const Generating = true

// Check finds nothing in the way.
func Check() error { return nil }

// Run writes the bindings.
func Run(context.Context, Hub, Options) error {
	return wails.Run(&options.App{Bind: []any{&Desktop{}}})
}
