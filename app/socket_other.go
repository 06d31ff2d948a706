//go:build !linux

package app

import "path/filepath"

// socketPath is the socket's name. Where it is too long for the system, listening fails with that message and a second
// start finds no window.
func socketPath(data string) (name string, done func(), err error) {
	return filepath.Join(data, socketName), func() {}, nil
}
