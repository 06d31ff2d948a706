package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// mapPeer is a program that speaks MAP. It checks every frame that it gets against the schema.
type mapPeer struct {
	t      testing.TB
	ws     *websocket.Conn
	mu     sync.Mutex
	next   int
	calls  map[string]chan mapFrame
	method map[string]string // by id
	notes  chan mapFrame     // notifications, in order
	closed chan struct{}
	code   websocket.StatusCode
	me     string // its agent, or its participant
	// heard, once it is set, gets every notification as it came, instead of notes; it is not held against the schema.
	heard atomic.Pointer[func(raw []byte)]
	hello mapFrame
}

// mapFrame is one frame of the hub's.
type mapFrame struct {
	raw    []byte
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

func (f mapFrame) get(path ...string) string { return walk(f.Result, path) }

func (f mapFrame) said(path ...string) string { return walk(f.Params, path) }

// dialMAP opens a connection that has not said anything.
func (h *house) dialMAP(path string) *mapPeer {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(h.hub.URL(), "http")+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	p := &mapPeer{t: h.t, ws: ws, calls: map[string]chan mapFrame{}, method: map[string]string{}, notes: make(chan mapFrame, 10_000), closed: make(chan struct{})}
	go p.read()
	h.t.Cleanup(func() { _ = ws.CloseNow(); <-p.closed })
	return p
}

// mapAgent is an agent that is registered; more are members of its registration.
func (h *house) mapAgent(name string, more ...msg) *mapPeer {
	h.t.Helper()
	p := h.dialMAP("/map")
	p.hello = p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "name": name})
	q := msg{"name": name}
	for _, m := range more {
		for k, v := range m {
			q[k] = v
		}
	}
	p.me = p.do("map/agents/register", q).get("agent", "id")
	return p
}

// mapClient is a client, which observes.
func (h *house) mapClient(name string) *mapPeer {
	h.t.Helper()
	p := h.dialMAP("/ws/map?token=")
	p.hello = p.do("map/connect", msg{"protocolVersion": 1, "participantType": "client", "name": name})
	p.me = p.hello.get("participantId")
	return p
}

func (p *mapPeer) read() {
	defer close(p.closed)
	for {
		_, raw, err := p.ws.Read(context.Background())
		if err != nil {
			p.code = websocket.CloseStatus(err)
			return
		}
		if heard := p.heard.Load(); heard != nil && bytes.HasPrefix(raw, []byte(`{"jsonrpc":"2.0","method"`)) {
			(*heard)(raw)
			continue
		}
		f := mapFrame{raw: raw}
		if err := json.Unmarshal(raw, &f); err != nil {
			p.t.Errorf("frame %s: %v", raw, err)
			continue
		}
		if f.Method != "" {
			p.conforms(f.Method, raw)
			p.notes <- f
			continue
		}
		p.mu.Lock()
		c, method := p.calls[string(f.ID)], p.method[string(f.ID)]
		p.mu.Unlock()
		p.conforms(method, raw)
		if c != nil {
			c <- f
		}
	}
}

// conforms checks a frame against the schema, but for what published clients want besides it.
func (p *mapPeer) conforms(method string, raw []byte) {
	set, err := loadSchemas()
	if err != nil {
		p.t.Error(err)
		return
	}
	var doc map[string]any
	if json.Unmarshal(raw, &doc) != nil {
		return
	}
	plain(doc)
	name := map[string]string{"map/event": "map/EventNotification", "map/message": "map/MessageNotification"}[method]
	body := doc
	if result, ok := doc["result"].(map[string]any); ok {
		if request, known := set.MAPMethods()[method]; known {
			name, body = "map/"+strings.TrimSuffix(request, "Request")+"Response", result
		}
	}
	if name == "map/EventNotification" && !mapEnum[walk(doc, []string{"params", "event", "type"})] {
		return // what the schema does not know is for those who ask for it
	}
	check := func(name string, v any) {
		text, _ := json.Marshal(v)
		bad, err := set.Validate(name, text)
		if err != nil || len(bad) > 0 {
			p.t.Errorf("%s as %s: %v %v", text, name, bad, err)
		}
	}
	if name != "" && !(method == "map/auth/refresh" && body["success"] == false) {
		check(name, body)
	}
	if _, notice := doc["method"]; !notice && doc["id"] != nil { // without an id it answers what nobody could read (JSON-RPC)
		check("map/map", doc)
	}
}

