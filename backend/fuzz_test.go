package backend

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"deskbell/schemas"
)

// Whatever bytes come, they are refused with an error in the one form and leave nothing, or they are stored once and
// come back as a document of the protocol.
func FuzzSubmit(f *testing.F) {
	const head = `{"ma2h_version":"0.6","created_at":"2026-09-13T12:00:00Z","agent":{"id":"bot","run_id":"r","runtime":"cli"},"title":"T",`
	for _, s := range []string{
		"", "null", "[]", `{`, "\xff", `{"ma2h_version":"0.6"}`, head + `"type":"notify"}`, head + `"type":"notify","idempotency_key":"k"}`,
		head + `"type":"ask","idempotency_key":"a","request":{"mode":"confirm"}}`,
		head + `"type":"ask","idempotency_key":"b","expires_at":"2999-01-01T00:00:00.5+01:00","request":{"mode":"select","options":[{"value":"x","label":"X"}],"default_on_expire":"x"}}`,
		head + `"type":"ask","idempotency_key":"c","request":{"mode":"input","schema":{"type":["object"],"properties":{"n":{"type":"string","pattern":"^a+$"}}},"default_on_expire":{"n":"a"}}}`,
		head + `"type":"task","idempotency_key":"d","state":{"a": 1e3},"action":{"instructions":"x","checklist":[{"text":"y","done":true}],"callback":{"mode":"push","url":"https://h.example/"}}}`,
		head + `"type":"notify","to":"agent:x","context":[{"kind":"text","text":"x"},{"kind":"file","file":{"uri":"https://x"}},{"kind":"data","data":{}}]}`,
	} {
		f.Add([]byte(s))
	}
	h := openHouse(f)
	bot := h.agent("bot")
	h.operator().call("PATCH", "/v1/settings", `{"rate_limit.requests_per_minute":10000000,"rate_limit.inbox_depth":10000000}`).want(200)
	set, err := schemas.Load()
	if err != nil {
		f.Fatal(err)
	}
	count := func() int {
		c, err := h.hub.store.Counts(context.Background())
		if err != nil {
			f.Fatal(err)
		}
		return c.Needs + c.Waiting + c.Notices + c.Done
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h.t = t
		before := count()
		r := bot.call("POST", "/v1/messages", raw)
		if r.status != http.StatusAccepted {
			if r.status < 400 || r.status >= 500 || r.code() == "" {
				t.Fatalf("%d %s", r.status, r.body)
			}
			if n := count(); n != before {
				t.Fatalf("refused with %d, and there are %d items instead of %d", r.status, n, before)
			}
			return
		}
		if n := count(); n > before+1 {
			t.Fatalf("%d items more", n-before)
		}
		got := bot.call("GET", "/v1/messages/"+r.get("id"), nil).want(http.StatusOK)
		if bad, err := set.Validate("ma2h/get-message", got.body); err != nil || len(bad) > 0 {
			t.Fatalf("%v %v: %s", err, bad, got.body)
		}
		h.operator().call("GET", "/api/items/"+r.get("id"), nil).want(http.StatusOK)
		if strings.Contains(string(raw), `"idempotency_key"`) {
			again := bot.call("POST", "/v1/messages", raw).want(http.StatusAccepted)
			if got.get("idempotency_key") != "" && again.get("id") != r.get("id") {
				t.Fatalf("%s and %s", r.body, again.body)
			}
		}
	})
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{
		"", "null", `{}`, `{"resolution":"answered","value":"yes"}`, `{"resolution":"answered","value":{"n":"x"}}`, `{"resolution":"declined","comment":"\u0000"}`,
		`{"resolution":"completed","checklist":[{"text":"a","done":true}]}`, `{"resolution":"answered","value":"\ud83d\ude00","edited":true}`, `{"resolution":"dismissed"}`,
	} {
		f.Add([]byte(s))
	}
	h := openHouse(f)
	bot := h.agent("bot")
	h.operator().call("PATCH", "/v1/settings", `{"rate_limit.requests_per_minute":10000000,"rate_limit.inbox_depth":10000000}`).want(200)
	set, err := schemas.Load()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h.t = t
		for _, m := range []msg{
			bot.ask(msg{"permissions": msg{"allow_edit": true}}),
			bot.ask(msg{"mode": "input", "schema": msg{"properties": msg{"n": msg{"type": "string"}}}}),
			bot.envelope("task").with("action", msg{"instructions": "x", "allowed_resolvers": []string{h.hub.operator().String()}}),
		} {
			id := bot.submit(m)
			r := h.operator().answer(id, raw)
			got := bot.call("GET", "/v1/messages/"+id, nil).want(200)
			switch r.status {
			case 200:
				if got.get("status") != r.get("status") {
					t.Fatalf("%s, %s", r.body, got.body)
				}
			case 400, 422:
				if got.get("status") != "open" {
					t.Fatalf("refused, and %s", got.body)
				}
			default:
				t.Fatalf("%d %s", r.status, r.body)
			}
			if bad, err := set.Validate("ma2h/get-message", got.body); err != nil || len(bad) > 0 {
				t.Fatalf("%v %v: %s", err, bad, got.body)
			}
		}
	})
}
