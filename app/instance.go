package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// One window for one data folder. The hub's lock on the folder decides who is first; whoever finds it taken hands what it
// was asked to do to the window that runs, over window.sock beside the lock. Wails has a lock of its own, but it is taken
// only inside wails.Run, when the database and the port would already be open, and on Linux there is none without D-Bus.

const socketName = "window.sock"

// ErrNoWindow means that no window answers for this data folder.
var ErrNoWindow = errors.New("no window runs on this data folder")

// message is what a second start says.
type message struct {
	Open string `json:"open"` // an item's id, or nothing: just come to the front
}

// HandOver asks the window that runs on the data folder to come to the front and, if link names an item, to open it. It
// waits a moment for one that is just starting. ErrNoWindow means that there is none.
func HandOver(ctx context.Context, data, link string) error {
	item, err := ParseLink(link)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for {
		err := handOver(ctx, data, message{Open: item})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ErrNoWindow, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func handOver(ctx context.Context, data string, m message) error {
	name, done, err := socketPath(data)
	if err != nil {
		return err
	}
	defer done()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", name)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if err := json.NewEncoder(conn).Encode(m); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != "ok\n" {
		err = errors.New("the running window refused: " + answer)
	}
	return err
}

// listen takes what second starts hand over and passes it to show, until stop is called. The caller holds the folder's
// lock from before listen to after stop, so a socket that is there already is a leftover.
func listen(data string, show func(item string)) (stop func(), err error) {
	socket := filepath.Join(data, socketName)
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	name, done, err := socketPath(data)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: name})
	done()
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the name it knows may have been a short-lived one
	stop = func() {
		os.Remove(socket)
		l.Close()
	}
	// The folder is 0700; this is for one that is not.
	if err := os.Chmod(socket, 0o600); err != nil {
		stop()
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answer(conn, show)
		}
	}()
	return stop, nil
}

func answer(conn net.Conn, show func(item string)) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	var m message
	if err := json.NewDecoder(io.LimitReader(conn, 4096)).Decode(&m); err != nil {
		return
	}
	item, err := ParseLink(m.Open)
	if err != nil {
		_, _ = conn.Write([]byte("not an item\n"))
		return
	}
	show(item)
	_, _ = conn.Write([]byte("ok\n"))
}
