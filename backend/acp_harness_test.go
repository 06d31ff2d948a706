package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deskbell/backend/gate"
)

// wantACP checks what came from the hub against the schema. Only an answer to what named no method may fall outside it.
func wantACP(t testing.TB, raw []byte) {
	t.Helper()
	set, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := set.Validate("acp/message", raw)
	if err != nil || len(fields) > 0 {
		t.Errorf("not valid: %v %v: %s", err, fields, raw)
	}
	method := field(raw, "method")
	if params := field(raw, "params"); params != "" && method != "heartbeat" {
		if fields, err = set.Validate("acp/"+method, []byte(params)); err != nil || len(fields) > 0 {
			t.Errorf("params are not valid: %v %v: %s", err, fields, raw)
		}
	}
}

// field walks into a JSON document as reply.get does.
func field(raw []byte, path ...string) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	return walk(v, path)
}

// acp sends one request and returns the answer, checked.
func (c *client) acp(method string, params any) reply {
	c.h.t.Helper()
	r := c.call("POST", "/acp", map[string]any{"jsonrpc": "2.0", "id": unique("q"), "method": method, "params": params}).want(200)
	wantACP(c.h.t, r.body)
	if r.get("method") != method {
		c.h.t.Errorf("%s is answered as %s", method, r.body)
	}
	return r
}

// elements are those of a list in the reply.
func (r reply) elements(path ...string) []json.RawMessage {
	r.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(r.get(path...)), &list); err != nil {
		r.t.Fatalf("%s: %v", r.body, err)
	}
	return list
}

// ok is acp that must succeed, and its result.
func (c *client) ok(method string, params any) reply {
	c.h.t.Helper()
	r := c.acp(method, params)
	if e := r.get("error"); e != "" {
		c.h.t.Fatalf("%s %v: %s", method, params, e)
	}
	r.body = []byte(r.get("result"))
	return r
}

// refused is acp that must fail so.
func (c *client) refused(code int, method string, params any) reply {
	c.h.t.Helper()
	r := c.acp(method, params)
	if got := r.get("error", "code"); got != fmt.Sprint(code) {
		c.h.t.Fatalf("%s %v: %s, want %d", method, params, r.body, code)
	}
	return r
}

// pending is what a heartbeat hands out.
type pending struct {
	ID      string          `json:"deliveryId"`
	Message json.RawMessage `json:"message"`
}

func (p pending) get(path ...string) string {
	return field(p.Message, append([]string{"params"}, path...)...)
}
func (p pending) method() string { return field(p.Message, "method") }

// beat is a heartbeat that acknowledges ids and returns what waits.
func (c *client) beat(acks ...string) []pending {
	c.h.t.Helper()
	if acks == nil {
		acks = []string{}
	}
	var out struct{ Pending []pending }
	c.ok("heartbeat", msg{"ack": acks}).into(&out)
	for _, p := range out.Pending {
		wantACP(c.h.t, p.Message)
	}
	return out.Pending
}

// collect beats until something came, acknowledges it, and returns it.
func (c *client) collect() []pending {
	c.h.t.Helper()
	var got []pending
	eventually(c.h.t, "something waits", func() bool { got = c.beat(); return len(got) > 0 })
	for _, p := range got {
		c.beat(p.ID)
	}
	return got
}

// one is collect where exactly one message waits.
func (c *client) one(method string) pending {
	c.h.t.Helper()
	got := c.collect()
	if len(got) != 1 || got[0].method() != method {
		c.h.t.Fatalf("%d wait, want one %s: %s", len(got), method, got)
	}
	return got[0]
}

// wire is an agent on a WebSocket.
type acpWire struct {
	t  testing.TB
	ws *websocket.Conn
	in chan []byte

	end error // why no more comes; it is there once in is closed
}

// dial opens a socket; it is closed with the test.
func (c *client) dial() *acpWire {
	c.h.t.Helper()
	return dialACP(c.h.t, c.h.hub.URL(), c.token)
}

func dialACP(t testing.TB, url, token string) *acpWire {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+"/acp", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(8 << 20)
	w := &acpWire{t: t, ws: ws, in: make(chan []byte, 10_000)}
	go func() {
		defer close(w.in)
		for {
			_, frame, err := ws.Read(context.Background())
			if err != nil {
				w.end = err
				return
			}
			w.in <- frame
		}
	}()
	t.Cleanup(w.close)
	return w
}

func (w *acpWire) close() { _ = w.ws.CloseNow() }

// closed is the code that the hub closed the socket with, once it did.
func (w *acpWire) closed() websocket.StatusCode {
	for range w.in {
	}
	return websocket.CloseStatus(w.end)
}

// next is the next frame, checked.
func (w *acpWire) next() []byte {
	w.t.Helper()
	select {
	case frame, ok := <-w.in:
		if !ok {
			w.t.Fatal("the socket was closed")
		}
		wantACP(w.t, frame)
		return frame
	case <-time.After(patience):
		w.t.Fatal("no frame came")
	}
	return nil
}

// send sends a request and returns its id.
func (w *acpWire) send(method string, params any) string {
	w.t.Helper()
	id := unique("w")
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.ws.Write(context.Background(), websocket.MessageText, raw); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// listening returns the socket once the hub knows that it is there, which it may not yet when the handshake is over.
func (w *acpWire) listening() *acpWire {
	w.t.Helper()
	w.ask("agent.status", msg{})
	return w
}

// ask sends a request and returns its answer, and what came before it.
func (w *acpWire) ask(method string, params any) (answer []byte, before [][]byte) {
	w.t.Helper()
	id := w.send(method, params)
	for {
		frame := w.next()
		if field(frame, "id") == id {
			return frame, before
		}
		before = append(before, frame)
	}
}

// collectJudges writes down, by tool, how calls were judged and by whom.
func collectJudges(into map[string]string) func(gate.Judgement) bool {
	return func(j gate.Judgement) bool {
		into[j.Call.Tool] = string(j.Verdict) + " " + j.Judge
		return true
	}
}

// spawn makes an agent and returns its id.
func (c *client) spawn(role string, more ...msg) string {
	c.h.t.Helper()
	p := msg{"role": role}
	for _, m := range more {
		for k, v := range m {
			p[k] = v
		}
	}
	return c.ok("agent.spawn", p).get("agentId")
}

// asked is the one open message of a protocol that waits for the person.
func (h *house) asked(t testing.TB) reply {
	t.Helper()
	var r reply
	var list struct{ Messages []json.RawMessage }
	eventually(t, "a message waits for the person", func() bool {
		r = h.operator().call("GET", "/v1/messages?status=open&protocol=acp&type=ask", nil).want(200)
		r.into(&list)
		return len(list.Messages) > 0
	})
	if len(list.Messages) != 1 {
		t.Fatalf("%d messages wait: %s", len(list.Messages), r.body)
	}
	r.body = list.Messages[0]
	return r
}
