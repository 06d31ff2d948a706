package backend

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A frame is answered with the id as it came, an error has no result and a result no error, and nothing outside breaks
// the connection.
func TestMAPFrames(t *testing.T) {
	h := openHouse(t)
	p := h.dialMAP("/map")
	raw := func(text string) string {
		t.Helper()
		c := make(chan mapFrame, 1)
		p.mu.Lock()
		for _, id := range []string{"", "null", `"3"`, "7", `"a\u0062"`} {
			p.calls[id] = c
		}
		p.mu.Unlock()
		p.write([]byte(text))
		return string(p.wait(c).raw)
	}
	for _, c := range []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":7,"method":"map/agents/list"}`, `"code":1000`},
		{`{"jsonrpc":"2.0","id":7,"method":"map/connect","params":{"protocolVersion":9,"participantType":"agent"}}`, `"supported":[1]`},
		{`{"jsonrpc":"2.0","id":7,"method":"map/connect","params":{"protocolVersion":1,"participantType":"robot"}}`, `participantType`},
		{`{"jsonrpc":"2.0","id":"3","method":"map/connect","params":{"protocolVersion":1,"participantType":"agent"}}` + "\n", `"id":"3","result":{`},
		{`{"jsonrpc":"2.0","id":7,"method":"map/connect","params":{"protocolVersion":1,"participantType":"agent"}}`, `"code":-32600`},
		{`{nope`, `"id":null,"error":{"code":-32700`},
		{`[{"jsonrpc":"2.0","id":7,"method":"map/agents/list"}]`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"map/agents/list"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":{},"method":"map/agents/list"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":7,"method":"map/agents/list"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":7}`, `"code":-32600`},
		{`{"id":7,"method":"map/agents/list"}`, `"result":{"agents":[`},
		{`{"jsonrpc":"2.0","id":7,"method":"x-openhive/memory.sync","params":{}}`, `"code":-32601`},
		{`{"jsonrpc":"2.0","id":7,"method":"map/agents/get","params":[]}`, `"code":-32602`},
		{`{"jsonrpc":"2.0","id":7,"method":"map/agents/get"}`, `agentId`},
		{`{"jsonrpc":"2.0","id":"a\u0062","method":"map/agents/list"}`, `"id":"a\u0062"`},
		{`{"jsonrpc":"2.0","method":"map/subscribe.ack","params":{}}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"map/agents/list"}`, `"id":7`},
		{`{"jsonrpc":"2.0","id":7,"method":"map/auth/refresh","params":{"method":"bearer","credential":"wrong"}}`, `"success":false`},
	} {
		if got := raw(c.frame); !strings.Contains(got, c.want) || strings.Contains(got, `"error":null`) || strings.Contains(got, `"result":null`) {
			t.Errorf("%s: %s, want %s", c.frame, got, c.want)
		}
	}
}

