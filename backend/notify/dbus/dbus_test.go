package dbus

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bus "github.com/godbus/dbus/v5"

	"deskbell/backend/notify"
)

// startBus runs a private message bus for one test and returns its address.
func startBus(t *testing.T) string {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("dbus-daemon is not installed: nothing to talk to")
	}
	dir, err := os.MkdirTemp("", "bus") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd := exec.Command(daemon, "--session", "--nofork", "--nosyslog", "--print-address=1", "--address=unix:path="+filepath.Join(dir, "bus"))
	// No service files: the bus must not start a real notification service of this machine.
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_DATA_DIRS="+dir, "XDG_RUNTIME_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("dbus-daemon said nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

// fake is a notification service.
type fake struct {
	conn *bus.Conn
	caps []string

	mu    sync.Mutex
	last  uint32
	shown map[uint32]shown
	hang  chan struct{} // when set, calls wait for it
}

type shown struct {
	App, Icon, Summary, Body string
	Actions                  []string
	Hints                    map[string]bus.Variant
}

func startService(t *testing.T, addr string, caps ...string) *fake {
	t.Helper()
	conn, err := bus.Connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	f := &fake{conn: conn, caps: caps, shown: map[uint32]shown{}}
	if err := conn.Export(f, path, service); err != nil {
		t.Fatal(err)
	}
	if reply, err := conn.RequestName(service, bus.NameFlagDoNotQueue); err != nil || reply != bus.RequestNameReplyPrimaryOwner {
		t.Fatalf("the name is not ours: %v %v", reply, err)
	}
	return f
}

func (f *fake) GetCapabilities() ([]string, *bus.Error) { return f.caps, nil }

func (f *fake) Notify(app string, replaces uint32, icon, summary, body string, actions []string, hints map[string]bus.Variant, _ int32) (uint32, *bus.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hang != nil {
		<-f.hang
	}
	id := replaces
	if id == 0 {
		f.last++
		id = f.last
	}
	f.shown[id] = shown{app, icon, summary, body, actions, hints}
	return id, nil
}

func (f *fake) CloseNotification(id uint32) *bus.Error {
	f.mu.Lock()
	_, ok := f.shown[id]
	delete(f.shown, id)
	f.mu.Unlock()
	if !ok {
		return bus.NewError("org.example.NoSuchNote", nil)
	}
	f.emit("NotificationClosed", id, uint32(closedByCall))
	return nil
}

func (f *fake) emit(member string, args ...any) {
	_ = f.conn.Emit(path, service+"."+member, args...)
}

func (f *fake) all() map[uint32]shown {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[uint32]shown{}
	for id, s := range f.shown {
		all[id] = s
	}
	return all
}

// clicks collects what Open and Closed were told.
type clicks struct {
	open   chan string
	closed chan string
}

func sender(t *testing.T, addr string) (*Sender, clicks) {
	t.Helper()
	c := clicks{make(chan string, 10), make(chan string, 10)}
	s := New(Options{
		App: "Deskbell", Icon: "deskbell", Desktop: "deskbell",
		Open:   func(item string) { c.open <- item },
		Closed: func(id string, byThePerson bool) { c.closed <- id },
		Getenv: func(k string) string {
			if k == "DBUS_SESSION_BUS_ADDRESS" {
				return addr
			}
			return ""
		},
		Stat: func(string) (os.FileInfo, error) { return nil, os.ErrNotExist },
	})
	t.Cleanup(s.Close)
	return s, c
}

func receive(t *testing.T, c <-chan string, want string) {
	t.Helper()
	select {
	case got := <-c:
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing came, want %q", want)
	}
}

func TestANoteIsShownReplacedAndTakenBack(t *testing.T) {
	addr := startBus(t)
	f := startService(t, addr, "body", "body-markup", "actions")
	s, _ := sender(t, addr)
	ctx := t.Context()

	if err := s.Send(ctx, notify.Note{ID: "a", Title: "bot <1>", Body: "<b>Ship</b> & go", Item: "a", Urgent: true}); err != nil {
		t.Fatal(err)
	}
	got := f.all()[1]
	if got.App != "Deskbell" || got.Icon != "deskbell" || got.Summary != "bot <1>" || got.Body != "&lt;b&gt;Ship&lt;/b&gt; &amp; go" {
		t.Errorf("got %+v", got)
	}
	if !slices.Equal(got.Actions, []string{"default", "Open"}) || got.Hints["urgency"].Value() != byte(2) || got.Hints["desktop-entry"].Value() != "deskbell" {
		t.Errorf("got %+v", got)
	}
	if err := s.Send(ctx, notify.Note{ID: "a", Body: "again"}); err != nil {
		t.Fatal(err)
	}
	if all := f.all(); len(all) != 1 || all[1].Body != "again" || all[1].Hints["urgency"].Value() != byte(1) {
		t.Errorf("not replaced: %+v", all)
	}
	if err := s.Withdraw(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Withdraw(ctx, "a"); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if all := f.all(); len(all) != 0 {
		t.Errorf("still shown: %+v", all)
	}
}

func TestPlainBodyWhereMarkupIsNotRead(t *testing.T) {
	addr := startBus(t)
	f := startService(t, addr, "body")
	s, _ := sender(t, addr)
	if err := s.Send(t.Context(), notify.Note{ID: "a", Body: "a < b & c"}); err != nil {
		t.Fatal(err)
	}
	if got := f.all()[1].Body; got != "a < b & c" {
		t.Errorf("body %q", got)
	}
}

func TestAClickOpensItsItem(t *testing.T) {
	addr := startBus(t)
	f := startService(t, addr)
	s, c := sender(t, addr)
	for _, id := range []string{"a", "b"} {
		if err := s.Send(t.Context(), notify.Note{ID: id, Item: "msg_" + id}); err != nil {
			t.Fatal(err)
		}
	}
	// Not ours, not the service, not the default action: nothing happens.
	f.emit("ActionInvoked", uint32(77), "default")
	f.emit("ActionInvoked", uint32(1), "other")
	stranger, err := bus.Connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	_ = stranger.Emit(path, service+".ActionInvoked", uint32(1), "default")

	f.emit("ActionInvoked", uint32(2), "default")
	receive(t, c.open, "msg_b")
	f.emit("NotificationClosed", uint32(2), uint32(2))
	receive(t, c.closed, "b")
	if len(c.open) != 0 {
		t.Errorf("also opened %q", <-c.open)
	}
	// A note that was closed is shown anew, not replaced.
	if err := s.Send(t.Context(), notify.Note{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	if all := f.all(); len(all) != 3 {
		t.Errorf("got %+v", all)
	}
}

func TestWithoutABusNothingIsStarted(t *testing.T) {
	for _, addr := range []string{"", "autolaunch:", "autolaunch:scope=user"} {
		s, _ := sender(t, addr)
		if ok, reason := s.Available(); ok || !strings.Contains(reason, "session bus") {
			t.Errorf("%q: %v %q", addr, ok, reason)
		}
		if err := s.Send(t.Context(), notify.Note{ID: "a"}); !errors.Is(err, notify.ErrUnavailable) {
			t.Errorf("%q: %v", addr, err)
		}
		if err := s.Withdraw(t.Context(), "a"); err != nil {
			t.Errorf("%q: withdraw: %v", addr, err)
		}
	}
}

func TestTheUsersBusIsFoundByItsSocket(t *testing.T) {
	addr := startBus(t)
	startService(t, addr)
	dir := filepath.Dir(strings.TrimPrefix(strings.Split(addr, ",")[0], "unix:path="))
	s := New(Options{Getenv: func(k string) string {
		if k == "XDG_RUNTIME_DIR" {
			return dir
		}
		return ""
	}})
	defer s.Close()
	if ok, reason := s.Available(); !ok {
		t.Errorf("not found: %s", reason)
	}
}

func TestWithoutAServiceItSaysSoAndFindsOneLater(t *testing.T) {
	addr := startBus(t)
	s, _ := sender(t, addr)
	if ok, reason := s.Available(); ok || !strings.Contains(reason, "shows notifications") {
		t.Errorf("%v %q", ok, reason)
	}
	f := startService(t, addr)
	if ok, reason := s.Available(); !ok {
		t.Errorf("not found: %s", reason)
	}
	if err := s.Send(t.Context(), notify.Note{ID: "a"}); err != nil || len(f.all()) != 1 {
		t.Errorf("%v, %v", err, f.all())
	}
}

func TestTheNextServiceGetsNoNumbersOfTheLast(t *testing.T) {
	addr := startBus(t)
	f := startService(t, addr)
	s, _ := sender(t, addr)
	for _, id := range []string{"a", "b"} {
		if err := s.Send(t.Context(), notify.Note{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	f.conn.Close()
	next := startService(t, addr)
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for forgot := false; !forgot; {
		s.mu.Lock()
		forgot = len(s.ids) == 0
		s.mu.Unlock()
		select {
		case <-deadline:
			t.Fatal("the old numbers are still there")
		case <-tick.C:
		}
	}
	if err := s.Send(t.Context(), notify.Note{ID: "b"}); err != nil {
		t.Fatal(err)
	}
	if all := next.all(); len(all) != 1 || all[1].App == "" {
		t.Errorf("got %+v", all)
	}
}

func TestAServiceThatHangsIsLeftAlone(t *testing.T) {
	addr := startBus(t)
	f := startService(t, addr)
	s, _ := sender(t, addr)
	if ok, reason := s.Available(); !ok {
		t.Fatal(reason)
	}
	f.mu.Lock()
	f.hang = make(chan struct{})
	f.mu.Unlock()
	defer close(f.hang)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Send(ctx, notify.Note{ID: "a"}); !errors.Is(err, notify.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestABusThatHangsIsLeftAlone(t *testing.T) {
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "bus")) // takes connections, says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, _ := sender(t, "unix:path="+filepath.Join(dir, "bus"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	started := time.Now()
	if err := s.Send(ctx, notify.Note{ID: "a"}); !errors.Is(err, notify.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(started); d > 3*time.Second {
		t.Errorf("took %v", d)
	}
}
