package mapnet

import (
	"encoding/json"
	"slices"
	"strconv"

	"deskbell/backend/wire"
)

// Audience is who may see an event: everybody, or whoever goes by one of the names, is in one of the scopes, or may read
// the turn in the conversation.
type Audience struct {
	All          bool        `json:"all,omitempty"`
	Names        []string    `json:"names,omitempty"`
	Scopes       []string    `json:"scopes,omitempty"`
	Conversation string      `json:"conversation,omitempty"`
	Author       string      `json:"author,omitempty"`
	Visibility   *Visibility `json:"visibility,omitempty"`
	At           int64       `json:"at,omitempty"`
	// Below is when the turn was said that the event is about; 0: it is about none.
	Below int64 `json:"below,omitempty"`
	// Only says that not even the operator may.
	Only bool `json:"only,omitempty"`
	// And is another audience that one must be of as well.
	And *Audience `json:"and,omitempty"`
}

var everyone = Audience{All: true}

// and is whoever is of both audiences.
func (a Audience) and(b Audience) Audience {
	switch {
	case b.All:
		return a
	case a.All && a.Conversation == "":
		return b
	}
	a.And = &b
	return a
}

// hears says whether a participant may see what that audience may.
func (t *Tx) hears(p *participant, a Audience) bool {
	if a.And != nil && !t.hears(p, *a.And) {
		return false
	}
	if a.All && a.Conversation == "" {
		return true
	}
	ids := t.ids(p)
	if slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(a.Names, id) }) {
		return true
	}
	if a.Conversation != "" {
		c := t.st.convs[a.Conversation]
		return c != nil && t.sees(p, c) && c.readable(ids, a.Author, a.Visibility, a.At) && (a.Below == 0 || c.readable(ids, a.Author, a.Visibility, a.Below))
	}
	if a.All || p.system() && !a.Only {
		return true
	}
	return slices.ContainsFunc(a.Scopes, func(id string) bool {
		s := t.st.scopes[id]
		return s != nil && slices.ContainsFunc(ids, s.has)
	})
}

// subscription is one wish for events.
type subscription struct {
	id     string
	p      *participant
	filter *Filter
	size   int // of that, in bytes
	o      SubscribeOptions
	seq    int64
	// live says that events are pushed as they happen. One that is not gets them page by page from what is kept, from the
	// event after last on, or from that time on.
	live    bool
	last    string
	from    int64
	acks    bool  // its client says how far it has read
	acked   int64 // up to this number
	pending bool  // somebody is asked to go on with it
}

// SubscribeOptions are what published clients send besides a filter.
type SubscribeOptions struct {
	IncludePayloads *bool `json:"includeMessagePayloads"`
	ExcludeOwn      bool  `json:"excludeOwnEvents"`
}

// Subscribe is the wish for events: as they happen, and from some point on.
type Subscribe struct {
	Filter     *Filter          `json:"filter"`
	ReplayFrom Raw              `json:"replayFrom"`
	Options    SubscribeOptions `json:"options"`
}

// How events of the past are read: so many at a time, that nobody waits long for the network meanwhile, and at most so
// many on their way to a client that says how far it has read.
const (
	pageOf    = 500
	pageBytes = 8 << 20  // of one answer
	maxFilter = 64 << 10 // of all of one participant: every event is held against them
	ahead     = 1000
	// An act tells one connection of events by so many bytes, and all connections together by so many: what is more they
	// get page by page from what is kept, a page of which has so many bytes.
	pushBytes    = 4 << 20
	pushAllBytes = 32 << 20
	catchUpBytes = 1 << 20
)

// Subscribe begins a subscription. Its first event comes after the answer. behind says that there is something to catch
// up with first.
func (t *Tx) Subscribe(s *Session, q Subscribe) (out map[string]any, behind bool, err error) {
	if len(s.p.subs) >= t.n.Limits.Subscriptions {
		return nil, false, refuse(CodeQuota, "Too many subscriptions")
	}
	size := 0
	if q.Filter != nil {
		size = len(encode(q.Filter))
	}
	all := size
	for _, other := range s.p.subs {
		all += other.size
	}
	if all > maxFilter {
		return nil, false, refuse(CodeQuota, "The filters of one participant may be %d bytes long together", maxFilter)
	}
	sub := &subscription{id: "sub-" + t.n.NewID(), p: s.p, filter: q.Filter, size: size, o: q.Options, live: true}
	if len(q.ReplayFrom) > 0 && string(q.ReplayFrom) != "null" {
		if json.Unmarshal(q.ReplayFrom, &sub.last) != nil {
			if sub.from, err = strconv.ParseInt(string(q.ReplayFrom), 10, 64); err != nil {
				return nil, false, badParam("/replayFrom", "must be a time in milliseconds or the id of an event")
			}
		}
		sub.live, sub.pending = false, true
	}
	s.p.subs[sub.id], t.st.subs[sub.id] = sub, sub
	return map[string]any{"subscriptionId": sub.id}, !sub.live, nil
}

