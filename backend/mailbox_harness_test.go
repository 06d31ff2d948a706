package backend

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// openBox is a house on a standing clock whose agents may write to each other.
func openBox(t testing.TB) (*house, *clock) {
	t.Helper()
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	h.set("inter_agent.enabled", true)
	return h, c
}

// set changes settings: key, value, key, value.
func (h *house) set(pairs ...any) {
	h.t.Helper()
	m := msg{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	h.operator().call("PATCH", "/v1/settings", m).want(http.StatusOK)
}

// peer is an agent that takes part between agents: it checks every document and every signature that it gets.
type peer struct {
	*client
	key signing.Key

	mu    sync.Mutex
	nonce map[string]bool // every jti it ever got
}

// peer enrols an agent that gets its signatures by HMAC.
func (h *house) peer(id string) *peer { h.t.Helper(); return h.peerWith(id, signing.AlgHMAC) }

func (h *house) peerWith(id, alg string) *peer {
	h.t.Helper()
	p := &peer{client: h.agentWith(id, alg), nonce: map[string]bool{}}
	p.key = signing.HMACKey([]byte(p.SigningSecret))
	if alg == signing.AlgEd25519 {
		public, err := base64.RawURLEncoding.DecodeString(p.PublicKey)
		if err != nil {
			h.t.Fatal(err)
		}
		p.key = signing.Ed25519Verifier(ed25519.PublicKey(public))
	}
	return p
}

// register opens a session; members say what it registers with.
func (p *peer) register(members ...msg) string {
	p.h.t.Helper()
	body := msg{}
	for _, m := range members {
		for k, v := range m {
			body[k] = v
		}
	}
	return p.call("POST", "/v1/sessions", body).want(http.StatusCreated).get("session", "id")
}

// to is a message to another agent; session "" names none.
func (p *peer) to(kind, dest, session string) msg {
	m := p.envelope(kind).with("to", dest)
	switch kind {
	case "ask":
		m["request"] = msg{"mode": "confirm"}
	case "task":
		m["action"] = msg{"instructions": "do it"}
	}
	if session != "" {
		m["agent"].(map[string]any)["session"] = session
	}
	return m
}

// send posts an addressed message and returns its id.
func (p *peer) send(m msg) string {
	p.h.t.Helper()
	r := p.call("POST", "/v1/messages", m).want(http.StatusAccepted)
	if r.get("destination", "state") == "" {
		p.h.t.Errorf("an addressed message was taken without saying how its destination is: %s", r.body)
	}
	return r.get("id")
}

// row is one entry as it was handed out, verified.
type row struct {
	kind   string
	key    string // what acknowledges it
	object json.RawMessage
	v      map[string]any
	t, jti string
}

func (r row) get(path ...string) string { return reply{t: nil, body: r.object}.pick(path...) }

func (r reply) pick(path ...string) string {
	var v any
	if json.Unmarshal(r.body, &v) != nil {
		return "?"
	}
	return walk(v, path)
}

// q is a query for the mailbox.
func q(session string, more ...string) string {
	v := url.Values{}
	if session != "" {
		v.Set("session", session)
	}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// drain collects what is there for a session ("" for none).
func (p *peer) drain(session string, more ...string) []row {
	p.h.t.Helper()
	r := p.call("GET", "/v1/inbox"+q(session, more...), nil).want(http.StatusOK)
	return p.rows(r.body, session)
}

func (p *peer) rows(body []byte, session string) []row {
	p.h.t.Helper()
	var got struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &got); err != nil || got.Messages == nil {
		p.h.t.Fatalf("a drain that lists nothing: %v: %s", err, body)
	}
	var all []row
	for _, raw := range got.Messages {
		all = append(all, p.verify(raw, session))
	}
	return all
}

// verify checks one row: its shape, its schema, its signature for this peer, and that the signature is a new one.
func (p *peer) verify(raw json.RawMessage, session string) row {
	t := p.h.t
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || len(members) != 2 || members["signature"] == nil {
		t.Fatalf("not one entry and its signature: %s", raw)
	}
	r := row{}
	for name, v := range members {
		if name != "signature" {
			r.kind, r.object = name, v
		}
	}
	fits(t, "ma2h/inbound-message", r.object)
	if err := json.Unmarshal(r.object, &r.v); err != nil {
		t.Fatal(err)
	}
	var header string
	if err := json.Unmarshal(members["signature"], &header); err != nil || !strings.HasPrefix(header, "MA2H-Signature: t=") {
		t.Fatalf("signature %s", members["signature"])
	}
	now, me := p.h.now(), "agent:"+p.AgentID+"#"+session
	var err error
	switch r.kind {
	case "directive":
		r.key = r.get("id")
		c, perr := signing.DirectiveOf(r.object)
		if err = perr; err == nil {
			err = c.Verify(p.key, header, now)
		}
	case "message":
		r.key = r.get("id")
		c, perr := signing.MessageEntryOf(r.object)
		if err = perr; err == nil {
			err = c.Verify(p.key, header, now)
		}
	case "response":
		r.key = r.get("resolution_id")
		c, perr := signing.ResponseEntryOf(r.object, me)
		if err = perr; err == nil {
			err = c.Verify(p.key, header, now)
		}
	case "receipt":
		r.key = r.get("id")
		c, perr := signing.ReceiptOf(r.object, me)
		if err = perr; err == nil {
			err = c.Verify(p.key, header, now)
		}
	default:
		t.Fatalf("an entry of kind %q", r.kind)
	}
	if err != nil {
		t.Errorf("%s %s: signature %q: %v", r.kind, r.key, header, err)
	}
	h, err := signing.ParseHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	r.t, r.jti = fmt.Sprint(h.T), h.JTI
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nonce[h.JTI] {
		t.Errorf("%s %s: jti %s came twice", r.kind, r.key, h.JTI)
	}
	p.nonce[h.JTI] = true
	return r
}

func keysOf(rows []row) []string {
	all := []string{}
	for _, r := range rows {
		all = append(all, r.key)
	}
	return all
}

func kindsOf(rows []row) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.kind)
	}
	return strings.Join(all, " ")
}

