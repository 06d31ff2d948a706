// Package supervise runs commands so that nothing of them outlives the program that started them, however it ends. Each
// command has a supervisor: this same executable again, which holds one end of a pipe whose other end dies with the
// starter. When the pipe ends the supervisor ends the command with all that it started, and goes.
package supervise

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// marker is the variable of the environment by which the executable knows that it is to supervise.
const marker = "DESKBELL_SUPERVISE"

// Grace is how long a command has to end by itself after it was told to.
const Grace = 2 * time.Second

// ErrUnsupported: this system has no way to keep a promise about everything that a command starts.
var ErrUnsupported = errors.New("commands cannot be supervised on this system")

// Supported says whether this system has commands that can be supervised.
func Supported() bool {
	_, err := executable()
	return !errors.Is(err, ErrUnsupported)
}

// Command is what is to run.
type Command struct {
	Argv []string
	Env  []string // all of its environment
	Dir  string
}

// Process is a command that was started. Its methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	hold io.Closer // ends the supervisor when it is closed
	tail *tail
	done chan struct{}
	once sync.Once
	err  error
}

// Main is to be called first thing in main of every program that calls Start: in a process that is a supervisor it does
// that work and never returns.
func Main() {
	if os.Getenv(marker) != "" {
		os.Exit(supervise(os.Args[1:]))
	}
}

// Start runs a command. Errors: ErrUnsupported, and those of starting the supervisor; a command that cannot be started
// ends at once, with status 127.
func Start(c Command) (*Process, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &Process{cmd: exec.Command(self, c.Argv...), hold: w, tail: &tail{}, done: make(chan struct{})}
	p.cmd.Env = append(append([]string{}, c.Env...), marker+"=1")
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stderr, p.cmd.WaitDelay = c.Dir, r, p.tail, time.Second
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
		killGroup(p.cmd.Process.Pid) // should the supervisor have been killed, its group is not spared
		_ = w.Close()                // it may be closed already
	}()
	return p, nil
}

// Done is closed when the command has ended and nothing of it is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure says how the command ended, once it has: empty when it ended well, otherwise in words, with the last of what it
// wrote to its standard error.
func (p *Process) Failure() (how, said string) {
	<-p.done
	var exit *exec.ExitError
	switch {
	case p.err == nil, errors.Is(p.err, exec.ErrWaitDelay):
		return "", ""
	case errors.As(p.err, &exit):
		return exit.String(), p.tail.String()
	}
	return p.err.Error(), p.tail.String()
}

// Kill ends the command and everything that it started, and returns when that is done.
func (p *Process) Kill() {
	p.once.Do(func() { _ = p.hold.Close() })
	select {
	case <-p.done:
	case <-time.After(2*Grace + time.Second):
		killGroup(p.cmd.Process.Pid)
		<-p.done
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const maxTail = 4096 // bytes

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.kept), "\uFFFD")
}
