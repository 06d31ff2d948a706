// Package dbus shows notifications through the desktop's own service, org.freedesktop.Notifications.
//
// It never makes a bus come into being: without the address of a session bus (in the environment, or the socket where
// the user's bus lives) there is none, and Available says so. Nothing here takes longer than a few seconds, whatever the
// bus or the service do.
package dbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	bus "github.com/godbus/dbus/v5"

	"deskbell/backend/notify"
)

const (
	service  = "org.freedesktop.Notifications"
	path     = "/org/freedesktop/Notifications"
	patience = 2 * time.Second // for the bus and the service, each time

	closedByCall = 3 // NotificationClosed: CloseNotification was called
)

// Options say who sends and what a click does.
type Options struct {
	App     string                            // the name shown
	Icon    string                            // a name from the icon theme, or a file
	Desktop string                            // the .desktop file, without its suffix
	Open    func(item string)                 // a note was clicked; item is empty for one that stands for many
	Closed  func(id string, byThePerson bool) // optional: a note is gone
	Getenv  func(string) string               // nil: os.Getenv
	Stat    func(string) (os.FileInfo, error) // nil: os.Stat
}

// Sender shows notes on the desktop. It connects when first needed, and again after the bus or the service went away.
type Sender struct {
	opts Options

	mu     sync.Mutex
	conn   *bus.Conn
	owner  string            // the service's unique name: signals count only when they come from it
	markup bool              // the service reads markup in a body
	ids    map[string]uint32 // our ID to the service's
	notes  map[uint32]notify.Note
}

// New returns a sender; it connects to nothing yet.
func New(opts Options) *Sender {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.Stat == nil {
		opts.Stat = os.Stat
	}
	return &Sender{opts: opts, ids: map[string]uint32{}, notes: map[uint32]notify.Note{}}
}

// Available says whether notes can be shown now, and if not, why.
func (s *Sender) Available() (ok bool, reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return false, err.Error()
	}
	return true, ""
}

// Send shows a note, in the place of the one that was sent under the same ID.
func (s *Sender) Send(ctx context.Context, n notify.Note) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	body := n.Body
	if s.markup {
		body = notify.Escape(body)
	}
	hints := map[string]bus.Variant{
		"urgency":  bus.MakeVariant(byte(1)),
		"category": bus.MakeVariant("im.received"),
	}
	if n.Urgent {
		hints["urgency"] = bus.MakeVariant(byte(2))
	}
	if n.Silent {
		hints["suppress-sound"] = bus.MakeVariant(true)
	}
	if s.opts.Desktop != "" {
		hints["desktop-entry"] = bus.MakeVariant(s.opts.Desktop)
	}
	var id uint32
	err := s.conn.Object(service, path).CallWithContext(ctx, service+".Notify", 0,
		s.opts.App, s.ids[n.ID], s.opts.Icon, n.Title, body, []string{"default", "Open"}, hints, int32(-1)).Store(&id)
	if err != nil {
		return s.failed(err)
	}
	if old, ok := s.ids[n.ID]; ok {
		delete(s.notes, old)
	}
	s.ids[n.ID], s.notes[id] = id, n
	return nil
}

// Withdraw takes a note back; it is no error if it is not shown.
func (s *Sender) Withdraw(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	nid, ok := s.ids[id]
	if !ok || s.conn == nil {
		return nil
	}
	delete(s.ids, id)
	delete(s.notes, nid)
	err := s.conn.Object(service, path).CallWithContext(ctx, service+".CloseNotification", 0, nid).Err
	var fault bus.Error
	if errors.As(err, &fault) && !gone(fault) {
		return nil // the service answered: it knows no such note, which is what was wanted
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

// Close lets go of the bus. What is shown stays.
func (s *Sender) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
}

// ready makes sure that there is a bus and a service on it. The caller holds the lock.
func (s *Sender) ready(ctx context.Context) error {
	if s.conn != nil && !s.conn.Connected() {
		s.forget()
	}
	if s.conn == nil {
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	if s.owner != "" {
		return nil
	}
	// Not running: it may be one that the bus starts at the first call.
	daemon := s.conn.BusObject()
	err := daemon.CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, service).Store(&s.owner)
	if err != nil {
		if err := daemon.CallWithContext(ctx, "org.freedesktop.DBus.StartServiceByName", 0, service, uint32(0)).Err; err != nil {
			return s.failed(err)
		}
		if err := daemon.CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, service).Store(&s.owner); err != nil {
			return s.failed(err)
		}
	}
	var caps []string
	if err := s.conn.Object(service, path).CallWithContext(ctx, service+".GetCapabilities", 0).Store(&caps); err != nil {
		s.owner = ""
		return s.failed(err)
	}
	s.markup = false
	for _, c := range caps {
		s.markup = s.markup || c == "body-markup"
	}
	return nil
}

