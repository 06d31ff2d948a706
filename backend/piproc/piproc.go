// Package piproc runs one pi: its records either way, its end, and how it ended. Nothing of it is left behind, however it
// ends and however the program that started it ends, killed outright included: that is supervise's work, which a program
// that starts a pi takes part in (supervise.Main).
package piproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"deskbell/backend/pirpc"
	"deskbell/backend/supervise"
)

// Spec says what to run.
type Spec struct {
	Path string // the program; looked up in PATH when it names no folder
	Args []string
	Dir  string
	Env  []string // nil: this process's own
	// MaxLine bounds a record that is read; 0: pirpc.MaxLine.
	MaxLine int64
}

// Process is one pi that was started. Its methods are safe for concurrent use, but for Read.
type Process struct {
	p    *supervise.Process
	out  *pirpc.Reader
	in   chan outgoing
	mu   sync.Mutex // held while a record is put in
	exit Exit
	gone sync.WaitGroup
}

// outgoing is a record for pi, and who is told whether it was written; nil: nobody.
type outgoing struct {
	line []byte
	went func(wrote bool)
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
	// patience is how long pi may take to end in good order.
	patience = 5 * time.Second
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
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	run, err := supervise.Start(supervise.Command{Argv: append([]string{path}, s.Args...), Env: env, Dir: s.Dir, Talks: true, Grace: patience, Tail: kept})
	if err != nil {
		return nil, fmt.Errorf("pi cannot be started: %w", err)
	}
	p := &Process{p: run, in: make(chan outgoing, queued), out: pirpc.NewReader(run.Out, s.MaxLine)}
	p.gone.Add(2)
	go p.write()
	go p.wait()
	return p, nil
}

// Read returns the next record of pi's. It must be called until it fails, or pi comes to a stand. Errors:
// *pirpc.TooLargeError, after which it goes on; any other is the end.
func (p *Process) Read() ([]byte, error) { return p.out.Read() }

// Write hands a record to pi, without waiting. Errors: ErrSlow, ErrEnded.
func (p *Process) Write(record []byte) error { return p.Hand(record, nil) }

// Hand is Write for what must not get lost: once it has returned nil, went is called once, with whether the record was
// written, when that is known. It must not wait.
func (p *Process) Hand(record []byte, went func(wrote bool)) error {
	p.mu.Lock() // so that nothing is put behind the last look at what is left
	defer p.mu.Unlock()
	select {
	case <-p.p.Done():
		return ErrEnded
	default:
	}
	select {
	case p.in <- outgoing{append(slices.Clip(record), '\n'), went}:
		return nil
	default:
		return ErrSlow
	}
}

// write is the one writer of pi's stdin: each record whole.
func (p *Process) write() {
	defer p.gone.Done()
	defer p.abandon()
	for {
		select {
		case o := <-p.in:
			_, err := p.p.In.Write(o.line)
			if o.went != nil {
				o.went(err == nil)
			}
			if err != nil {
				return // it has ended, or ends: wait says so
			}
		case <-p.p.Done():
			return
		}
	}
}

// abandon says of everything that is left that it was not written, once nothing more can come.
func (p *Process) abandon() {
	<-p.p.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		select {
		case o := <-p.in:
			if o.went != nil {
				o.went(false)
			}
		default:
			return
		}
	}
}

func (p *Process) wait() {
	defer p.gone.Done()
	<-p.p.Done()
	p.exit = Exit{Code: p.p.Code(), Stderr: p.p.Stderr()}
	_ = p.p.In.Close() // ends a write that waits
	// What was written before the end can still be read; a child that was left with the pipe does not keep it open.
	time.AfterFunc(time.Second, func() { _ = p.p.Out.Close() })
}

// Stop asks for pi's end, and does not wait: SIGTERM, a few seconds, SIGKILL, and then whatever is left of it.
func (p *Process) Stop() { p.p.Stop() }

// Done is closed when pi has ended, and everything that it started with it.
func (p *Process) Done() <-chan struct{} { return p.p.Done() }

// Wait returns how it ended. Errors: the end of ctx.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.p.Done():
		p.gone.Wait()
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}