// CatchUp goes on with a subscription that is behind: it returns the next frames for it, and whether there are more. After
// the last ones it is live again; those have their place among what is told already.
func (t *Tx) CatchUp(s *Session, id string) (frames [][]byte, more bool, err error) {
	sub := s.p.subs[id]
	if sub == nil || sub.live {
		return nil, false, nil
	}
	if sub.full() {
		sub.pending = false // its client's next word goes on with it
		return nil, false, nil
	}
	n, bytes, looked := 0, 0, 0
	_, err = t.past(sub.last, sub.from, func(l Logged) bool {
		if n++; n > pageOf || bytes > catchUpBytes || looked > pageBytes {
			more = true
			return false
		}
		sub.last = l.Event.ID
		looked += len(l.Event.Data)
		if t.wants(sub, l) {
			frame := sub.frame(&telling{Event: l.Event})
			frames = append(frames, frame)
			bytes += len(frame)
		}
		return true
	})
	if err != nil {
		return nil, false, err
	}
	if !more {
		sub.live, sub.pending = true, false
		conn := sub.p.conn
		for _, frame := range frames {
			if conn != nil {
				t.Send(conn, frame)
			}
		}
		return nil, false, nil
	}
	return frames, true, nil
}

// full says whether as much is on its way as the client lets be.
func (sub *subscription) full() bool { return sub.acks && sub.seq-sub.acked >= ahead }

// Acknowledge notes how far a client has read. behind says that its subscription waited for that.
func (t *Tx) Acknowledge(s *Session, id string, upTo int64) (behind bool) {
	sub := s.p.subs[id]
	if sub == nil || upTo > sub.seq {
		return false
	}
	sub.acks, sub.acked = true, max(sub.acked, upTo)
	if sub.live || sub.pending || sub.full() {
		return false
	}
	sub.pending = true
	return true
}

// Unsubscribe ends a subscription.
func (t *Tx) Unsubscribe(s *Session, id string) map[string]any {
	sub := s.p.subs[id]
	if sub == nil {
		return map[string]any{"unsubscribed": false}
	}
	delete(s.p.subs, id)
	delete(t.st.subs, id)
	return map[string]any{"unsubscribed": true, "subscription": map[string]any{"id": id, "closedAt": t.now}}
}

func (t *Tx) unsubscribeAll(p *participant) {
	for id := range p.subs {
		delete(t.st.subs, id)
	}
	clear(p.subs)
}

// emit has something happen, and returns its id.
func (t *Tx) emit(e Event, data any, a Audience) string {
	e.ID, e.Timestamp, e.Data = t.n.NewID(), t.now, encode(data)
	l := Logged{Event: e, Audience: a}
	l.Role, l.Roles = t.roles(e, data)
	told := &telling{Event: e}
	known := l
	known.facts = new(*facts)
	for _, sub := range t.st.subs {
		if sub.live && t.wants(sub, known) {
			t.push(sub, told)
		}
	}
	t.events = append(t.events, l)
	t.change = true
	return e.ID
}

// wants says whether a subscription is for an event.
func (t *Tx) wants(sub *subscription, l Logged) bool {
	if sub.p.Stopped != "" || sub.o.ExcludeOwn && slices.Contains(t.ids(sub.p), l.Event.Source) {
		return false
	}
	return t.matches(sub.filter, l) && t.hears(sub.p, l.Audience)
}

// push hands an event to a subscriber. One that reads too slowly for it, or whose connection is told too much at once, gets
// it from what is kept, when it has caught up: the numbers of a subscription have no gap.
func (t *Tx) push(sub *subscription, e *telling) {
	conn := sub.p.conn
	if conn == nil {
		return
	}
	size := len(e.of(sub))
	had := t.pushed[conn]
	much := had > 0 && had+size > pushBytes || t.pushedAll > 0 && t.pushedAll+size > pushAllBytes
	if slow := much || conn.Behind(); slow || sub.full() {
		sub.live, sub.last, sub.from = false, t.latest(), e.Timestamp
		if slow {
			sub.pending = true
			id := sub.id
			t.after(func() { conn.CatchUp(id) })
		}
		return
	}
	if t.pushed == nil {
		t.pushed = map[Peer]int{}
	}
	t.pushed[conn] += size
	t.pushedAll += size
	frame := sub.frame(e)
	t.after(func() { conn.Send(frame) })
}

// telling is an event on its way to subscribers, written once for all of them.
type telling struct {
	Event
	whole, short Raw
}

// of is the event as a subscription gets it: with what messages say, or without.
func (e *telling) of(sub *subscription) Raw {
	if sub.o.IncludePayloads == nil || *sub.o.IncludePayloads {
		if e.whole == nil {
			e.whole = encode(e.Event)
		}
		return e.whole
	}
	if e.short == nil {
		short := e.Event
		short.Data = withoutPayload(e.Data)
		e.short = encode(short)
	}
	return e.short
}