// Binary frames and frames that are too large end the connection with the code that says why.
func TestMAPFrameLimits(t *testing.T) {
	h := openHouse(t)
	p := h.dialMAP("/map")
	if err := p.ws.Write(context.Background(), websocket.MessageBinary, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if <-p.closed; p.code != websocket.StatusUnsupportedData {
		t.Errorf("closed with %d", p.code)
	}
	p = h.mapAgent("big")
	text, _ := json.Marshal(strings.Repeat("x", 5<<20))
	_ = p.ws.Write(context.Background(), websocket.MessageText, text) // it may be closed while it is written
	if <-p.closed; p.code != websocket.StatusMessageTooBig && p.code != -1 {
		t.Errorf("closed with %d", p.code)
	}
}

// A connection that does not introduce itself is closed: published clients leave such sockets behind.
func TestMAPSilentSocketsAreClosed(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	p := h.dialMAP("/map")
	select {
	case <-p.closed:
	case <-time.After(15 * time.Second):
		t.Fatal("still open")
	}
	if p.code != websocket.StatusPolicyViolation {
		t.Errorf("closed with %d", p.code)
	}
}

// Who connects is who they prove to be; a live id is taken over by nobody, a lost one by its token or its principal.
func TestMAPConnect(t *testing.T) {
	h := openHouse(t)
	a := h.mapAgent("Worker", msg{"role": "worker", "scopes": []string{"swarm:demo"}, "metadata": msg{"k": 1}})
	if a.me != "Worker" || a.hello.get("protocolVersion") != "1" || a.hello.get("resumeToken") == "" || a.hello.get("systemInfo", "name") != "deskbell" {
		t.Errorf("%s is %s", a.hello.raw, a.me)
	}
	b := h.mapAgent("Worker", msg{"role": "worker"}) // the name is taken by one that lives
	if b.me == a.me {
		t.Error("a live agent was taken over")
	}
	b.refused(3000, "map/agents/register", msg{"agentId": a.me})
	c := h.dialMAP("/map")
	c.refused(3000, "map/connect", msg{"protocolVersion": 1, "participantType": "agent", "participantId": a.hello.get("participantId")})
	c.refused(3000, "map/connect", msg{"protocolVersion": 1, "participantType": "client", "participantId": "human"})
	a.drop()
	eventually(t, "the agent is away", func() bool {
		return b.do("map/agents/get", msg{"agentId": "Worker"}).get("agent", "_meta", "disconnected") == "true"
	})
	r := c.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "resumeToken": a.hello.get("resumeToken")})
	if r.get("reconnected") != "true" || r.get("participantId") != a.hello.get("participantId") || r.get("sessionId") != a.hello.get("sessionId") || r.get("ownedAgents") != `["Worker"]` {
		t.Errorf("resumed as %s", r.raw)
	}
	if r = c.do("map/agents/register", msg{"agentId": "Worker"}); r.get("resumed") != "true" || r.get("agent", "metadata", "k") != "1" {
		t.Errorf("registered again: %s", r.raw)
	}
	c.drop()
	d := h.dialMAP("/map") // what a client does that can send neither an id nor a token
	d.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "name": "Worker"})
	eventually(t, "the name finds its agent", func() bool {
		f := d.do("map/agents/register", msg{"name": "Worker", "role": "worker"})
		if f.get("agent", "id") == "Worker" {
			return true
		}
		d.do("map/agents/unregister", msg{"agentId": f.get("agent", "id")})
		return false
	})
	if f := d.do("map/disconnect", nil); f.get("acknowledged") != "true" || f.get("session", "id") == "" {
		t.Errorf("goodbye: %s", f.raw)
	}
	d.refused(1000, "map/agents/list", nil)
	b.refused(2001, "map/agents/get", msg{"agentId": "Worker"})
}

// A hub that wants a credential says so in an answer; a wrong one is refused, and too many end the connection.
func TestMAPCredentials(t *testing.T) {
	h := openHouse(t)
	h.operator().call("PATCH", "/v1/settings", msg{"map.require_credential": true}).want(200)
	agent := h.agent("builder")
	p := h.dialMAP("/map")
	f := p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "name": "x"})
	if f.get("authRequired", "required") != "true" || f.get("sessionId") == "" {
		t.Errorf("%s", f.raw)
	}
	p.refused(1000, "map/agents/register", msg{})
	if f := p.do("map/authenticate", msg{"method": "api-key", "credential": "wrong"}); f.get("success") != "false" || f.get("error", "code") != "invalid_credentials" {
		t.Errorf("%s", f.raw)
	}
	if f := p.do("map/authenticate", msg{"method": "mtls"}); f.get("error", "code") != "method_not_supported" {
		t.Errorf("%s", f.raw)
	}
	if f := p.do("map/authenticate", msg{"method": "bearer", "token": agent.token}); f.get("success") != "true" || f.get("principal", "id") != "agent:builder" {
		t.Errorf("%s", f.raw)
	}
	p.do("map/agents/register", msg{"name": "x"})
	if f := p.do("map/auth/refresh", msg{"refreshToken": agent.token}); f.get("accessToken") == "" {
		t.Errorf("%s", f.raw)
	}
	before := h.operator()
	before.call("PATCH", "/v1/settings", msg{"map.require_credential": false}).want(200)
	without := h.mapAgent("without")
	before.call("PATCH", "/v1/settings", msg{"map.require_credential": true}).want(200)
	if <-without.closed; without.code != 4401 {
		t.Errorf("who is there without a credential as one is required: closed with %d, want 4401", without.code)
	}
	p.do("map/agents/list", nil) // who has proved itself stays
	q := h.dialMAP("/map?token=" + h.token)
	if f := q.do("map/connect", msg{"protocolVersion": 1, "participantType": "system"}); f.get("principal", "id") != "operator" {
		t.Errorf("%s", f.raw)
	}
	for what, guess := range map[string]func(*mapPeer) mapFrame{
		"in the handshake": func(w *mapPeer) mapFrame {
			return w.refused(1006, "map/connect", msg{"protocolVersion": 1, "participantType": "agent", "auth": msg{"method": "bearer", "token": "wrong"}})
		},
		"after it": func(w *mapPeer) mapFrame {
			return w.do("map/authenticate", msg{"method": "bearer", "token": "wrong"})
		},
	} {
		w := h.dialMAP("/map")
		w.ask("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "name": "y"})
		for range 2 {
			guess(w)
		}
		w.ask("map/agents/list", nil) // it is still heard
		guess(w)                      // and so is this one answered
		if <-w.closed; w.code != 4401 {
			t.Errorf("%s: three wrong credentials and it is closed with %d, want 4401", what, w.code)
		}
	}
	h.operator().call("PATCH", "/v1/settings", msg{"map.require_credential": false}).want(200)
	in := h.mapAgent("guesser")
	for i := range 3 {
		in.ask([]string{"map/authenticate", "map/auth/refresh", "map/authenticate"}[i], msg{"method": "bearer", "credential": "wrong"})
	}
	if <-in.closed; in.code != 4401 {
		t.Errorf("who is let in without a credential and guesses: closed with %d", in.code)
	}
}