// consume acknowledges and returns how many it newly did.
func (p *peer) consume(session string, keys ...string) string {
	p.h.t.Helper()
	return p.call("POST", "/v1/inbox/ack"+q(session), msg{"ids": append([]string{}, keys...)}).want(http.StatusOK).get("acked")
}

// look is the submitter's pull.
func (p *peer) look(id string) reply {
	p.h.t.Helper()
	return p.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
}

// track is an addressed message's status, mailbox state and prior, as its submitter reads them.
func (p *peer) track(id string) string {
	p.h.t.Helper()
	r := p.look(id)
	s := r.get("status") + "/" + r.get("mailbox", "state")
	if v := r.get("mailbox", "prior"); v != "" {
		s += " prior " + v
	}
	if r.get("mailbox", "delivered_at") != "" {
		s += " seen"
	}
	return s
}

// session reads a session as its owner.
func (p *peer) session(id string) reply {
	p.h.t.Helper()
	return p.call("GET", "/v1/sessions/"+id, nil)
}

// tell authors a directive.
func (h *house) tell(to string, more ...msg) reply {
	h.t.Helper()
	m := msg{"to": to, "title": "Hold on"}
	for _, x := range more {
		for k, v := range x {
			m[k] = v
		}
	}
	return h.operator().call("POST", "/v1/directives", m)
}

// kill is the operator's close of a session.
func (h *house) kill(session string) reply {
	h.t.Helper()
	return h.operator().call("DELETE", "/v1/sessions/"+session, nil)
}

// stamp is a time as the wire writes it.
func stamp(t time.Time) string { return inbox.FormatTime(t) }

// sse is an open stream and what came on it.
type sse struct {
	p       *peer
	session string
	resp    *http.Response
	events  chan event
	cancel  context.CancelFunc
}

type event struct {
	name, id string
	row      row
}

// stream connects; the answer must be 200.
func (p *peer) stream(session string, header ...string) *sse {
	p.h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", p.h.hub.URL()+"/v1/inbox/stream"+q(session), nil)
	if err != nil {
		cancel()
		p.h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		cancel()
		p.h.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		cancel()
		p.h.t.Fatalf("stream: %d %v", resp.StatusCode, resp.Header)
	}
	s := &sse{p: p, session: session, resp: resp, events: make(chan event, 1000), cancel: cancel}
	p.h.t.Cleanup(s.close)
	go s.read()
	return s
}

func (s *sse) close() { s.cancel(); s.resp.Body.Close() }

// read takes the stream apart by the rules of server-sent events and no looser ones.
func (s *sse) read() {
	defer close(s.events)
	lines := bufio.NewScanner(s.resp.Body)
	lines.Buffer(nil, 8<<20)
	var e event
	var data []string
	for lines.Scan() {
		line := lines.Text()
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data == nil:
		case line == "":
			if len(data) != 1 {
				s.p.h.t.Errorf("an event of %d data lines", len(data))
			}
			e.row = s.p.verify([]byte(data[0]), s.session)
			s.events <- e
			e, data = event{}, nil
		case name == "": // a comment
		case name == "event":
			e.name = value
		case name == "id":
			e.id = value
		case name == "data":
			data = append(data, value)
		case name == "retry":
		default:
			s.p.h.t.Errorf("a line of no known field: %q", line)
		}
	}
}

// next waits for one more event; false: the stream ended.
func (s *sse) next() (event, bool) {
	s.p.h.t.Helper()
	select {
	case e, ok := <-s.events:
		return e, ok
	case <-time.After(patience):
		s.p.h.t.Fatal("nothing came on the stream, not even its end")
		return event{}, false
	}
}

// alike says whether two answers are the same to whoever gets them.
func alike(a, b reply) bool {
	same := func(name string) bool { return a.header.Get(name) == b.header.Get(name) }
	return a.status == b.status && bytes.Equal(a.body, b.body) && same("Retry-After") && same("WWW-Authenticate") && same("Content-Type")
}

// without is a JSON object without some members, for comparing the rest.
func without(t testing.TB, raw []byte, names ...string) string {
	t.Helper()
	out, err := wire.Without(raw, names...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := signing.Canonical(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}