// mapEnum is the schema's own event types.
var mapEnum = func() map[string]bool {
	all := map[string]bool{}
	for _, t := range strings.Fields(`agent_registered agent_state_changed agent_environment_changed agent_unregistered message_sent message_delivered
		message_failed scope_created scope_deleted scope_member_joined scope_member_left system_error federation_connected federation_disconnected
		mail.created mail.closed mail.participant.joined mail.participant.left mail.turn.added mail.turn.updated mail.thread.created mail.summary.generated`) {
		all[t] = true
	}
	return all
}()

// plain takes the time out of messages: published clients want it there and the schema does not.
func plain(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if to, ok := m["to"].(map[string]any); ok && to["children"] == true {
		m["to"] = map[string]any{"children": true} // several kinds of relatives at once are more than the schema has
	}
	for k, x := range m {
		if inner, ok := x.(map[string]any); ok && k == "message" && inner["from"] != nil {
			delete(inner, "timestamp")
			if meta, ok := inner["meta"].(map[string]any); ok {
				delete(meta, "protocol")
			}
		}
		plain(x)
	}
}

// send asks and does not wait.
func (p *mapPeer) send(method string, params any) chan mapFrame {
	p.t.Helper()
	p.mu.Lock()
	p.next++
	id := fmt.Sprint(p.next)
	c := make(chan mapFrame, 1)
	p.calls[id], p.method[id] = c, method
	p.mu.Unlock()
	m := msg{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		m["params"] = params
	}
	text, err := json.Marshal(m)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(text)
	return c
}

func (p *mapPeer) write(text []byte) {
	p.t.Helper()
	if err := p.ws.Write(context.Background(), websocket.MessageText, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *mapPeer) wait(c chan mapFrame) mapFrame {
	p.t.Helper()
	select {
	case f := <-c:
		return f
	case <-p.closed:
		select {
		case f := <-c:
			return f
		default:
		}
		p.t.Fatal("the connection was closed")
	case <-time.After(20 * time.Second):
		p.t.Fatal("no answer came")
	}
	return mapFrame{}
}

// ask asks and returns what comes back.
func (p *mapPeer) ask(method string, params any) mapFrame {
	p.t.Helper()
	return p.wait(p.send(method, params))
}

// do asks for what must succeed.
func (p *mapPeer) do(method string, params any) mapFrame {
	p.t.Helper()
	f := p.ask(method, params)
	if f.Error != nil {
		p.t.Fatalf("%s: %+v", method, *f.Error)
	}
	return f
}

// refused asks for what must be refused with that code.
func (p *mapPeer) refused(code int, method string, params any) mapFrame {
	p.t.Helper()
	f := p.ask(method, params)
	if f.Error == nil || f.Error.Code != code || f.Error.Data["category"] == "" {
		p.t.Errorf("%s %v: %s, want it refused with %d", method, params, f.raw, code)
	}
	return f
}

// note returns the next notification of a method that fits.
func (p *mapPeer) note(method string, fits func(mapFrame) bool) mapFrame {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case f := <-p.notes:
			if f.Method == method && (fits == nil || fits(f)) {
				return f
			}
		case <-deadline:
			p.t.Fatalf("no %s came", method)
		}
	}
}

// event returns the next event of a type.
func (p *mapPeer) event(kind string) mapFrame {
	p.t.Helper()
	return p.note("map/event", func(f mapFrame) bool { return f.said("event", "type") == kind })
}

// quiet says that nothing of a method is there, after everything that was told before was read.
func (p *mapPeer) quiet(method string) {
	p.t.Helper()
	p.do("map/session/list", msg{}) // its answer comes after all that was told
	for {
		select {
		case f := <-p.notes:
			if f.Method == method {
				p.t.Errorf("unexpected %s", f.raw)
			}
		default:
			return
		}
	}
}

// drop ends the connection without a word.
func (p *mapPeer) drop() { _ = p.ws.CloseNow(); <-p.closed }
