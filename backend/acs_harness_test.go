package backend

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// acsAgent is the host of an agent, as far as ACS sees it. It signs, hashes and checks with code of its own, not the
// hub's, so that what the hub sends is proved from outside.
type acsAgent struct {
	h        *house
	secret   []byte
	session  string
	id       string
	platform string
	keyID    string
}

// acsMethods is everything that a host may offer.
var acsMethods = []string{
	"steps/sessionStart", "steps/agentTrigger", "steps/turnStart", "steps/userMessage", "steps/agentResponse", "steps/knowledgeRetrieval",
	"steps/memoryContextRetrieval", "steps/memoryStore", "steps/toolCallRequest", "steps/toolCallResult", "steps/preCompact", "steps/postCompact",
	"steps/subagentStart", "steps/subagentStop", "steps/skillRegister", "steps/skillLoad", "steps/skillUnload", "steps/turnEnd", "steps/sessionEnd",
	"agbom/snapshot", "agbom/changed", "protocols/MCP/tools/call", "protocols/MCP/tools/list", "wrapped:mcp-2025-06-18/tools/call", "system/ping",
}

// newUUID is a random one (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// guarded is a host on claude-code whose session is new.
func (h *house) guarded() *acsAgent { return h.guardedOn("claude-code") }

func (h *house) guardedOn(platform string) *acsAgent {
	h.t.Helper()
	secret, err := os.ReadFile(filepath.Join(h.dir, ACSKeyFile))
	if err != nil {
		h.t.Fatal(err)
	}
	return &acsAgent{h: h, secret: secret, session: newUUID(), id: platform + ":0badcafe", platform: platform, keyID: "default"}
}

// peer is the agent's name in the fleet.
func (a *acsAgent) peer() string { return "acs/" + a.platform + "/" + a.id }

// started is guarded with its terms agreed.
func (h *house) started(platform string) *acsAgent {
	h.t.Helper()
	a := h.guardedOn(platform)
	a.hello().allowedTo(h.t)
	return a
}

func jcs(t testing.TB, v any) []byte {
	t.Helper()
	raw, ok := v.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	value := jsontext.Value(append([]byte(nil), raw...))
	if err := value.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return value
}

