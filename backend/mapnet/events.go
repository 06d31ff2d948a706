package mapnet

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
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
}

var everyone = Audience{All: true}

// hears says whether a participant may see what that audience may.
func (t *Tx) hears(p *participant, a Audience) bool {
	if a.All && a.Conversation == "" {
		return true
	}
	ids := t.ids(p)
	if slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(a.Names, id) }) {
		return true
	}
	if a.Conversation != "" {
		c := t.st.convs[a.Conversation]
		return c != nil && t.sees(p, c) && (a.Author == "" || t.reads(p, c, a.Author, a.Visibility, a.At))
	}
	if a.All || p.system() {
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
	o      SubscribeOptions
	seq    int64
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

// Subscribe begins a subscription. Its first event, and what was asked to be replayed, comes after the answer.
func (t *Tx) Subscribe(s *Session, q Subscribe) (map[string]any, error) {
	if len(s.p.subs) >= t.n.Limits.Subscriptions {
		return nil, refuse(CodeQuota, "Too many subscriptions")
	}
	var from int64
	var after string
	replay := len(q.ReplayFrom) > 0 && string(q.ReplayFrom) != "null"
	if replay {
		if json.Unmarshal(q.ReplayFrom, &after) != nil {
			n, err := strconv.ParseInt(string(q.ReplayFrom), 10, 64)
			if err != nil {
				return nil, badParam("/replayFrom", "must be a time in milliseconds or the id of an event")
			}
			from = n
		}
	}
	sub := &subscription{id: "sub-" + t.n.NewID(), p: s.p, filter: q.Filter, o: q.Options}
	var old []Event
	if replay {
		_, err := t.past(after, from, func(l Logged) bool {
			if t.wants(sub, l) {
				old = append(old, l.Event)
			}
			return len(old) < t.n.Limits.Events
		})
		if err != nil {
			return nil, err
		}
	}
	s.p.subs[sub.id], t.st.subs[sub.id] = sub, sub
	t.then(func() {
		for _, e := range old {
			t.push(sub, e)
		}
	})
	return map[string]any{"subscriptionId": sub.id}, nil
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
	l := Logged{e, a}
	t.events = append(t.events, l)
	t.change = true
	for _, sub := range t.st.subs {
		if t.wants(sub, l) {
			t.push(sub, e)
		}
	}
	return e.ID
}

// wants says whether a subscription is for an event.
func (t *Tx) wants(sub *subscription, l Logged) bool {
	if sub.o.ExcludeOwn && slices.Contains(t.ids(sub.p), l.Event.Source) {
		return false
	}
	return t.matches(sub.filter, l.Event) && t.hears(sub.p, l.Audience)
}

// push hands an event to a subscriber. The numbers of a subscription have no gap.
func (t *Tx) push(sub *subscription, e Event) {
	sub.seq++
	if sub.o.IncludePayloads != nil && !*sub.o.IncludePayloads {
		e.Data = withoutPayload(e.Data)
	}
	params := map[string]any{"subscriptionId": sub.id, "sequenceNumber": sub.seq, "eventId": e.ID, "timestamp": e.Timestamp, "event": e}
	if len(e.CausedBy) > 0 {
		params["causedBy"] = e.CausedBy
	}
	t.notify(sub.p, "map/event", params)
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
func (t *Tx) notify(p *participant, method string, params any) {
	conn := p.conn
	if conn == nil {
		return
	}
	frame := encode(struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	t.after(func() { conn.Send(frame) })
}

// Send has a frame go to a connection in its place among what acts tell.
func (t *Tx) Send(conn Peer, frame []byte) { t.after(func() { conn.Send(frame) }) }

// encode writes JSON as it goes over the wire. What it is given can always be written.
func encode(v any) Raw {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Replay asks for events of the past.
type Replay struct {
	After  string  `json:"afterEventId"`
	From   int64   `json:"fromTimestamp"`
	To     int64   `json:"toTimestamp"`
	Filter *Filter `json:"filter"`
	Limit  int     `json:"limit"`
}

// Replay answers with events of the past that the caller may see, oldest first.
func (t *Tx) Replay(s *Session, q Replay) (map[string]any, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, 1000)
	sub := &subscription{p: s.p, filter: q.Filter}
	list := []map[string]any{}
	more := false
	known, err := t.past(q.After, q.From, func(l Logged) bool {
		if q.To != 0 && l.Event.Timestamp > q.To {
			return false
		}
		if !t.wants(sub, l) {
			return true
		}
		if len(list) == limit {
			more = true
			return false
		}
		e := map[string]any{"eventId": l.Event.ID, "timestamp": l.Event.Timestamp, "event": l.Event}
		if len(l.Event.CausedBy) > 0 {
			e["causedBy"] = l.Event.CausedBy
		}
		list = append(list, e)
		return true
	})
	result := map[string]any{"events": list, "hasMore": more}
	if !known {
		result["_meta"] = map[string]any{"unknownEventId": true, "from": "oldest"}
	}
	return result, err
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
