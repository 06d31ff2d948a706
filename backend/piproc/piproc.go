// Package piproc runs one pi and makes sure that nothing of it is left behind: however it ends, and however the program
// that started it ends, killed outright included.
//
// Between the two stands a keeper, this program again with another command. It holds the write end of pi's stdin as well,
// so that pi does not see the end of its input when the hub dies: older versions leave their children running then. The
// keeper sees the hub's end on a pipe of its own, ends pi in good order, and then whatever pi started and left.
package piproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"deskbell/backend/pirpc"
)

// Spec says what to run.
type Spec struct {
	// Keeper is the command, with its arguments, that runs Keep. What pi is started with is appended to it.
	Keeper []string
	Path   string // the program; looked up in PATH when it names no folder
	Args   []string
	Dir    string
	Env    []string // nil: this process's own
	// MaxLine bounds a record that is read; 0: pirpc.MaxLine.
	MaxLine int64
}

// Process is one pi that was started. Its methods are safe for concurrent use, but for Read.
type Process struct {
	cmd    *exec.Cmd
	out    *pirpc.Reader
	in     chan []byte
	stdin  *os.File
	leash  *os.File // closed to end it
	stderr tail
	done   chan struct{}
	exit   Exit
	gone   sync.WaitGroup
	stop   sync.Once
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // 128 and more: a signal's
	Stderr string // the end of what it said there
}

// String says how it ended, in words.
func (e Exit) String() string {
	text := fmt.Sprintf("pi ended with exit code %d", e.Code)
	if last := lastLines(e.Stderr, 20); last != "" {
		text += "\n" + last
	}
	return text
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(pirpc.Plain(s)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

const (
	// queued is how many records may wait for a pi that does not read.
	queued = 1024
	// kept is how much of stderr is kept, in bytes.
	kept = 64 << 10
)

// ErrSlow: pi does not read what it is told.
var ErrSlow = errors.New("pi does not read what it is told")

// ErrEnded: the process has ended.
var ErrEnded = errors.New("pi has ended")

// Start starts a pi. Errors: when there is no such program, or folder.
func Start(s Spec) (*Process, error) {
	path, err := exec.LookPath(s.Path)
	if err != nil {
		return nil, fmt.Errorf("pi cannot be started: %w", err)
	}
	if info, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("pi cannot be started in %s: it is no folder", s.Dir)
	}
	p := &Process{in: make(chan []byte, queued), done: make(chan struct{})}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pi cannot be started: %w", err)
	}
	leashR, leashW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pi cannot be started: %w", err), inR.Close(), inW.Close())
	}
	args := slices.Concat(s.Keeper[1:], []string{path}, s.Args)
	p.cmd = exec.Command(s.Keeper[0], args...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdin, p.cmd.Stderr = s.Dir, s.Env, inR, &p.stderr
	p.cmd.ExtraFiles = []*os.File{leashR, inW}
	p.cmd.SysProcAttr, p.cmd.WaitDelay = apart(), 2*time.Second
	p.stdin, p.leash = inW, leashW
	stdout, outW, err := os.Pipe()
	if err == nil {
		p.cmd.Stdout = outW
		err = p.cmd.Start()
		err = errors.Join(err, outW.Close())
	}
	if err = errors.Join(err, inR.Close(), leashR.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("pi cannot be started: %w", err), inW.Close(), leashW.Close())
	}
	p.out = pirpc.NewReader(stdout, s.MaxLine)
	p.gone.Add(2)
	go p.write()
	go p.wait(stdout)
	return p, nil
}

// Read returns the next record of pi's. It must be called until it fails, or pi comes to a stand. Errors:
// *pirpc.TooLargeError, after which it goes on; any other is the end.
func (p *Process) Read() ([]byte, error) { return p.out.Read() }

// Write hands a record to pi, without waiting. Errors: ErrSlow, ErrEnded.
func (p *Process) Write(record []byte) error {
	select {
	case <-p.done:
		return ErrEnded
	default:
	}
	select {
	case p.in <- append(slices.Clip(record), '\n'):
		return nil
	default:
		return ErrSlow
	}
}

// write is the one writer of pi's stdin: each record whole.
func (p *Process) write() {
	defer p.gone.Done()
	for {
		select {
		case line := <-p.in:
			if _, err := p.stdin.Write(line); err != nil {
				return // it has ended, or ends: wait says so
			}
		case <-p.done:
			return
		}
	}
}

func (p *Process) wait(stdout io.Closer) {
	defer p.gone.Done()
	_ = p.cmd.Wait() // how it ended is in its state
	code := p.cmd.ProcessState.ExitCode()
	p.exit = Exit{Code: code, Stderr: p.stderr.String()}
	close(p.done)
	_ = p.stdin.Close() // ends a write that waits
	p.Stop()
	// What was written before the end can still be read; a child that was left with the pipe does not keep it open.
	time.AfterFunc(time.Second, func() { _ = stdout.Close() })
}

// Stop asks the keeper to end pi, and does not wait: SIGTERM, a few seconds, SIGKILL, and then whatever is left of it.
func (p *Process) Stop() { p.stop.Do(func() { _ = p.leash.Close() }) }

// Done is closed when pi has ended, and everything that it started with it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns how it ended. Errors: the end of ctx.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		p.gone.Wait()
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

// Stderr is the end of what pi said there so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - kept; over > 0 {
		t.buf = append(t.buf[:0:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.buf), "\uFFFD")
}