// failed turns an error of the bus into one that a person can read.
func (s *Sender) failed(err error) error {
	var fault bus.Error
	switch {
	case errors.As(err, &fault) && gone(fault):
		s.owner = ""
		return fmt.Errorf("%w: nothing on this desktop shows notifications", notify.ErrUnavailable)
	case errors.As(err, &fault):
		return fmt.Errorf("the notification service refused: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: it does not answer", notify.ErrUnavailable)
	case errors.Is(err, bus.ErrClosed):
		s.forget()
	}
	return fmt.Errorf("%w: %w", notify.ErrUnavailable, err)
}

func gone(fault bus.Error) bool {
	switch fault.Name {
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected":
		return true
	}
	return strings.HasPrefix(fault.Name, "org.freedesktop.DBus.Error.Spawn.")
}

// connect joins the session bus, or gives up in time. The caller holds the lock.
func (s *Sender) connect(ctx context.Context) error {
	addr := SessionBus(s.opts.Getenv, s.opts.Stat)
	if addr == "" {
		return fmt.Errorf("%w: there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)", notify.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type result struct {
		conn *bus.Conn
		err  error
	}
	done := make(chan result, 1)
	signals := make(chan *bus.Signal, 32)
	go func() {
		conn, err := bus.Dial(addr, bus.WithSignalHandler(bus.NewSequentialSignalHandler()))
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() }) // the handshake itself knows no deadline
			conn.Signal(signals)
			err = handshake(ctx, conn)
			if !stop() && err == nil {
				err = ctx.Err()
			}
			if err != nil {
				conn.Close()
			}
		}
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return fmt.Errorf("%w: the session bus does not take us: %w", notify.ErrUnavailable, r.err)
		}
		s.conn = r.conn
	case <-ctx.Done():
		return fmt.Errorf("%w: the session bus does not answer", notify.ErrUnavailable)
	}
	go s.listen(signals)
	return nil
}

func handshake(ctx context.Context, conn *bus.Conn) error {
	if err := conn.Auth(nil); err != nil {
		return err
	}
	if err := conn.Hello(); err != nil {
		return err
	}
	if err := conn.AddMatchSignalContext(ctx, bus.WithMatchInterface(service), bus.WithMatchObjectPath(path)); err != nil {
		return err
	}
	return conn.AddMatchSignalContext(ctx, bus.WithMatchInterface("org.freedesktop.DBus"),
		bus.WithMatchMember("NameOwnerChanged"), bus.WithMatchArg(0, service))
}

// SessionBus is where the session bus is, or nothing. The library would start a stray one when asked for its default.
func SessionBus(getenv func(string) string, stat func(string) (os.FileInfo, error)) string {
	addr := getenv("DBUS_SESSION_BUS_ADDRESS")
	if strings.HasPrefix(addr, "autolaunch:") || strings.HasPrefix(addr, "launchd:") {
		return ""
	}
	if addr != "" {
		return addr
	}
	dir := getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	socket := filepath.Join(dir, "bus")
	if info, err := stat(socket); err != nil || info.Mode()&os.ModeSocket == 0 {
		return ""
	}
	return "unix:path=" + socket
}

// listen handles what the service tells until the connection ends.
func (s *Sender) listen(signals <-chan *bus.Signal) {
	for sig := range signals {
		switch sig.Name {
		case "org.freedesktop.DBus.NameOwnerChanged":
			var name, was, is string
			if sig.Sender == "org.freedesktop.DBus" && bus.Store(sig.Body, &name, &was, &is) == nil && name == service {
				s.changed(is)
			}
		case service + ".ActionInvoked":
			var id uint32
			var action string
			if bus.Store(sig.Body, &id, &action) == nil && action == "default" {
				if n, ok := s.note(sig.Sender, id, false); ok && s.opts.Open != nil {
					s.opts.Open(n.Item)
				}
			}
		case service + ".NotificationClosed":
			var id, reason uint32
			if bus.Store(sig.Body, &id, &reason) == nil {
				if n, ok := s.note(sig.Sender, id, true); ok && s.opts.Closed != nil && reason != closedByCall {
					s.opts.Closed(n.ID, reason == 2)
				}
			}
		}
	}
}

// changed: the service went away or another took its place; the numbers it gave mean nothing to the next.
func (s *Sender) changed(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner != s.owner {
		s.owner = "" // asked for anew, with its capabilities, when next needed
		clear(s.ids)
		clear(s.notes)
	}
}

// note finds the note that a signal is about, and forgets it if it is gone.
func (s *Sender) note(sender string, id uint32, forget bool) (notify.Note, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.notes[id]
	if !ok || sender != s.owner {
		return n, false
	}
	if forget {
		delete(s.notes, id)
		if s.ids[n.ID] == id {
			delete(s.ids, n.ID)
		}
	}
	return n, true
}

// forget drops the connection and all that depended on it. The caller holds the lock.
func (s *Sender) forget() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.conn, s.owner = nil, ""
	clear(s.ids)
	clear(s.notes)
}
