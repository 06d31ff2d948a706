//go:build !desktop && !bindings

package app

import (
	"context"
	"errors"
)

// Available says whether this binary can open a window.
const Available = false

// Run opens the window and returns when the program is to end.
func Run(context.Context, Hub, Options) error {
	return errors.New("this build has no window: use the desktop build, or deskbell serve")
}
