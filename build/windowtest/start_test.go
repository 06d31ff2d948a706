//go:build window

// Package windowtest drives the real window: the built program under Xvfb, steered by WebKitWebDriver or by the keyboard.
// build/scripts/window-test.sh runs it.
package windowtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bin is where the script put the programs.
var bin = os.Getenv("DESKBELL_BIN")

func TestMain(m *testing.M) {
	if bin == "" || os.Getenv("DISPLAY") == "" {
		fmt.Fprintln(os.Stderr, "run build/scripts/window-test.sh: these tests need the built programs and a display")
		os.Exit(1)
	}
	wm := exec.Command("openbox")
	if err := wm.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = wm.Process.Kill()
	_ = wm.Wait()
	os.Exit(code)
}

// program is one running window.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd // nil when a driver started it
	path   string
	data   string
	log    string // the file that holds what it printed
	url    string // of its hub
	pid    int
	me     string // the operator, as actors are named
	exited chan error
}

func newData(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "desk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// start runs a program from bin and waits until its hub is ready.
func start(t *testing.T, path, data string, args ...string) *program {
	t.Helper()
	p := &program{t: t, path: filepath.Join(bin, path), data: data, exited: make(chan error, 1)}
	p.openLog()
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command(p.path, append([]string{"--data", data}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.awaitReady()
	return p
}

// drive runs a program from bin under WebKitWebDriver.
func drive(t *testing.T, path, data string, args ...string) (*program, *driver) {
	t.Helper()
	p := &program{t: t, path: filepath.Join(bin, path), data: data}
	p.openLog()
	wrapper := filepath.Join(newData(t), "run")
	text := fmt.Sprintf("#!/bin/sh\nexport LD_PRELOAD='%s'\nexec '%s' \"$@\" >>'%s' 2>&1\n", filepath.Join(bin, "windowtest", "automation.so"), p.path, p.log)
	if err := os.WriteFile(wrapper, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	server := exec.Command("WebKitWebDriver", "--port="+strconv.Itoa(port))
	if os.Getenv("DESKBELL_MEASURE") == "" {
		server.Env = append(os.Environ(), "DESKBELL_GPU=ondemand") // screenshots hang without
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })

	d := &driver{t: t, base: fmt.Sprintf("http://127.0.0.1:%d", port)}
	await(t, "WebKitWebDriver", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	var session struct{ SessionID string }
	err = d.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"webkitgtk:browserOptions": map[string]any{"binary": wrapper, "args": append([]string{"--data", data}, args...)},
	}}}, &session)
	if err != nil {
		t.Fatalf("no session: %v\n%s", err, p.output())
	}
	d.base += "/session/" + session.SessionID
	// Ending the session kills the program; the driver then answers that the window is gone.
	t.Cleanup(func() { _ = d.call("DELETE", "", nil, nil) })
	p.awaitReady()
	return p, d
}

func (p *program) openLog() {
	p.log = filepath.Join(newData(p.t), "log")
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("%s printed:\n%s", filepath.Base(p.path), p.output())
		}
	})
}

func (p *program) output() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

var ready = regexp.MustCompile(`(?m)^deskbell ready url=(\S+) data=.* pid=(\d+)$`)

func (p *program) awaitReady() {
	p.t.Helper()
	await(p.t, "the ready line", func() bool {
		m := ready.FindStringSubmatch(p.output())
		if m == nil {
			return false
		}
		p.url = m[1]
		p.pid, _ = strconv.Atoi(m[2])
		return true
	})
}

var painted = regexp.MustCompile(`window painted"? ms=(\d+)`)

func (p *program) awaitPainted() (ms int) {
	p.t.Helper()
	await(p.t, "the first paint", func() bool {
		m := painted.FindStringSubmatch(p.output())
		if m == nil {
			return false
		}
		ms, _ = strconv.Atoi(m[1])
		return true
	})
	return ms
}

// again starts the program a second time on the same data folder and returns its exit code.
func (p *program) again(args ...string) int {
	p.t.Helper()
	return p.run(append([]string{"--data", p.data}, args...)...)
}

// run runs the program to its end and returns its exit code.
func (p *program) run(args ...string) int {
	p.t.Helper()
	out, err := exec.Command(p.path, args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		p.t.Logf("the second start printed: %s", out)
		return exit.ExitCode()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 0
}

func (p *program) post(path string, body any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.Post(p.url+path, "application/json", bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.t.Fatalf("POST %s: %s", path, resp.Status)
	}
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.pid, s); err != nil {
		p.t.Fatal(err)
	}
}

// awaitExit wants the program to end well soon.
func (p *program) awaitExit() {
	p.t.Helper()
	select {
	case err := <-p.exited:
		if err != nil {
			p.t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		p.t.Fatal("it does not end")
	}
}

// visible says whether the program has a window on the screen, and returns it.
func (p *program) visible() (window string, ok bool) {
	// Only WebKit's window of this process counts.
	out, _ := exec.Command("xdotool", "search", "--all", "--onlyvisible", "--pid", strconv.Itoa(p.pid), "--name", "Deskbell").Output()
	lines := strings.Fields(string(out))
	if len(lines) == 0 {
		return "", false
	}
	return lines[len(lines)-1], true
}

func (p *program) awaitVisible(want bool) (window string) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("the window to be visible: %v", want), func() bool {
		var ok bool
		window, ok = p.visible()
		return ok == want
	})
	return window
}

// xdo runs xdotool and returns what it printed.
func xdo(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("xdotool", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("xdotool %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// press gives the window the focus and presses keys there.
func (p *program) press(window string, keys ...string) {
	p.t.Helper()
	xdo(p.t, "windowactivate", "--sync", window)
	xdo(p.t, append([]string{"key", "--clearmodifiers"}, keys...)...)
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
