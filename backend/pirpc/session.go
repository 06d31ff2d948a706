package pirpc

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// State is what a session is doing.
type State string

// The states. Waiting outranks what else it does: a dialog is open.
const (
	Starting   State = "starting"
	Idle       State = "idle"
	Running    State = "running"
	Retrying   State = "retrying"
	Compacting State = "compacting"
	Waiting    State = "waiting"
	Stopping   State = "stopping"
	Exited     State = "exited"
)

// quiet is how long after the end of a run nothing may follow before it counts as idle, where pi does not say that it
// has settled (before 0.80.4). What follows a run came within a millisecond where it was measured.
const quiet = 300 * time.Millisecond

// Effects is what one record, or the passing of time, did.
type Effects struct {
	// Rows are those that are new or changed. They change in place while they are open.
	Rows []*Row
	// Asks are dialogs that wait for an answer from now on, Ended those that do not any more.
	Asks  []Ask
	Ended []EndedAsk
	// Results are commands that ended.
	Results []Result
	// Changed says that the state, or what Info tells, moved.
	Changed bool
	// Was is what was known of the session that another one took the place of in this process, nil where none did: whoever
	// keeps a record begins a new one. Next are the other one's rows.
	Was  *Info
	Next []*Row
	// Settled says that it has just become idle.
	Settled bool
	// Write is what must be written to pi, each a record.
	Write [][]byte
}

// Session is what a pi process does, by its records. It is not safe for concurrent use.
type Session struct {
	Info Info

	rows     int // made so far
	messages map[string]*Row
	tools    []*Row // that run, oldest first
	compact  *Row
	failed   *Row // the last message that failed
	asks     []Ask
	pending  map[string]pending
	ids      int
	named    bool            // pi has said which session it is
	said     time.Time       // when what was said or done first here was; zero: nothing was
	known    time.Time       // until when an earlier life of it was followed; zero: it had none
	had      map[string]bool // what has a row of its own, by rowName
	left     map[string]*Row // the rows of that life which were broken off, by rowName
	turned   bool            // a turn has begun here, or gone on: what begins from now on is new
	summed   bool            // a summary was made since one was last asked for
	late     map[string]bool // what was under way when this life began, and said by itself here, by rowName
	retold   map[string]*Row // the calls that a history told of without their ends, by id
	gone     map[string]bool // the calls that the session before this one left open
	early    []early         // what came while another session may be on its way
	title    string          // as it was before that
	junk     *Row            // the last row, where it holds what is no record

	ready, running, retrying, compacting, stopping, exited bool
	over                                                   bool      // the run that was last begun has ended, and more may follow it
	settles                                                bool      // this pi says when it has settled
	unclearable                                            bool      // it has said that it cannot clear its queue
	idleAt                                                 time.Time // when it will count as idle; zero: it is not ending
	first                                                  bool      // a record has come
	seed                                                   bool      // it speaks the form of other tools' schemas
	fx                                                     *Effects
	now                                                    time.Time
}

// New returns a session before its first record. rows is how many rows its transcript has already.
func New(rows int) *Session {
	return &Session{rows: rows, messages: map[string]*Row{}, pending: map[string]pending{}, had: map[string]bool{}, left: map[string]*Row{}, late: map[string]bool{}, Info: emptyInfo()}
}

func emptyInfo() Info {
	return Info{Steering: []string{}, FollowUp: []string{}, Statuses: []Keyed{}, Widgets: []Widget{}, Commands: []SlashCommand{}, Models: []Model{}, Levels: []string{}}
}

// State is what it is doing now.
func (s *Session) State() State {
	switch {
	case s.exited:
		return Exited
	case s.stopping:
		return Stopping
	case len(s.asks) > 0:
		return Waiting
	case !s.ready:
		return Starting
	case s.compacting:
		return Compacting
	case s.retrying:
		return Retrying
	case s.running, s.shell():
		return Running
	}
	return Idle
}

// Busy says whether a run is under way, whatever it waits for.
func (s *Session) Busy() bool { return s.running || s.retrying || s.compacting }

// shell says whether a command of the person's own runs.
func (s *Session) shell() bool { return s.expects(func(p pending) bool { return p.row != nil }) }

// expects says whether the answer of such a command is still to come.
func (s *Session) expects(which func(pending) bool) bool {
	for _, p := range s.pending {
		if which(p) {
			return true
		}
	}
	return false
}

// Asks are the dialogs that wait for an answer, oldest first.
func (s *Session) Asks() []Ask { return slices.Clone(s.asks) }

