package backend

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// fuzzBox is a box whose budgets no fuzzer reaches.
func fuzzBox(f *testing.F) *house {
	h, _ := openBox(f)
	h.set("rate_limit.requests_per_minute", 10_000_000, "rate_limit.inbox_depth", 10_000_000, "sessions.max_live_per_agent", 100_000, "inbound.max_batch", 1000)
	return h
}

// refused says whether an answer is a refusal, and that it is a proper one.
func refused(t *testing.T, r reply, success int) bool {
	t.Helper()
	if r.status == success {
		return false
	}
	if r.status < 400 || r.status >= 500 || r.code() == "" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return true
}

func FuzzRegister(f *testing.F) {
	for _, s := range []string{"", "{}", "null", "[]", `{"ttl_seconds":1}`, `{"ttl_seconds":1e300}`, `{"ttl_seconds":0.5}`, `{"ttl_seconds":-0}`, `{"label":"\ud83d\ude00","labels":{"a":"b","":""}}`,
		`{"run_id":"r","kind":"k","project":"p","id":"sess_x","state":"closed","closed_by_operator":true}`, `{"label":"x","label":"y"}`, `{"LABEL":1}`, "\xff"} {
		f.Add([]byte(s))
	}
	h := fuzzBox(f)
	b := h.peer("b")
	f.Fuzz(func(t *testing.T, raw []byte) {
		h.t = t
		r := b.call("POST", "/v1/sessions", raw)
		if refused(t, r, 201) {
			return
		}
		ttl, err := strconv.Atoi(r.get("session", "ttl_seconds"))
		if err != nil || ttl < 120 || ttl > 3600 || r.get("session", "state") != "active" || r.get("session", "closed_by_operator") != "" || r.get("session", "agent_id") != "b" {
			t.Fatalf("%s", r.body)
		}
		if read := b.session(r.get("session", "id")); string(read.body) != string(r.body) {
			t.Fatalf("registered %s, reads %s", r.body, read.body)
		}
		b.call("DELETE", "/v1/sessions/"+r.get("session", "id"), nil).want(200)
	})
}

func FuzzInboxAck(f *testing.F) {
	for _, s := range []string{"", "{}", `{"ids":[]}`, `{"ids":["msg_x"],"note":"n"}`, `{"ids":null}`, `{"ids":[1]}`, `{"ids":["a","a"]}`, `{"IDS":["a"]}`, `{"ids":["a"],"note":null}`, `{"ids":["\u0000"]}`} {
		f.Add([]byte(s))
	}
	h := fuzzBox(f)
	b := h.peer("b")
	id := h.tell("agent:b").want(201).get("id")
	b.drain("")
	f.Fuzz(func(t *testing.T, raw []byte) {
		h.t = t
		r := b.call("POST", "/v1/inbox/ack", raw)
		if refused(t, r, 200) {
			return
		}
		var got struct{ Acked *int }
		r.into(&got)
		if got.Acked == nil || *got.Acked < 0 || (*got.Acked > 0 && !strings.Contains(string(raw), "dir_")) {
			t.Fatalf("%s", r.body)
		}
		if s := h.operator().call("GET", "/v1/directives/"+id, nil).want(200).get("delivery", "state"); *got.Acked == 0 && s != "delivered" {
			t.Fatalf("%s and acked %s", s, r.body)
		}
	})
}

// Whatever directive the operator's client sends is refused, or drained as it was confirmed, whole and signed.
func FuzzDirective(f *testing.F) {
	for _, s := range []string{"", "{}", `{"to":"b","title":"x"}`, `{"to":"agent:b","title":"x","body":"\n","priority":"low","tags":["a"],"sensitive":false}`,
		`{"to":"agent:b","title":"x","context":[{"kind":"data","data":{"n":1e300,"m":-0,"k":9007199254740993}}]}`, `{"to":"agent:b","title":"x","context":null,"expires_at":null}`,
		`{"to":"agent:b","title":"x","expires_at":"2999-01-01t00:00:00.123456789z"}`, `{"to":"agent:b#sess_x","title":"x"}`, `{"to":"agent:b","title":"x","request":{}}`,
		`{"to":"agent:b","title":"x","from":"agent:b","id":"dir_x","type":"ask"}`, `{"to":"human:b","title":"x"}`, `{"to":"agent:b","title":"\u0000\ud83d\ude00"}`} {
		f.Add([]byte(s))
	}
	h := fuzzBox(f)
	b := h.peer("b")
	f.Fuzz(func(t *testing.T, raw []byte) {
		h.t = t
		r := h.operator().call("POST", "/v1/directives", raw)
		if refused(t, r, 201) {
			return
		}
		rows := b.drain("")
		if len(rows) != 1 || rows[0].key != r.get("id") || without(t, rows[0].object) != without(t, r.body, "delivery") || rows[0].get("from") != h.hub.operator().String() {
			t.Fatalf("confirmed %s, drained %v", r.body, rows)
		}
		b.consume("", rows[0].key)
	})
}