// What a participant declares as not enabled it has nothing of, and is told so.
func TestMAPWhatIsNotEnabled(t *testing.T) {
	h := openHouse(t)
	p := h.dialMAP("/map")
	f := p.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "capabilities": msg{"mail": msg{"enabled": false}, "credentials": msg{"enabled": false, "canGet": true}, "workspace": msg{"enabled": false}}})
	if f.get("capabilities", "mail", "canCreate") != "false" || f.get("capabilities", "credentials", "canGet") != "false" {
		t.Errorf("it is told of %s", f.get("capabilities"))
	}
	id := h.mapAgent("a").do("mail/create", msg{}).get("conversation", "id")
	for method, params := range map[string]msg{"mail/create": {}, "mail/list": {}, "mail/get": {"conversationId": id}, "mail/join": {"conversationId": id}, "mail/turn": {"conversationId": id, "contentType": "text", "content": msg{"text": "x"}}} {
		p.refused(10010, method, params)
	}
	for method, params := range map[string]msg{"cred/list": {}, "cred/status": {}, "cred/get": {"scope": "s", "resource": "r"}} {
		if f := p.refused(11000, method, params); !strings.Contains(f.Error.Message, "this participant") {
			t.Errorf("%s: %s", method, f.raw) // not because there are no secrets
		}
	}
	p.refused(12000, "workspace/list", msg{"agentId": "a"})
	one := h.dialMAP("/map")
	one.do("map/connect", msg{"protocolVersion": 1, "participantType": "agent", "capabilities": msg{"mail": msg{"canCreate": false}}})
	one.refused(1003, "mail/create", msg{})
	one.do("mail/list", msg{})
}

// A request that is no strict JSON is refused by its id where that can be read: published clients wait half a minute for it.
func TestMAPRefusesByTheID(t *testing.T) {
	h := openHouse(t)
	p := h.mapAgent("a")
	deep := strings.Repeat("[", 120) + strings.Repeat("]", 120)
	for what, c := range map[string]struct{ frame, id string }{
		"half an emoji":        {`{"jsonrpc":"2.0","id":901,"method":"map/send","params":{"to":{"agent":"human"},"payload":{"text":"status \ud83d"}}}`, `901`},
		"too deep":             {`{"jsonrpc":"2.0","id":"a-2","method":"map/send","params":{"to":"human","payload":` + deep + `}}`, `"a-2"`},
		"no double":            {`{"jsonrpc":"2.0","id":902,"method":"map/send","params":{"to":"human","payload":1e400}}`, `902`},
		"a member twice":       {`{"jsonrpc":"2.0","method":"map/send","params":{"to":"human","to":"a"},"id":903}`, `903`},
		"two ids":              {`{"jsonrpc":"2.0","id":1,"id":2,"method":"map/send"}`, `null`},
		"half an emoji for id": {`{"jsonrpc":"2.0","id":"\ud83d","method":"map/send"}`, `null`},
		"an answer":            {`{"jsonrpc":"2.0","id":904,"result":"\ud83d"}`, `null`},
		"no JSON":              {`{"jsonrpc":"2.0","id":905,"method":"map/send"`, `null`},
	} {
		answer := make(chan mapFrame, 1)
		p.mu.Lock()
		p.calls[c.id] = answer
		p.mu.Unlock()
		p.write([]byte(c.frame))
		if f := p.wait(answer); f.Error == nil || f.Error.Code != -32700 {
			t.Errorf("%s: %s", what, f.raw)
		}
	}
}

// What foreign pages could open is refused before any frame.
func TestMAPForeignOrigin(t *testing.T) {
	h := openHouse(t)
	_, r, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(h.hub.URL(), "http")+"/map", &websocket.DialOptions{HTTPHeader: map[string][]string{"Origin": {"https://evil.example"}}})
	if err == nil || r == nil || r.StatusCode != 403 {
		t.Errorf("%v %v", r, err)
	}
}
