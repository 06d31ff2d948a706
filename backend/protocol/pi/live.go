package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/transcript"
)

// link is the way to a pi.
type link interface {
	// Write hands it a record, without waiting.
	Write(record []byte) error
	// Hand is Write for the answer to a dialog: it says afterwards, once, what became of it; not where it fails.
	Hand(record []byte, went func(fate)) error
	// Stop asks for its end, without waiting.
	Stop()
}

// fate is what became of an answer that was handed over: pi has it, will never have it, or nobody knows.
type fate int

const (
	missed fate = iota
	told
	lost
)

// fateOf is that of a record which was written, or was not.
func fateOf(wrote bool) fate {
	if wrote {
		return told
	}
	return missed
}

// live is one pi that runs.
type live struct {
	b      *Binding
	link   link
	origin string
	ctx    context.Context // ends with the pi
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // whatever waits on its behalf
	ended  chan struct{}  // closed when everything about it is written down

	mu      sync.Mutex
	s       *pirpc.Session
	cur     *epoch
	saves   []*epoch // replaced ones that are still to be written down
	past    []string // the keys of the sessions that were here before
	asks    map[string]*waiting
	waits   map[string]chan pirpc.Result
	started string // the folder that it was started in
	folder  string // where it works
	args    []string
	resume  string // the key of the session that it takes up again
	again   bool   // its relay was connected before: what was open then goes on
	met     bool   // it had come up before this hub met it
	heard   time.Time
	stats   bool // what it cost is to be asked
	failure string
	because string // why it was asked to end; "" while it was not
	exiting atomic.Bool

	handed map[string]bool // directives that pi has been told; deliver's own
}

// epoch is one session in the process: pi may put another in its place.
type epoch struct {
	ctx     context.Context // ends with it
	cancel  context.CancelFunc
	began   time.Time
	ready   chan struct{} // closed when it is enrolled
	read    chan struct{} // closed when what it said before is known
	agent   string        // as the fleet knows it, once it is enrolled
	key     string
	rec     transcript.Session
	was     *pirpc.Info          // what was known of it when another took its place
	since   time.Time            // when it was enrolled
	written bool                 // some of its rows are written down
	told    bool                 // something was said in it before, by whomever
	offset  int                  // rows that were there before
	left    map[string]pirpc.Row // rows of before that were open when their hub was lost, by what went on in them; nil: nothing goes on
	joined  map[int]pirpc.Row    // those of them that went on, by the numbers that they have now
	dirty   map[int]*pirpc.Row
	moved   bool
	over    bool
	said    time.Time // when it answered who it is, whatever it said
}

func newEpoch(ctx context.Context, now time.Time) *epoch {
	ctx, cancel := context.WithCancel(ctx)
	return &epoch{ctx: ctx, cancel: cancel, began: now, ready: make(chan struct{}), read: make(chan struct{}), joined: map[int]pirpc.Row{}, dirty: map[int]*pirpc.Row{}, moved: true}
}

// errExited is why what waited on a pi's behalf ends.
var errExited = errors.New("the agent's process has ended")

func (b *Binding) newLive(ctx context.Context, origin string) *live {
	ctx, cancel := context.WithCancelCause(ctx)
	return &live{
		b: b, origin: origin, ctx: ctx, cancel: cancel, ended: make(chan struct{}), s: pirpc.New(0), cur: newEpoch(ctx, b.Now()),
		asks: map[string]*waiting{}, waits: map[string]chan pirpc.Result{}, handed: map[string]bool{}, heard: b.Now(),
	}
}

// begin asks the pi who it is and keeps its books until exit.
func (l *live) begin() {
	e := l.epoch()
	l.work.Go(l.keep)
	l.work.Go(l.deliver)
	l.work.Go(func() { l.introduce(e) })
}