// Whatever an agent sends to another is refused, or arrives whole, stripped and signed.
func FuzzAddressedSubmit(f *testing.F) {
	const head = `{"ma2h_version":"0.6","created_at":"2026-09-13T12:00:00Z","agent":{"id":"a","run_id":"r","runtime":"cli"},"title":"T","to":"agent:b",`
	for _, s := range []string{head + `"type":"notify"}`, head + `"type":"ask","idempotency_key":"1","state":{"a":1},"client_ref":"c","request":{"mode":"confirm","callback":{"mode":"pull"},"permissions":{"allow_edit":true}}}`,
		head + `"type":"task","idempotency_key":"2","action":{"instructions":"x","callback":{"mode":"pull"},"checklist":[]}}`, head + `"type":"notify","from":"human:x","id":"msg_x","status":"x","response":{},"extra":1}`,
		head + `"type":"notify","context":[{"kind":"data","data":{"n":9007199254740993,"z":-0.0,"e":1e-7}}],"tags":[],"sensitive":true,"priority":"urgent"}`,
		`{"ma2h_version":"0.5","created_at":"2026-09-13T12:00:00Z","agent":{"id":"a","run_id":"r","runtime":"cli"},"title":"T","to":"agent:b","type":"ask","idempotency_key":"3","request":{"mode":"confirm","permissions":{"allow_edit":true}}}`} {
		f.Add([]byte(s))
	}
	h := fuzzBox(f)
	a, b := h.peer("a"), h.peer("b")
	bs := b.register(msg{"ttl_seconds": 3600})
	f.Fuzz(func(t *testing.T, raw []byte) {
		h.t = t
		r := a.call("POST", "/v1/messages", raw)
		if refused(t, r, 202) {
			return
		}
		rows := b.drain(bs)
		if r.get("destination") == "" { // to the person
			return
		}
		if len(rows) > 1 || (len(rows) == 1 && rows[0].get("to") == "agent:b" && rows[0].key != r.get("id")) {
			t.Fatalf("%s: %v", r.body, keysOf(rows))
		}
		for _, row := range rows {
			for _, private := range []string{"state", "client_ref", "status", "response", "delivery", "mailbox"} {
				if _, there := row.v[private]; there {
					t.Fatalf("%s in %s", private, row.object)
				}
			}
			if row.get("from") != "agent:a" || row.get("request", "callback") != "" || row.get("action", "callback") != "" || (row.get("ma2h_version") == "0.5" && row.get("request", "permissions", "allow_edit") != "") {
				t.Fatalf("%s", row.object)
			}
			b.consume("", row.key)
		}
		a.look(r.get("id"))
	})
}

func FuzzMailboxQuery(f *testing.F) {
	for _, s := range []string{"", "max=1", "max=-1", "max=999999999999999999999", "wait=0", "wait=0&max=0", "session=", "session=sess_x&session=x", "max=%31", "max=+1", "max=1;wait=1", "session=%00", "%zz", "since=x"} {
		f.Add(s)
	}
	h := fuzzBox(f)
	b := h.peer("b")
	id := h.tell("agent:b").want(201).get("id")
	f.Fuzz(func(t *testing.T, query string) {
		h.t = t
		u := url.URL{Path: "/v1/inbox", RawQuery: query}
		if q := u.Query(); len(q["wait"]) > 0 && strings.Trim(q.Get("wait"), "0") != "" || strings.ContainsAny(query, " \r\n#\x00\x7f") || strings.ContainsFunc(query, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // it would wait, or is no query
		}
		r := b.call("GET", "/v1/inbox?"+query, nil)
		if refused(t, r, 200) {
			return
		}
		for _, row := range b.rows(r.body, "") {
			if row.key != id {
				t.Fatalf("%s", r.body)
			}
		}
	})
}