// begin starts gathering what happens at now.
func (s *Session) begin(now time.Time) *Effects {
	s.fx, s.now = &Effects{}, now
	return s.fx
}

// end completes what was gathered.
func (s *Session) end(before State) Effects {
	fx := *s.fx
	s.fx = nil
	fx.Changed = fx.Changed || s.State() != before
	return fx
}

// Take applies one record. It never fails: what cannot be read is noted.
func (s *Session) Take(line []byte, now time.Time) Effects {
	before := s.State()
	s.begin(now)
	if !s.exited {
		s.take(line)
	}
	return s.end(before)
}

// TooLarge notes that a record was left out.
func (s *Session) TooLarge(e *TooLargeError, now time.Time) Effects {
	s.begin(now)
	s.notice("warning", "record too large", e.Error())
	return s.end(s.State())
}

// Note puts a line of the caller's own into the transcript.
func (s *Session) Note(level, text string, now time.Time) Effects {
	s.begin(now)
	s.notice(level, "", text)
	return s.end(s.State())
}

// Refused says that a call was not let happen.
func (s *Session) Refused(call string, why Refusal, now time.Time) Effects {
	s.begin(now)
	if r := s.toolRow(call); r != nil {
		why.Reason = clip(why.Reason, maxText)
		r.Tool.Refused = &why
		s.touch(r)
	}
	return s.end(s.State())
}

// History makes rows of messages that were said before this life of the session.
func (s *Session) History(messages []json.RawMessage, now time.Time) Effects {
	s.begin(now)
	s.history(messages)
	return s.end(s.State())
}

// Ready says whether pi has come up.
func (s *Session) Ready() bool { return s.ready }

// Next is when time alone will change something; zero: never.
func (s *Session) Next() time.Time {
	var next time.Time
	soonest := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	soonest(s.idleAt)
	for _, a := range s.asks {
		soonest(a.Deadline)
	}
	for _, p := range s.pending {
		soonest(p.deadline)
	}
	return next
}

// Tick applies what is due by now.
func (s *Session) Tick(now time.Time) Effects {
	before := s.State()
	fx := s.begin(now)
	if !s.idleAt.IsZero() && !now.Before(s.idleAt) {
		s.idle()
	}
	s.retire(WhyExpired, func(a Ask) bool { return !a.Deadline.IsZero() && !now.Before(a.Deadline) })
	fx.Results = append(fx.Results, s.overdue(now, false)...)
	return s.end(before)
}

// Exit says that the process has ended, and how.
func (s *Session) Exit(how string, now time.Time) Effects {
	before := s.State()
	fx := s.begin(now)
	if s.exited {
		return s.end(before)
	}
	s.noteEarly()
	s.interrupt()
	s.leaveShell()
	s.retire(WhyExited, func(Ask) bool { return true })
	fx.Write = nil // nobody reads it
	fx.Results = append(fx.Results, s.overdue(now, true)...)
	s.notice("info", "ended", how)
	s.exited, s.running, s.retrying, s.compacting, s.idleAt = true, false, false, false, time.Time{}
	s.Info.Statuses, s.Info.Widgets, s.Info.Retry = []Keyed{}, []Widget{}, nil
	return s.end(before)
}

// Stopping says that the process is being ended.
func (s *Session) Stopping(now time.Time) Effects {
	before := s.State()
	s.begin(now)
	s.stopping = true
	return s.end(before)
}

// Command makes the record of a command and expects its answer. Errors: *ParamError, ErrExited.
func (s *Session) Command(c Command, now time.Time) (id string, line []byte, fx Effects, err error) {
	if err := c.Check(); err != nil {
		return "", nil, Effects{}, err
	}
	if s.exited {
		return "", nil, Effects{}, ErrExited
	}
	before := s.State()
	s.begin(now)
	id, line = s.expect(c)
	return id, line, s.end(before), nil
}

// expect makes the record of a checked command and expects its answer.
func (s *Session) expect(c Command) (id string, line []byte) {
	s.ids++
	p := pending{id: s.ids, command: c}
	if within := specs[c.Type].within; within > 0 {
		p.deadline = s.now.Add(within)
	}
	s.summed = s.summed && c.Type != "compact"
	if c.Type == "bash" {
		text, _ := c.Params["command"].(string)
		p.row = s.add(BashRow)
		p.row.Title, p.row.Open, p.row.Tool = clip(text, maxLabel), true, &Tool{Name: "bash"}
	}
	id = nativeID(p.id)
	s.pending[id] = p
	return id, c.encode(p.id, s.seed)
}