// introduce asks what there is to know of a session. Pi reads it when it is ready, and says nothing by itself.
func (l *live) introduce(e *epoch) {
	defer close(e.read)
	state, err := l.call(e.ctx, e, pirpc.Command{Type: "get_state"})
	for noted := false; err != nil; state, err = l.call(e.ctx, e, pirpc.Command{Type: "get_state"}) {
		if e.ctx.Err() != nil {
			return
		}
		if !state.NoAnswer { // it will not say, and is there
			break
		}
		if !noted {
			l.note("pi did not say yet that it is ready: an extension may be asking something while it starts, which pi cannot hear the answer to")
		}
		noted = true
	}
	l.settleIn(e)
	l.mu.Lock()
	e.said = l.b.Now()
	l.mu.Unlock()
	var had struct {
		Messages *int `json:"messageCount"`
	}
	_ = json.Unmarshal(state.Data, &had) // what is not there is none
	select {
	case <-e.ready: // so that it is known what there is of its history
	case <-e.ctx.Done():
		return
	}
	if had.Messages == nil {
		had.Messages = new(int)
	} else if *had.Messages == 0 && e.told {
		l.note("pi has nothing of what was said here before: its model knows none of it, and what the hub did not hear of it cannot be read")
	}
	if *had.Messages > 0 { // also of a relay that is back: what a hub was told in the moment before it was killed is written down nowhere
		if r, err := l.call(e.ctx, e, pirpc.Command{Type: "get_messages"}); err != nil && l.epoch() == e {
			l.note("what was said in this session before, while the hub did not follow it, could not be read: " + cmp.Or(oneLine(r.Error, 500), "pi gave no answer"))
		}
	}
	l.work.Go(func() {
		for _, name := range []string{"get_commands", "get_available_models", "get_available_thinking_levels"} {
			if _, err := l.call(e.ctx, e, pirpc.Command{Type: name}); err != nil && e.ctx.Err() != nil {
				return
			}
		}
	})
}

// settleIn takes over the folder that a session works in from the file that pi keeps of it, which outranks the one that pi
// was started in. There is no file of a new one.
func (l *live) settleIn(e *epoch) {
	l.mu.Lock()
	f := File{Path: l.s.Info.SessionFile}
	l.mu.Unlock()
	folder, ok := f.read()
	if !ok || folder == "" {
		return
	}
	folder = l.named(folder)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e == l.cur {
		l.folder, e.rec.Folder, e.moved = folder, folder, true
	}
}

// look asks how a setting stands that pi may have taken in its own way: a model has the levels that it has.
func (l *live) look(ctx context.Context, e *epoch, c pirpc.Command) {
	switch c.Type {
	case "set_model", "cycle_model":
		_, _ = l.call(ctx, e, pirpc.Command{Type: "get_available_thinking_levels"}) // an older pi does not know
	case "set_thinking_level", "cycle_thinking_level":
	default:
		return
	}
	_, _ = l.call(ctx, e, pirpc.Command{Type: "get_state"}) // without it the page says what was there
}

func (l *live) epoch() *epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur
}

// take applies a record of pi's.
func (l *live) take(record []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.b.Now()
	l.heard = now
	l.apply(l.s.Take(record, now))
}

func (l *live) tooLarge(e *pirpc.TooLargeError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(l.s.TooLarge(e, l.b.Now()))
}

// tick applies what time alone does.
func (l *live) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.b.Now()
	if next := l.s.Next(); !next.IsZero() && !next.After(now) {
		l.apply(l.s.Tick(now))
	}
}

// apply carries out what a record or the clock did. l.mu is held, and nothing here waits.
func (l *live) apply(fx pirpc.Effects) {
	for _, record := range fx.Write {
		l.write(record)
	}
	if slices.ContainsFunc(fx.Results, func(r pirpc.Result) bool { return r.Command.Type == "get_messages" }) {
		l.cur.recall(fx.Rows)
	}
	for _, r := range fx.Rows {
		l.cur.dirty[r.N] = r
	}
	l.cur.moved = l.cur.moved || fx.Changed
	l.stats = l.stats || fx.Settled
	for _, e := range fx.Ended {
		if w := l.asks[e.ID]; w != nil {
			delete(l.asks, e.ID)
			w.end(endedError(e.Why))
		}
	}
	if fx.Was != nil {
		l.replace(fx.Was)
		for _, r := range fx.Next {
			l.cur.dirty[r.N] = r
		}
	}
	for _, a := range fx.Asks {
		l.ask(a)
	}
	for _, r := range fx.Results {
		if ch := l.waits[r.ID]; ch != nil {
			delete(l.waits, r.ID)
			ch <- r // it has room
		}
	}
}

// replace begins the books of the session that took the other's place.
func (l *live) replace(was *pirpc.Info) {
	l.cur.over, l.cur.was = true, was
	l.cur.cancel()
	if l.cur.key != "" {
		l.past = append(l.past, l.cur.key)
	}
	l.saves = append(l.saves, l.cur)
	e := newEpoch(l.ctx, l.b.Now())
	l.cur = e
	l.work.Go(func() { l.introduce(e) })
}

