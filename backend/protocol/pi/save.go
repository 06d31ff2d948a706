package pi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/transcript"
	"deskbell/backend/wire"
)

const (
	// beat is how often what moved is written down, and the clock looked at.
	beat = 100 * time.Millisecond
	// grace is how long a pi that asks something may say nothing more, not even who it is, before it gets a name of the hub's
	// making: pi cannot say it while an extension of its waits for the person.
	grace = time.Second
	// patience is how long any other may take: it may be slow to start, or behind a relay that has much to hand over.
	patience = time.Minute
	// present is how often a pi counts as seen.
	present = 15 * time.Second
)

// keep writes down what moves, and lets time pass, until the pi has ended.
func (l *live) keep() {
	ticks, seen := time.NewTicker(beat), time.NewTicker(present)
	defer ticks.Stop()
	defer seen.Stop()
	for {
		select {
		case <-ticks.C:
			l.tick()
			l.save(l.ctx, l.nameless())
			l.askStats()
		case <-seen.C:
			if agent := l.agent(); agent != "" {
				l.b.Fleet.Seen(agent)
			}
			if l.silent() {
				l.b.OnChange() // the page says for how long
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// nameless says that a session cannot wait any longer for its own name: it was asked for that, and has answered without.
func (l *live) nameless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.b.Now()
	return l.cur.said.Add(grace).Before(now) && !l.cur.said.IsZero() || now.Sub(l.cur.began) > patience || len(l.s.Asks()) > 0 && now.Sub(l.heard) > grace
}

// silent says that nothing is heard of a pi that is at work.
func (l *live) silent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.Busy() && l.b.Now().Sub(l.heard) >= present
}

// askStats asks what the session has cost, when it has come to rest.
func (l *live) askStats() {
	l.mu.Lock()
	wanted := l.stats
	l.stats = false
	l.mu.Unlock()
	if wanted {
		_, _ = l.send(l.epoch(), pirpc.Command{Type: "get_session_stats"}) // without it the page says less
	}
}

func (l *live) agent() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur.agent
}

// save writes down what moved. anyway says that a session without a name of its own gets one now.
func (l *live) save(ctx context.Context, anyway bool) {
	l.mu.Lock()
	replaced := slices.Clone(l.saves)
	cur, over := l.cur, l.cur.over
	l.mu.Unlock()
	for _, e := range append(replaced, cur) {
		over := over || e != cur
		if err := l.saveEpoch(ctx, e, over, anyway || over); err != nil && ctx.Err() == nil {
			l.b.Log.Error("a session cannot be written down", "protocol", Name, "err", err)
			return
		}
		if e != cur {
			l.endRules(ctx, e.key)
			l.b.bounce(ctx)
			l.mu.Lock()
			l.saves = slices.DeleteFunc(l.saves, func(x *epoch) bool { return x == e })
			l.mu.Unlock()
		}
	}
}

func (l *live) saveEpoch(ctx context.Context, e *epoch, over, anyway bool) error {
	select {
	case <-e.ready:
	default:
		l.mu.Lock()
		id := l.s.Info.SessionID
		if e.was != nil {
			id = e.was.SessionID
		}
		wanted := !e.said.IsZero() || len(e.dirty) > 0 || len(l.s.Asks()) > 0
		failed := over && !l.s.Ready()
		l.mu.Unlock()
		if failed {
			return nil // it never came up: whoever started it is told why, and there is nothing to keep
		}
		if id == "" && !(anyway && (wanted || over)) {
			return nil
		}
		if err := l.enrol(ctx, e, id, over); errors.Is(err, errLeaving) {
			return nil
		} else if err != nil {
			return err
		}
		if err := l.b.Transcripts.Put(ctx, l.record(e)); err != nil { // whoever waits for it finds it
			return err
		}
		close(e.ready)
	}
	if l.recalls(e) {
		return nil
	}
	rows, moved, err := l.gather(e)
	if err != nil || (len(rows) == 0 && !moved) {
		return err
	}
	if err := l.b.Transcripts.Put(ctx, l.record(e)); err != nil {
		return err
	}
	if err := l.b.Transcripts.PutRows(ctx, Name, e.key, rows); err != nil {
		return err
	}
	l.b.OnChange()
	return nil
}

// errRevoked: the operator keeps this session out.
var errRevoked = errors.New("this session was revoked")

// errLeaving: what had that session before is not done with it yet.
var errLeaving = errors.New("the session is being left")

// enrol makes a session a peer and finds what is there of it. Its name is pi's own; one that is taken by another
// process, or not known, is made. now says that it cannot wait for one that is about to be free.
func (l *live) enrol(ctx context.Context, e *epoch, id string, now bool) error {
	if l.enrolled(e) {
		return nil
	}
	resume := l.resume
	if resume != "" && e == l.epoch() {
		id, l.resume = resume, "" // the same session, whatever pi calls it now
	}
	id = cmp.Or(id, "s-"+strings.ToLower(inbox.RandomName()[:12]))
	agent := fleet.PeerID(Name, id)
	key := strings.TrimPrefix(agent, Name+"/")
	l.b.mu.Lock()
	if other := l.b.byKey[key]; other != nil && other != l {
		if other.exiting.Load() && !now {
			l.b.mu.Unlock()
			l.resume = resume
			return errLeaving
		}
		agent = fleet.PeerID(Name, id+"+"+strings.ToLower(inbox.RandomName()[:6]))
		key = strings.TrimPrefix(agent, Name+"/")
		defer l.beside(e, other)
	}
	maps.DeleteFunc(l.b.byKey, func(_ string, other *live) bool { return other == l }) // of the session before it
	l.b.byKey[key] = l
	l.b.mu.Unlock()
	peer, err := l.b.Fleet.Peer(ctx, agent, Name)
	if err != nil {
		return err
	}
	if !peer.RevokedAt.IsZero() {
		l.end(errRevoked.Error())
		return errRevoked
	}
	if err := l.watchLeave(e, agent); err != nil {
		return err
	}
	had, err := l.b.Transcripts.Get(ctx, Name, key)
	if err != nil && !errors.Is(err, transcript.ErrUnknown) {
		return err
	}
	newest, err := l.b.newest(ctx, had)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.offset, e.agent, e.key, e.since = had.Rows, agent, key, l.b.Now()
	e.told = slices.ContainsFunc(newest, func(r *pirpc.Row) bool { return r.Kind == pirpc.UserRow || r.Kind == pirpc.AssistantRow })
	if l.again {
		e.left = leftOpen(newest)
	}
	l.again = false // for the session that is there now; another one in its place has nothing of before
	opened := had.OpenedAt
	if opened.IsZero() {
		opened = e.began
	}
	e.rec = transcript.Session{Protocol: Name, ID: key, Agent: agent, Title: had.Title, Folder: l.folder, File: had.File, Args: l.args, Origin: l.origin, OpenedAt: opened, Rows: had.Rows, Ended: e.rec.Ended}
	e.moved = true
	if e == l.cur && had.Rows > 0 {
		l.s.Known(had.LastSeen, newest)
	}
	l.began(e, had)
	return nil
}

// began takes over with what a session began: that, and no later prompt, is what it is called where nobody named it.
// l.mu is held.
func (l *live) began(e *epoch, had transcript.Session) {
	var was pirpc.Info
	first := had.Title // all there is to know of one that was only read
	if json.Unmarshal(had.Info, &was) == nil {
		first = was.FirstPrompt
	}
	if first == "" {
		return
	}
	now := e.was
	if e == l.cur {
		now = &l.s.Info
	}
	if now != nil {
		now.FirstPrompt = first
	}
}

// beside says of two that run the same session that they do: what each of them says is not the other's.
func (l *live) beside(e *epoch, other *live) {
	if e != l.epoch() || other.exiting.Load() {
		return
	}
	const both = "another pi runs this session, too: both write to one file, and neither knows what the other says. End one of them"
	l.note(both)
	other.note(both)
}

func (l *live) enrolled(e *epoch) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.key != ""
}