// tell is expect for what nobody but the session itself waits for.
func (s *Session) tell(kind string) {
	_, line := s.expect(Command{Type: kind})
	s.fx.Write = append(s.fx.Write, line)
}

// ErrExited: the process has ended.
var ErrExited = errors.New("this pi has ended")

// Answer makes the record that answers a dialog, once. Errors: ErrNotOpen, ErrNotFit (then it stays open).
func (s *Session) Answer(id string, a Answer, now time.Time) ([]byte, Effects, error) {
	before := s.State()
	s.begin(now)
	i := slices.IndexFunc(s.asks, func(a Ask) bool { return a.ID == id })
	if i < 0 {
		return nil, s.end(before), ErrNotOpen
	}
	line, err := a.encode(s.asks[i], s.seed)
	if err == nil {
		s.asks = slices.Delete(s.asks, i, i+1)
	}
	return line, s.end(before), err
}

// Answered takes a dialog for answered that somebody else has answered.
func (s *Session) Answered(id string) {
	s.asks = slices.DeleteFunc(s.asks, func(a Ask) bool { return a.ID == id })
}

// Stop dismisses every dialog, which an abort would wait for, and makes the records that stop what it does: those that
// were told are not told again where pi knows how to forget them.
func (s *Session) Stop(now time.Time) Effects {
	before := s.State()
	s.begin(now)
	s.retire(WhyStopped, func(Ask) bool { return true })
	if !s.exited {
		if !s.unclearable && len(s.Info.Steering)+len(s.Info.FollowUp) > 0 {
			s.tell("clear_queue")
		}
		if s.expects(func(p pending) bool { return p.command.Type == "bash" }) { // also one that an earlier session left
			s.tell("abort_bash")
		}
		s.tell("abort")
	}
	return s.end(before)
}

// retire ends the dialogs that over picks without an answer. Pi is told that each is cancelled: one that it has ended
// itself it ignores, and one that was not what it seemed is not left open for ever.
func (s *Session) retire(why Why, over func(Ask) bool) {
	kept := s.asks[:0:0]
	for _, a := range s.asks {
		if !over(a) {
			kept = append(kept, a)
			continue
		}
		s.fx.Ended = append(s.fx.Ended, EndedAsk{a, why})
		s.cancel(a)
	}
	s.asks = kept
}

func (s *Session) cancel(a Ask) {
	if line, err := (Answer{}).encode(a, s.seed); err == nil {
		s.fx.Write = append(s.fx.Write, line)
	}
}

// idle says that nothing more will happen by itself.
func (s *Session) idle() {
	s.interrupt()
	s.retire(WhySettled, func(a Ask) bool { return a.Call != "" && !s.commanded(a) })
	s.running, s.retrying, s.compacting, s.idleAt, s.Info.Retry = false, false, false, time.Time{}, nil
	s.fx.Settled = true
}

// interrupt closes what was left open: it will not come to its end.
func (s *Session) interrupt() {
	for _, r := range s.messages {
		s.shut(r)
	}
	for _, r := range s.tools {
		s.shut(r)
	}
	s.shut(s.compact)
	clear(s.messages)
	s.tools, s.compact = nil, nil
}

// leaveShell closes the rows of the person's own commands that still run: they belong to a session that has ended.
func (s *Session) leaveShell() {
	for key, p := range s.pending {
		s.shut(p.row)
		p.row = nil
		s.pending[key] = p
	}
}

// shut closes a row that will not come to its end.
func (s *Session) shut(r *Row) {
	if r != nil && r.Open {
		r.Open, r.Interrupted = false, true
		s.touch(r)
	}
}

// add makes the next row.
func (s *Session) add(kind RowKind) *Row {
	s.rows++
	r := &Row{N: s.rows, Kind: kind, At: s.now}
	rows := s.touched()
	*rows = append(*rows, r)
	return r
}

// touched is where rows that are new or changed are gathered.
func (s *Session) touched() *[]*Row {
	if s.fx.Was != nil {
		return &s.fx.Next
	}
	return &s.fx.Rows
}

func (s *Session) touch(r *Row) {
	rows := s.touched()
	for _, had := range slices.Backward(*rows) { // a history is long, and what changes in it is near its end
		if had == r {
			return
		}
	}
	*rows = append(*rows, r)
}

func (s *Session) notice(level, title, text string) *Row {
	r := s.add(NoticeRow)
	r.Level, r.Title = level, clip(title, maxLabel)
	if text != "" {
		b := Block{Kind: TextBlock}
		b.set(text)
		r.Blocks = []Block{b}
	}
	return r
}
