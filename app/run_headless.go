//go:build !desktop && !bindings

package app

import (
	"context"
	"errors"
)

// Available says whether this binary can open a window.
const Available = false

// Check says what stands in the way of a window, before anything is opened for it.
func Check() error {
	return errors.New("this build has no window: use the desktop build, or deskbell serve")
}

// Run opens the window and returns when the program is to end.
func Run(context.Context, Hub, Options) error { return Check() }
