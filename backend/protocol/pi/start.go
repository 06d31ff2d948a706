package pi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/piproc"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/transcript"
)

// Start says what to start.
type Start struct {
	Folder   string
	Model    string // provider/id; empty: pi's own choice
	Thinking string
	Args     []string // further arguments, as pi takes them
	// Gate loads the hub's gate, so that every call of a tool asks leave.
	Gate bool
	// Resume is the id of the session that is taken up again: with the arguments that it had, and with the gate if it had that,
	// besides those that are given here.
	Resume string
	// File is one of pi's own sessions of the folder (Files) that is taken up.
	File string
}

const (
	maxArgs = 200
	maxArg  = 8 << 10
)

// arguments are what pi is started with. Errors: *inbox.InvalidError.
func (s Start) arguments(file, gateFile string) ([]string, error) {
	if len(s.Args) > maxArgs {
		return nil, inbox.Invalid("/args", "are more than %d", maxArgs)
	}
	args := []string{"--mode", "rpc"}
	if s.Model != "" {
		args = append(args, "--model", s.Model)
	}
	if s.Thinking != "" {
		if !slices.Contains(pirpc.Levels, s.Thinking) {
			return nil, inbox.Invalid("/thinking", "must be one of %s", strings.Join(pirpc.Levels, ", "))
		}
		args = append(args, "--thinking", s.Thinking)
	}
	if file != "" {
		args = append(args, "--session", file)
	}
	if s.Gate {
		args = append(args, "-e", gateFile)
	}
	args = append(args, s.Args...)
	for i, a := range args[2:] {
		if len(a) > maxArg || strings.ContainsRune(a, 0) {
			return nil, inbox.Invalid("/args", "argument %d cannot be given to a program", i+1)
		}
		if a == "--mode" || strings.HasPrefix(a, "--mode=") {
			return nil, inbox.Invalid("/args", "--mode is the hub's own")
		}
	}
	return args, nil
}

// Start starts a pi and returns its session's id once it is there. Errors: *inbox.InvalidError, and what pi says when it
// does not come up.
func (b *Binding) Start(ctx context.Context, s Start) (string, error) {
	var had transcript.Session
	if s.Resume != "" {
		var err error
		if had, err = b.resumable(ctx, s.Resume); err != nil {
			return "", err
		}
		if s.Folder == "" {
			s.Folder = startedIn(had)
		}
		args, gated := again(had.Args, b.GateFile)
		s.Args, s.Gate = append(args, s.Args...), s.Gate || gated
	}
	if info, err := os.Stat(s.Folder); err != nil || !info.IsDir() || !filepath.IsAbs(s.Folder) {
		return "", inbox.Invalid("/folder", "must be a folder that is there, from the root")
	}
	if s.Gate {
		if _, err := WriteGate(b.GateFile); err != nil {
			return "", err
		}
	}
	if s.File != "" && s.Resume == "" {
		f, err := fileOf(s.Folder, s.File)
		if err != nil {
			return "", err
		}
		known, err := b.Transcripts.Get(ctx, Name, f.key())
		if err != nil && !errors.Is(err, transcript.ErrUnknown) {
			return "", err
		}
		if b.away(known) {
			return "", errAway
		}
		had.File = s.File
	}
	args, err := s.arguments(had.File, b.GateFile)
	if err != nil {
		return "", err
	}
	free, err := b.takeUp(s.Resume, had.File)
	if err != nil {
		return "", err
	}
	l, err := b.run(ctx, s, args, free)
	if err != nil {
		free()
		return "", err
	}
	select {
	case <-l.epoch().ready:
		return l.key(), nil
	case <-l.ended:
		l.mu.Lock()
		defer l.mu.Unlock()
		return "", protocol.Errorf(http.StatusConflict, "pi_ended", l.cur.rec.Ended)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // it is in no list, so nobody could end it later
			l.end(notUp)
			return "", protocol.Errorf(http.StatusGatewayTimeout, "pi_not_started", notUp)
		}
		return "", ctx.Err()
	}
}

// notUp is why a pi is ended whose session could not be made in time.
const notUp = "pi did not come up in time, and was ended"

// soon is how long a hub that is just starting is waited for.
const soon = 5 * time.Second

func (b *Binding) resumable(ctx context.Context, key string) (transcript.Session, error) {
	had, err := b.Transcripts.Get(ctx, Name, key)
	if err != nil {
		return had, err
	}
	if _, _, err := b.find(key); err == nil {
		return had, errRuns
	}
	if had.File == "" {
		return had, protocol.Errorf(http.StatusConflict, "no_file", "pi kept no file of this session, so it cannot be taken up again")
	}
	if b.away(had) {
		return had, errAway
	}
	return had, nil
}