// write hands a record to pi. One that does not take it cannot be told anything any more: it is ended.
func (l *live) write(record []byte) { l.wrote(l.link.Write(record)) }

// reply is write for an answer of somebody's: went says once what became of it.
func (l *live) reply(record []byte, went func(fate)) {
	err := l.link.Hand(record, went)
	if err != nil {
		went(missed)
	}
	l.wrote(err)
}

func (l *live) wrote(err error) {
	if err != nil && l.ctx.Err() == nil {
		l.failure = err.Error()
		l.link.Stop()
	}
}

// note puts a line of the hub's own into the transcript.
func (l *live) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(l.s.Note("warning", text, l.b.Now()))
}

// call sends a command to a session and waits for its answer.
func (l *live) call(ctx context.Context, e *epoch, c pirpc.Command) (pirpc.Result, error) {
	answer, err := l.send(e, c)
	if err != nil {
		return pirpc.Result{}, err
	}
	select {
	case r := <-answer:
		if r.NoAnswer && l.exiting.Load() {
			return r, protocol.Errorf(http.StatusConflict, "pi_ended", "pi ended before it answered")
		}
		if r.NoAnswer {
			return r, protocol.Errorf(http.StatusGatewayTimeout, "no_answer", "pi gave no answer")
		}
		if r.Unknown() {
			return r, protocol.Errorf(http.StatusConflict, "refused_by_pi", "this version of pi cannot do that ("+pirpc.Plain(r.Error)+")")
		}
		if r.Error != "" {
			return r, protocol.Errorf(http.StatusConflict, "refused_by_pi", pirpc.Plain(r.Error))
		}
		return r, nil
	case <-ctx.Done():
		return pirpc.Result{}, ctx.Err()
	case <-l.ended:
		return pirpc.Result{}, errUnknown
	}
}

// send sends a command to a session, if that is still the one which is there; its answer comes on the channel.
func (l *live) send(e *epoch, c pirpc.Command) (<-chan pirpc.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e != l.cur {
		return nil, errUnknown
	}
	id, record, fx, err := l.s.Command(c, l.b.Now())
	var wrong *pirpc.ParamError
	switch {
	case errors.As(err, &wrong) && wrong.Param != "":
		return nil, inbox.Invalid("/"+wrong.Param, "%s", wrong.Problem)
	case errors.As(err, &wrong):
		return nil, inbox.Invalid("/type", "%s", wrong)
	case err != nil:
		return nil, errUnknown
	}
	answer := make(chan pirpc.Result, 1)
	l.waits[id] = answer
	l.apply(fx)
	l.write(record)
	return answer, nil
}

func (l *live) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(l.s.Stop(l.b.Now()))
}

// Why a pi was asked to end, as its session says afterwards.
const (
	byPerson = "ended by you"
	byHub    = "ended with the hub"
	byItself = "pi ended by itself" // an extension may end it, and nobody else did
)

// end asks for the end of the process, for a reason; exit says when it has come.
func (l *live) end(because string) {
	l.mu.Lock()
	l.because = cmp.Or(l.because, because)
	l.apply(l.s.Stopping(l.b.Now()))
	l.mu.Unlock()
	l.link.Stop()
}

// endedAs says how a pi ended that left with that status: one that was asked to, and did, by whom.
func (l *live) endedAs(code int, story string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.because == "" && code == 0 && l.s.Ready():
		return byItself
	case l.because == "":
		return story
	case code == 128+9:
		return l.because + "; it did not end when it was asked to, and was ended outright"
	}
	return l.because
}

// exit says that the pi has ended, and how, and returns when everything about it is written down. One that is only out of
// reach may come back: gone says that this one will not.
func (l *live) exit(how string, gone bool) {
	l.exiting.Store(true)
	l.mu.Lock()
	if l.failure != "" {
		how = l.failure + "; " + how
	}
	fx := l.s.Exit(how, l.b.Now())
	l.cur.over = true
	l.cur.rec.Ended, l.cur.rec.Gone = how, gone
	l.apply(fx)
	l.mu.Unlock()
	l.cancel(errExited)
	l.work.Wait()
	ctx := context.WithoutCancel(l.ctx)
	l.save(ctx, true)
	if gone {
		l.endRules(ctx, l.key())
		l.b.noDoubts(l.agent())
		l.b.bounce(ctx)
	}
	l.forget()
	close(l.ended)
	l.b.OnEnd()
}