// latest is the id of the event before the one that happens now; empty: there is none that is known of.
func (t *Tx) latest() string {
	if len(t.events) > 0 {
		return t.events[len(t.events)-1].Event.ID
	}
	return t.st.latest
}

// frame is the next notification of a subscription.
func (sub *subscription) frame(e *telling) []byte {
	sub.seq++
	params := []wire.Member{{Name: "subscriptionId", Value: encode(sub.id)}, {Name: "sequenceNumber", Value: encode(sub.seq)}, {Name: "eventId", Value: encode(e.ID)},
		{Name: "timestamp", Value: encode(e.Timestamp)}}
	if len(e.CausedBy) > 0 {
		params = append(params, wire.Member{Name: "causedBy", Value: encode(e.CausedBy)})
	}
	params = append(params, wire.Member{Name: "event", Value: e.of(sub)})
	return wire.Compose([]wire.Member{{Name: "jsonrpc", Value: encode("2.0")}, {Name: "method", Value: encode("map/event")}, {Name: "params", Value: wire.Compose(params)}})
}

func withoutPayload(data Raw) Raw {
	var m map[string]Raw
	if json.Unmarshal(data, &m) != nil {
		return data
	}
	delete(m, "payload")
	var message map[string]Raw
	if json.Unmarshal(m["message"], &message) == nil && message != nil {
		delete(message, "payload")
		m["message"] = encode(message)
	}
	return encode(m)
}

// notify sends a notification to a participant, after the commit.
func (t *Tx) notify(p *participant, frame []byte) {
	if conn := p.conn; conn != nil && p.Stopped == "" {
		t.after(func() { conn.Send(frame) })
	}
}

// notification is a frame that asks for nothing.
func notification(method string, params any) []byte {
	return encode(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}

// Send has a frame go to a connection in its place among what acts tell.
func (t *Tx) Send(conn Peer, frame []byte) { t.after(func() { conn.Send(frame) }) }

// encode writes JSON as it goes over the wire. What it is given can always be written.
func encode(v any) Raw {
	raw, err := wire.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Replay asks for events of the past.
type Replay struct {
	After  string  `json:"afterEventId"`
	From   int64   `json:"fromTimestamp"`
	To     int64   `json:"toTimestamp"`
	Filter *Filter `json:"filter"`
	Limit  int     `json:"limit"`
}

// Replay answers with events of the past that the caller may see, oldest first. It looks at so many at a time: as long as
// more is true, it is to be asked again with the same answer, which it adds to, and goes on from q.After.
func (t *Tx) Replay(s *Session, q *Replay, out *Replayed) (more bool, err error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, 1000)
	if q.Filter != nil && len(encode(q.Filter)) > maxFilter {
		return false, refuse(CodeQuota, "A filter may be %d bytes long", maxFilter)
	}
	sub := &subscription{p: s.p, filter: q.Filter}
	n, looked := 0, 0
	last := q.After
	known, err := t.past(q.After, q.From, func(l Logged) bool {
		if q.To != 0 && l.Event.Timestamp > q.To {
			return false
		}
		if n++; n > pageOf || looked > pageBytes {
			more = true
			return false
		}
		looked += len(l.Event.Data)
		if t.wants(sub, l) {
			if len(out.Events) == limit || out.bytes > pageBytes {
				out.More = true
				return false
			}
			out.bytes += len(l.Event.Data)
			e := map[string]any{"eventId": l.Event.ID, "timestamp": l.Event.Timestamp, "event": l.Event}
			if len(l.Event.CausedBy) > 0 {
				e["causedBy"] = l.Event.CausedBy
			}
			out.Events = append(out.Events, e)
		}
		last = l.Event.ID
		return true
	})
	if !out.begun {
		out.begun, out.unknown = true, !known
	}
	q.After = last
	return more, err
}

// Replayed is what Replay has found so far.
type Replayed struct {
	Events         []map[string]any
	More           bool
	bytes          int
	begun, unknown bool
}

// Result is it as its asker gets it.
func (r *Replayed) Result() map[string]any {
	out := map[string]any{"events": append([]map[string]any{}, r.Events...), "hasMore": r.More}
	if r.unknown {
		out["_meta"] = map[string]any{"unknownEventId": true, "from": "oldest"}
	}
	return out
}

// past hands events to fn, those that are kept and then those that are about to be.
func (t *Tx) past(after string, from int64, fn func(Logged) bool) (known bool, err error) {
	recent := t.events
	if after != "" {
		if i := slices.IndexFunc(recent, func(l Logged) bool { return l.Event.ID == after }); i >= 0 {
			for _, l := range recent[i+1:] {
				if !fn(l) {
					break
				}
			}
			return true, nil
		}
	}
	going := true
	if known, err = t.n.Store.Events(t.ctx, after, from, func(l Logged) bool { going = fn(l); return going }); err != nil {
		return known, err
	}
	for _, l := range recent {
		if going && (after != "" || l.Event.Timestamp >= from) {
			going = fn(l)
		}
	}
	return known || after == "", nil
}
