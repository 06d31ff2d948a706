package mapv1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"deskbell/backend/mapnet"
	"deskbell/backend/wire"
)

// Peer is another hub that the operator lists, and the way to it.
type Peer struct {
	System string
	URL    string // of the next hub on the way
	// Token proves us there. Unset says that the operator names a secret for it that there is not.
	Token string
	Unset bool
}

const (
	routeTime = 10 * time.Second // for an answer of another hub
	idleTime  = time.Minute      // after which a link that is not used is closed
)

// link is a connection to another hub, by which requests are answered. reader owns it.
type link struct {
	ws   *websocket.Conn
	url  string
	idle *time.Timer

	mu      sync.Mutex
	next    int
	waiting map[string]chan answer
	err     error // it ended
}

// answer is what another hub answered.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// links are the connections to other hubs, by the address and the token that they were made with.
type links struct {
	mu   sync.Mutex
	to   map[Peer]*slot
	all  map[*link]bool // that are read
	work sync.WaitGroup
	over bool
}

// slot holds the connection to one hub. Whoever makes it has the lock, so that who comes second uses what the first made.
type slot struct {
	mu   sync.Mutex
	link *link
}

func federationError(code int, reason, format string, args ...any) *mapnet.Error {
	e := &mapnet.Error{Code: code, Message: fmt.Sprintf(format, args...), Details: map[string]any{"reason": reason}}
	if code == mapnet.CodeFederationOff {
		e.RetryAfter = 5 * time.Second
	}
	return e
}

// link returns the connection to the next hub on the way to a peer, a new one if need be.
func (b *Binding) link(ctx context.Context, p Peer) (*link, error) {
	key := Peer{URL: p.URL, Token: p.Token}
	b.links.mu.Lock()
	to := b.links.to[key]
	if to == nil {
		to = &slot{}
		b.links.to[key] = to
	}
	b.links.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.link != nil && to.link.alive() {
		return to.link, nil
	}
	if p.Unset {
		return nil, federationError(mapnet.CodeFederationAuth, "no_secret", "Federation authentication failed: the operator has not set the secret for %s", p.System)
	}
	ws, err := b.Dial(ctx, p.URL)
	if err != nil {
		return nil, federationError(mapnet.CodeFederationOff, "unreachable", "Federation unavailable: %s cannot be reached", p.System)
	}
	ws.SetReadLimit(maxFrame)
	l := &link{ws: ws, url: p.URL, waiting: map[string]chan answer{}}
	l.idle = time.AfterFunc(idleTime, func() { l.end(errors.New("it was not used")) })
	if !b.own(l) {
		return nil, federationError(mapnet.CodeFederationOff, "stopping", "Federation unavailable: the hub is stopping")
	}
	if err := b.introduce(ctx, l, p); err != nil {
		l.end(err)
		return nil, err
	}
	to.link = l
	return l, nil
}

// own has a new link read, unless the hub stops.
func (b *Binding) own(l *link) bool {
	b.links.mu.Lock()
	defer b.links.mu.Unlock()
	if b.links.over {
		l.idle.Stop()
		_ = l.ws.CloseNow() // nobody hears of it
		return false
	}
	b.links.work.Go(func() {
		l.read()
		b.links.mu.Lock()
		delete(b.links.all, l)
		b.links.mu.Unlock()
	})
	b.links.all[l] = true
	return true
}

// introduce says who we are.
func (b *Binding) introduce(ctx context.Context, l *link, p Peer) error {
	own := b.System()
	hello := map[string]any{"protocolVersion": 1, "participantType": "gateway", "name": own}
	if p.Token != "" {
		hello["auth"] = map[string]string{"method": "bearer", "token": p.Token}
	}
	if _, err := l.ask(ctx, p, "map/connect", hello); err != nil {
		return err
	}
	out, err := l.ask(ctx, p, "map/federation/connect", map[string]any{"systemId": own, "endpoint": b.URL(), "protocolVersion": 1, "systemInfo": b.info()})
	if err != nil {
		return err
	}
	if ok, _ := wire.Get(out, "connected"); string(ok) != "true" {
		return federationError(mapnet.CodeFederationAuth, "not_accepted", "Federation authentication failed: %s does not know this hub", p.System)
	}
	return nil
}

func (l *link) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

// end closes a link, and lets everybody know who waits for an answer.
func (l *link) end(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	waiting := l.waiting
	l.waiting = map[string]chan answer{}
	l.mu.Unlock()
	for _, c := range waiting {
		close(c)
	}
	_ = l.ws.CloseNow() // which ends the reading
}

// read hands answers to who waits for them, until the link ends.
func (l *link) read() {
	defer l.idle.Stop()
	for {
		_, raw, err := l.ws.Read(context.Background())
		if err != nil {
			l.end(err)
			return
		}
		id, a, ok := readAnswer(raw)
		if !ok {
			continue // what is no answer is not for us
		}
		l.mu.Lock()
		c := l.waiting[id]
		delete(l.waiting, id)
		l.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
}

// readAnswer takes a frame of another hub apart; ok is false for what answers nothing.
func readAnswer(raw []byte) (id string, a answer, ok bool) {
	var f struct {
		ID json.RawMessage `json:"id"`
		answer
	}
	if wire.Check(raw, maxDepth) != nil || json.Unmarshal(raw, &f) != nil || len(f.ID) == 0 || (f.Error == nil) == (len(f.Result) == 0) {
		return "", a, false
	}
	return string(f.ID), f.answer, true
}

// ask asks another hub. Its refusals are handed on as they are; everything else says that there is no telling.
func (l *link) ask(ctx context.Context, p Peer, method string, params any) (json.RawMessage, error) {
	c := make(chan answer, 1)
	l.mu.Lock()
	l.next++
	id := strconv.Itoa(l.next)
	if l.err == nil {
		l.waiting[id] = c
	} else {
		close(c)
	}
	l.mu.Unlock()
	l.idle.Reset(idleTime)
	frame := encode(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	if err := l.ws.Write(ctx, websocket.MessageText, frame); err != nil {
		l.end(err)
		return nil, federationError(mapnet.CodeFederationOff, "unreachable", "Federation unavailable: %s cannot be reached", p.System)
	}
	select {
	case a, ok := <-c:
		switch {
		case !ok:
			return nil, federationError(mapnet.CodeFederationOff, "no_answer", "Federation unavailable: the connection to %s ended before it answered", p.System)
		case a.Error != nil:
			return nil, l.refused(p, a)
		}
		return a.Result, nil
	case <-ctx.Done():
		return nil, federationError(mapnet.CodeFederationOff, "no_answer", "Federation unavailable: %s did not answer in time", p.System)
	}
}

// refused is the refusal of another hub as one of ours.
func (l *link) refused(p Peer, a answer) error {
	code := a.Error.Code
	switch {
	case code >= 1000 && code < 2000:
		code = mapnet.CodeFederationAuth
	case code < 2000 || code >= 6000:
		code = mapnet.CodeRouteRejected
	}
	text := a.Error.Message
	if len(text) > 300 {
		text = text[:300]
	}
	return &mapnet.Error{Code: code, Message: p.System + ": " + text, Details: map[string]any{"reason": "refused_there", "system": p.System, "code": a.Error.Code}}
}

// closeLinks ends every link and waits for them.
func (b *Binding) closeLinks() {
	b.links.mu.Lock()
	b.links.over = true
	for l := range b.links.all {
		l.end(errors.New("the hub is stopping"))
	}
	b.links.mu.Unlock()
	b.links.work.Wait()
}