// watchLeave ends the pi when the operator revokes its session.
func (l *live) watchLeave(e *epoch, agent string) error {
	if e.ctx.Err() != nil {
		return nil // it is over already
	}
	enrolled, free, err := l.b.Fleet.WhileEnrolled(e.ctx, agent)
	if err != nil {
		return err
	}
	l.work.Go(func() {
		<-enrolled.Done()
		free()
		if e.ctx.Err() != nil {
			return
		}
		l.end(errRevoked.Error())
	})
	return nil
}

// gather takes the rows that changed, as they are now.
func (l *live) gather(e *epoch) (rows []transcript.Row, moved bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range e.dirty {
		stored, err := e.storedRow(r)
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, stored)
	}
	slices.SortFunc(rows, func(a, b transcript.Row) int { return a.N - b.N })
	e.written = e.written || len(rows) > 0
	clear(e.dirty)
	moved, e.moved = e.moved, false
	return rows, moved, nil
}

// storedRow is a row as it is written down, after offset others.
func storedRow(r *pirpc.Row, offset int) (transcript.Row, error) {
	stored := *r
	stored.N += offset
	body, err := wire.Marshal(stored)
	return transcript.Row{N: stored.N, Kind: string(r.Kind), At: r.At, Body: body, Text: r.Text()}, err
}