func (a *acsAgent) mac(envelope msg) string {
	key, err := hkdf.Key(sha256.New, a.secret, nil, a.session, 32)
	if err != nil {
		a.h.t.Fatal(err)
	}
	sum := hmac.New(sha256.New, key)
	sum.Write(jcs(a.h.t, envelope))
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// request is an unsigned request. Its JSON-RPC id is not its request_id, as with most hosts.
func (a *acsAgent) request(method string, payload any) msg {
	return msg{"jsonrpc": "2.0", "id": newUUID(), "method": method, "params": msg{
		"acs_version": "0.1.0", "request_id": newUUID(), "timestamp": a.h.now().UTC().Format("2006-01-02T15:04:05.000Z"),
		"metadata": msg{"agent_id": a.id, "session_id": a.session, "platform": a.platform, "cwd": "/home/me/project", "permission_mode": "default"},
		"payload":  payload,
	}}
}

func (m msg) params() msg { return m["params"].(msg) }

func (m msg) metadata() msg { return m.params()["metadata"].(msg) }

// signed signs a request in place, over everything that it then says.
func (a *acsAgent) signed(m msg) msg {
	delete(m.params(), "signature")
	m.params()["signature"] = msg{"algorithm": "HMAC-SHA256", "value": a.mac(m), "key_id": a.keyID}
	return m
}

// acsAnswer is what came back, checked as far as every answer must hold.
type acsAnswer struct {
	raw    []byte
	signed bool
	ID     any `json:"id"`
	Result struct {
		RequestID     string         `json:"request_id"`
		Decision      string         `json:"decision"`
		Reasoning     string         `json:"reasoning"`
		Codes         []string       `json:"reason_codes"`
		Chain         string         `json:"chain_hash"`
		Modifications map[string]any `json:"modifications"`
		References    []msg          `json:"policy_references"`
		Data          map[string]any `json:"policy_data"`
		Version       string         `json:"negotiated_version"`
		Methods       []string       `json:"methods_evaluated"`
		Transport     string         `json:"selected_transport"`
		Timeout       struct {
			DefaultMS int `json:"default_ms"`
		} `json:"timeout_config"`
		OnFailure string         `json:"on_decision_failure"`
		Profiles  []string       `json:"profiles_accepted"`
		Payload   map[string]any `json:"payload"`
	} `json:"result"`
	Error *struct {
		Code int            `json:"code"`
		Data map[string]any `json:"data"`
	} `json:"error"`
}

// read checks an answer: its schema, that its signature, if it has one, is right, and what it is bound to.
func (a *acsAgent) read(raw []byte, to msg) acsAnswer {
	a.h.t.Helper()
	set, err := loadSchemas()
	if err != nil {
		a.h.t.Fatal(err)
	}
	bad, err := set.Validate("acs/response-envelope", raw)
	if err != nil || len(bad) > 0 {
		a.h.t.Fatalf("the answer is none: %v %v: %s", err, bad, raw)
	}
	out := acsAnswer{raw: raw}
	if err := json.Unmarshal(raw, &out); err != nil {
		a.h.t.Fatal(err)
	}
	var whole msg
	if err := json.Unmarshal(raw, &whole); err != nil {
		a.h.t.Fatal(err)
	}
	for _, box := range []string{"result", "error"} {
		content, _ := whole[box].(map[string]any)
		signature, ok := content["signature"].(map[string]any)
		if !ok {
			continue
		}
		delete(content, "signature")
		if signature["value"] != a.mac(whole) || signature["key_id"] != a.keyID || signature["algorithm"] != "HMAC-SHA256" {
			a.h.t.Errorf("the answer's signature is not right: %s", raw)
		}
		out.signed = true
	}
	if to != nil {
		if id, ok := to["id"].(string); ok && out.ID != any(id) && out.ID != nil {
			a.h.t.Errorf("the answer has the id %v, the request %v", out.ID, id)
		}
		if out.Result.Decision != "" && out.Result.RequestID != to.params()["request_id"] {
			a.h.t.Errorf("the answer is bound to %q: %s", out.Result.RequestID, raw)
		}
	}
	return out
}

// try posts a request as it is and reads the answer.
func (a *acsAgent) try(ctx context.Context, m msg) (acsAnswer, error) {
	c := &client{h: a.h}
	r, err := c.try(ctx, "POST", "/acs", map[string]any(m))
	if err != nil {
		return acsAnswer{}, err
	}
	return a.read(r.want(http.StatusOK).body, m), nil
}

func (a *acsAgent) post(m msg) acsAnswer {
	a.h.t.Helper()
	out, err := a.try(context.Background(), m)
	if err != nil {
		a.h.t.Fatal(err)
	}
	return out
}

// step sends a signed request and returns its answer.
func (a *acsAgent) step(method string, payload any) acsAnswer {
	a.h.t.Helper()
	return a.post(a.signed(a.request(method, payload)))
}

// hold sends a signed request that will wait, and returns a channel with its answer.
func (a *acsAgent) hold(m msg) <-chan acsAnswer {
	out := make(chan acsAnswer, 1)
	go func() {
		defer close(out)
		if answer, err := a.try(context.Background(), m); err == nil {
			out <- answer
		} else {
			a.h.t.Errorf("a held request failed: %v", err)
		}
	}()
	return out
}

func (a *acsAgent) offer(more ...msg) msg {
	m := msg{"acs_versions_supported": []string{"0.1.0"}, "methods_implemented": acsMethods, "transports_supported": []string{"http", "stdio"},
		"provenance_producer": "none", "max_payload_size_bytes": 1_000_000, "profiles_supported": []string{"acs-core"},
		"wrapped_protocols": []msg{{"protocol": "MCP", "version": "2025-06-18"}}, "signature_algorithms_supported": []string{"HMAC-SHA256"}}
	for _, r := range more {
		for k, v := range r {
			m[k] = v
		}
	}
	return m
}

func (a *acsAgent) hello(more ...msg) acsAnswer {
	a.h.t.Helper()
	return a.step("handshake/hello", a.offer(more...))
}

func (r acsAnswer) allowedTo(t testing.TB) acsAnswer {
	t.Helper()
	if r.Error != nil || !r.signed || (r.Result.Decision != "allow" && r.Result.Version != "0.1.0") {
		t.Fatalf("not allowed, or not signed: %s", r.raw)
	}
	return r
}

func (r acsAnswer) deniedFor(t testing.TB, code string) acsAnswer {
	t.Helper()
	if r.Result.Decision != "deny" || !r.signed || len(r.Result.Codes) == 0 || r.Result.Codes[0] != code || r.Result.Reasoning == "" {
		t.Fatalf("want a signed DENY for %s: %s", code, r.raw)
	}
	return r
}

func (r acsAnswer) failedWith(t testing.TB, code int, signed bool) acsAnswer {
	t.Helper()
	if r.Error == nil || r.Error.Code != code || r.signed != signed || r.Error.Data["reason"] == "" || r.Error.Data["message"] == "" {
		t.Fatalf("want error %d, signed %v: %s", code, signed, r.raw)
	}
	return r
}

// bash is a tool call.
func bash(command string) msg {
	return msg{"tool": msg{"name": "Bash"}, "arguments": msg{"command": msg{"value": command}, "description": msg{"value": "say test"}}}
}

// card waits for the n-th open card and returns its message id; cards come oldest first.
func (h *house) cards(n int) []string {
	h.t.Helper()
	var ids []string
	eventually(h.t, fmt.Sprint(n, " cards are open"), func() bool {
		var page struct {
			Messages []struct {
				ID     string `json:"id"`
				Status string `json:"status"`
			} `json:"messages"`
		}
		h.operator().call("GET", "/v1/messages?protocol=acs&status=open&limit=200", nil).want(200).into(&page)
		ids = ids[:0]
		for _, m := range page.Messages {
			ids = append([]string{m.ID}, ids...)
		}
		return len(ids) == n
	})
	return ids
}

// within waits for an answer.
func within(t testing.TB, c <-chan acsAnswer) acsAnswer {
	t.Helper()
	select {
	case a, ok := <-c:
		if !ok {
			t.Fatal("no answer came")
		}
		return a
	case <-time.After(patience):
		t.Fatal("no answer in 20 s")
	}
	return acsAnswer{}
}

// links recomputes the hash of one entry from the request that made it, and what came before (ACS §8.2).
func links(t testing.TB, previous string, m msg) string {
	t.Helper()
	p := m.params()
	request := sha256.Sum256(jcs(t, p))
	content := jcs(t, msg{"entry_id": p["request_id"], "step_id": p["request_id"], "step_type": m["method"],
		"request_hash": hex.EncodeToString(request[:]), "timestamp": p["timestamp"]})
	before, err := hex.DecodeString(previous)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(content, before...))
	return hex.EncodeToString(sum[:])
}
