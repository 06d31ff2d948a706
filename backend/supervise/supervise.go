// Package supervise runs commands so that nothing of them outlives the program that started them, however it ends. Each
// command has a supervisor: this same executable again, which holds one end of a pipe, the leash, whose other end dies
// with the starter. When the leash ends the supervisor ends the command with all that it started, and goes. On Linux it has
// a keeper above it, this executable once more, that ends all of it should the supervisor be killed.
//
// A command that is talked to through its standard input does not see the end of it when the starter dies: the supervisor
// keeps it open until the command has been told to end. Some leave their own children running otherwise.
package supervise

import (
	"cmp"
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

// Grace is how long a command has to end by itself after it was told to, unless it says otherwise.
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
	// Talks says that its standard input and output are pipes to the starter; otherwise they are nothing.
	Talks bool
	// Grace is how long it has to end by itself; 0: Grace.
	Grace time.Duration
	// Tail is how much of the end of its standard error is kept, in bytes; 0: 4096.
	Tail int
}

// Process is a command that was started. Its methods are safe for concurrent use.
type Process struct {
	// In and Out are the command's standard input and output, where it talks. Who started it closes them.
	In, Out *os.File

	cmd   *exec.Cmd
	leash io.Closer // ends the command when it is closed
	grace time.Duration
	tail  *tail
	done  chan struct{}
	once  sync.Once
	err   error
}

// Main is to be called first thing in main of every program that calls Start: in a process that is a supervisor it does
// that work and never returns.
func Main() {
	if grace := os.Getenv(marker); grace != "" {
		os.Exit(begin(grace, os.Args[1:]))
	}
}

// Start runs a command. Errors: ErrUnsupported, and those of starting the supervisor; a command that cannot be started
// ends at once, with status 127.
func Start(c Command) (*Process, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	grace := cmp.Or(c.Grace, Grace)
	p := &Process{cmd: exec.Command(self, c.Argv...), grace: grace, tail: &tail{most: cmp.Or(c.Tail, defaultTail)}, done: make(chan struct{})}
	p.cmd.Env = append(append([]string{}, c.Env...), marker+"="+grace.String())
	p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay, p.cmd.SysProcAttr = c.Dir, p.tail, time.Second, ownGroup()
	theirs, ours, err := p.pipes(c.Talks)
	if err == nil {
		err = p.cmd.Start()
	}
	err = errors.Join(err, closeAll(theirs))
	if err != nil {
		return nil, errors.Join(err, closeAll(ours))
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
		endGroup(p.cmd.Process.Pid, patience(grace)) // where it was killed: what is below it ends the group by then, or nobody does
		p.once.Do(p.letGo)
	}()
	return p, nil
}

// pipes makes the leash and, for a command that talks, what it talks through. theirs are the supervisor's ends.
func (p *Process) pipes(talks bool) (theirs, ours []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		var e error
		if r, w, e = os.Pipe(); e != nil {
			err = errors.Join(err, e)
		}
		return r, w
	}
	leash, hold := pipe()
	theirs, ours, p.leash = []*os.File{leash}, []*os.File{hold}, hold
	p.cmd.ExtraFiles = []*os.File{leash, leash} // the second stands for its input, where it has none
	if talks {
		in, inW := pipe()
		out, outW := pipe()
		theirs, ours = append(theirs, in, outW), append(ours, inW, out)
		p.In, p.Out, p.cmd.Stdin, p.cmd.Stdout, p.cmd.ExtraFiles = inW, out, in, outW, []*os.File{leash, inW}
	}
	return theirs, ours, err
}

func closeAll(files []*os.File) (err error) {
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
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
		return exit.String(), p.Stderr()
	}
	return p.err.Error(), p.Stderr()
}

// Code is the command's status as a shell has it, once it has ended: 128 and more stand for a signal.
func (p *Process) Code() int {
	<-p.done
	return status(p.cmd.ProcessState)
}

// Stderr is the end of what the command wrote to its standard error so far.
func (p *Process) Stderr() string { return p.tail.String() }

// Stop asks for the end of the command and everything that it started, and does not wait.
func (p *Process) Stop() {
	p.once.Do(func() {
		p.letGo()
		wakeGroup(p.cmd.Process.Pid) // a supervisor that its command stopped sees nothing
	})
}

func (p *Process) letGo() { _ = p.leash.Close() }

// patience is how long a supervisor may need to end its command and what that left.
func patience(grace time.Duration) time.Duration { return grace + Grace + time.Second }

// Kill ends the command and everything that it started, and returns when that is done.
func (p *Process) Kill() {
	p.Stop()
	select {
	case <-p.done:
	case <-time.After(patience(p.grace)):
		sweepBelow(p.cmd.Process.Pid) // it does not get to do that itself
		killGroup(p.cmd.Process.Pid)
		<-p.done
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	most int // bytes
	mu   sync.Mutex
	kept []byte
}

const defaultTail = 4096 // bytes

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.kept), "\uFFFD")
}