// record is a session as it is written down.
func (l *live) record(e *epoch) transcript.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.b.Now()
	e.rec.LastSeen = now
	i := e.was
	if e == l.cur {
		i = &l.s.Info
	}
	if i != nil {
		e.rec.Title = oneLine(cmp.Or(i.Name, i.Title, i.FirstPrompt, e.rec.Title), maxTitle)
		e.rec.File = cmp.Or(i.SessionFile, e.rec.File)
		k := kept{Info: *i}
		if l.started != e.rec.Folder {
			k.Started = []byte(l.started)
		}
		if raw, err := wire.Marshal(k); err == nil {
			e.rec.Info = raw
		}
	}
	if e.over {
		e.rec.EndedAt, e.rec.Gone = now, e.rec.Gone || e != l.cur
		e.rec.Ended = cmp.Or(e.rec.Ended, "another session took its place")
	}
	return e.rec
}

// kept is what is known of a session, and the folder that its pi was started in, byte for byte, where it works in another:
// its arguments mean their files from there.
type kept struct {
	pirpc.Info
	Started []byte `json:"started,omitempty"`
}

// startedIn is the folder in which the pi of a session was started.
func startedIn(had transcript.Session) string {
	var k kept
	_ = json.Unmarshal(had.Info, &k) // one that was only read has none
	return cmp.Or(string(k.Started), had.Folder)
}

// endRules ends the rules that were for a session alone, which has ended.
func (l *live) endRules(ctx context.Context, key string) {
	if key == "" {
		return
	}
	if err := l.b.Gate.EndSession(ctx, Name, key); err != nil {
		l.b.Log.Error("rules of a session that ended", "protocol", Name, "err", err)
	}
}

// bounce ends what waits for sessions that have ended: nobody will collect it.
func (b *Binding) bounce(ctx context.Context) {
	if err := b.Mailbox.Bounce(ctx); err != nil && ctx.Err() == nil {
		b.Log.Error("what waits for sessions that have ended", "protocol", Name, "err", err)
	}
}

// forget takes the session out of those that run.
func (l *live) forget() {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	for key, other := range l.b.byKey {
		if other == l {
			delete(l.b.byKey, key)
		}
	}
}

const maxTitle = 200

// oneLine is text on one line, without what a terminal would obey, cut to n bytes.
func oneLine(text string, n int) string {
	return brief.Cut(brief.Line(pirpc.Plain(text)), n)
}
