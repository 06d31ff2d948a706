package backend

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskbell/backend/gate"
)

// recorded is one exchange of a real adapter with another Guardian. Its secret was this text.
type recorded struct {
	Req  json.RawMessage `json:"req"`
	Resp json.RawMessage `json:"resp"`
}

const recordedSecret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// withSecret puts a shared secret into the folder before the hub opens it.
func withSecret(secret string) func(*house) {
	return func(h *house) {
		path := filepath.Join(h.dir, ACSKeyFile)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
}

// Requests as the real Claude Code adapter sent them, byte for byte: every signature is right, every step enters its
// chain, and what was refused then for what it is is refused here.
func TestACSRecordedAdapter(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "acs", "claude-code.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &clock{at: time.Date(2026, 11, 29, 18, 9, 34, 0, time.UTC)}
	h := openHouse(t, withClock(c), withSecret(recordedSecret))
	h.rule(gate.Match{Tool: "*"}, gate.Allow)
	heads := map[string]string{}
	seen, ended := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n, chained := 0, 0
	for ; lines.Scan(); n++ {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		var m msg
		if err := json.Unmarshal(r.Req, &m); err != nil {
			t.Fatal(err)
		}
		m["params"] = msg(m["params"].(map[string]any))
		p := m.params()
		p["metadata"] = msg(p["metadata"].(map[string]any))
		if at, err := time.Parse(time.RFC3339, p["timestamp"].(string)); err == nil {
			c.set(at)
		}
		session, request, method := m.metadata()["session_id"].(string), p["request_id"].(string), m["method"].(string)
		a := &acsAgent{h: h, secret: []byte(recordedSecret), session: session, keyID: "default"}
		got := a.read(a.body(string(r.Req)).want(200).body, m)
		switch key := session + request; {
		case p["signature"] == nil:
			got.failedWith(t, -32004, false)
		case !isUUID(session):
			got.failedWith(t, -32600, true)
		case seen[key]:
			got.failedWith(t, -32005, true)
		case method == "handshake/hello":
			got.allowedTo(t)
			heads[session], seen[key] = "", true
		default:
			seen[key] = true
			head, agreed := heads[session]
			if !agreed {
				got.failedWith(t, -32003, true)
				continue
			}
			if ended[session] {
				got.deniedFor(t, "session_closed")
				continue
			}
			ended[session] = method == "steps/sessionEnd"
			heads[session] = links(t, head, m)
			if got.allowedTo(t).Result.Chain != heads[session] {
				t.Errorf("%s: chain %s, want %s", method, got.Result.Chain, heads[session])
			}
			chained++
		}
	}
	if err := lines.Err(); err != nil || n != 44 || chained < 30 {
		t.Errorf("%d exchanges, %d of them in chains, %v: some are missing", n, chained, err)
	}
}

func isUUID(s string) bool { return len(s) == 36 && strings.Count(s, "-") == 4 }