// back is how long a relay that lost its hub may take to be there again: it tries every five seconds.
const back = 20 * time.Second

// away says of a session in a terminal that its pi may be about to be back: its relay was lost lately, or had no
// hub to come back to until lately.
func (b *Binding) away(had transcript.Session) bool {
	now := b.Now()
	return had.Origin == transcript.Relay && !had.Gone && min(now.Sub(had.EndedAt), now.Sub(b.since)) < back
}

// errAway is errRuns of one that is away.
var errAway = protocol.Errorf(http.StatusConflict, "running", "this session may still run in its terminal, which was lost: if it is not back in half a minute, it can be taken up")

// errRuns: two that write one file would tear it.
var errRuns = protocol.Errorf(http.StatusConflict, "running", "this session runs already")

// takeUp reserves a session for whoever takes it up, by its id and its file, until free is called: of several who try at
// once one goes on. Errors: errRuns.
func (b *Binding) takeUp(key, file string) (free func(), err error) {
	var names []string
	if key != "" {
		names = append(names, "id "+key)
	}
	if file != "" {
		names = append(names, "file "+file)
	}
	b.mu.Lock()
	if slices.ContainsFunc(names, func(n string) bool { return b.taking[n] }) {
		b.mu.Unlock()
		return nil, errRuns
	}
	for _, n := range names {
		b.taking[n] = true
	}
	b.mu.Unlock()
	free = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, n := range names {
			delete(b.taking, n)
		}
	}
	_, _, err = b.find(key)
	if err == nil || file != "" && b.writes(file) {
		free()
		return nil, errRuns
	}
	return free, nil
}

// writes says whether a pi that runs keeps its session in that file.
func (b *Binding) writes(file string) bool {
	b.mu.Lock()
	all := slices.Collect(maps.Values(b.byKey))
	b.mu.Unlock()
	return slices.ContainsFunc(all, func(l *live) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.s.Info.SessionFile == file
	})
}

// run starts the process and what reads it, and calls up once it is known which session it is, or that it has ended; not
// where it fails.
func (b *Binding) run(asked context.Context, s Start, args []string, up func()) (*live, error) {
	select {
	case <-b.begun:
	case <-time.After(soon):
	case <-asked.Done():
		return nil, asked.Err()
	}
	b.mu.Lock()
	ctx := b.ctx
	if ctx != nil {
		b.running.Add(1)
	}
	b.mu.Unlock()
	if ctx == nil {
		return nil, protocol.Stopping()
	}
	p, err := piproc.Start(piproc.Spec{Path: b.Program, Args: args, Dir: s.Folder})
	if err != nil {
		b.running.Done()
		return nil, protocol.Errorf(http.StatusConflict, "pi_not_started", err.Error())
	}
	l := b.newLive(context.WithoutCancel(ctx), transcript.Hub)
	l.link, l.started, l.folder, l.args, l.resume = own{p}, s.Folder, s.Folder, Shown(args[2:]), s.Resume
	stopped := context.AfterFunc(ctx, func() { l.end(byHub) })
	e := l.epoch()
	l.begin()
	b.running.Go(func() {
		<-e.read // from here on it is among those that run, with its file
		up()
	})
	go func() {
		defer b.running.Done()
		defer stopped()
		l.read(p)
	}()
	return l, nil
}

// own is a process of the hub's own.
type own struct{ *piproc.Process }

func (o own) Hand(record []byte, went func(fate)) error {
	return o.Process.Hand(record, func(wrote bool) { went(fateOf(wrote)) })
}

// read takes what a process says until it has ended.
func (l *live) read(p *piproc.Process) {
	for {
		record, err := p.Read()
		var large *pirpc.TooLargeError
		switch {
		case errors.As(err, &large):
			l.tooLarge(large)
			continue
		case err == nil:
			l.take(record)
			continue
		}
		break
	}
	// Its output has ended: so has it, or it is about to. One that goes on without can neither say nor be told anything.
	late := time.AfterFunc(soon, p.Stop)
	exit, _ := p.Wait(context.Background())
	late.Stop()
	l.exit(l.endedAs(exit.Code, l.story(exit)), true)
}

// story says how a pi ended, in words that help.
func (l *live) story(exit piproc.Exit) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	asks := l.s.Asks()
	if exit.Code == 0 && !l.s.Ready() && len(asks) > 0 {
		return "pi ended while it started: an extension asked “" + oneLine(asks[0].Title, maxTitle) + "” before pi could hear an answer. Extensions must not ask in session_start"
	}
	return exit.String()
}

// where is where it works.
func (l *live) where() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.folder
}

func (l *live) key() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur.key
}
