package app

import (
	"fmt"
	"os"
	"path/filepath"
)

// socketPath is the socket's name, short enough for the system: a socket's address holds about a hundred bytes, a data
// folder may be deeper. The name works until done is called.
func socketPath(data string) (name string, done func(), err error) {
	name = filepath.Join(data, socketName)
	if len(name) < 100 {
		return name, func() {}, nil
	}
	dir, err := os.Open(data)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketName), func() { dir.Close() }, nil
}
