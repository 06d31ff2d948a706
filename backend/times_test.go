package backend

import (
	"encoding/json"
	"testing"
	"time"
)

// Every time on a path of /v1 is RFC 3339; only the page's own calls count milliseconds.
func TestAgentsListTimesAsTheWireDoes(t *testing.T) {
	h, c := openBox(t)
	b := h.peer("b")
	b.register()
	c.move(time.Minute)
	b.drain("")
	h.tell("b").want(201)
	h.operator().call("POST", "/v1/agents/b/stop", nil).want(200)
	h.agent("gone")
	h.operator().call("DELETE", "/v1/agents/gone", nil).want(204)
	var doc struct{ Agents []map[string]any }
	h.operator().call("GET", "/v1/agents", nil).want(200).into(&doc)
	if len(doc.Agents) != 2 {
		t.Fatalf("%v", doc)
	}
	at := stamp(c.now())
	for _, want := range []struct {
		agent int
		path  []string
		value string
	}{
		{0, []string{"agent_id"}, "b"}, {0, []string{"created_at"}, stamp(noon)}, {0, []string{"last_seen"}, at}, {0, []string{"presence"}, `{"last_seen":"` + at + `","state":"online"}`},
		{0, []string{"stopped", "at"}, at}, {0, []string{"entries_waiting"}, "1"}, {0, []string{"revoked_at"}, ""},
		{1, []string{"revoked_at"}, at}, {1, []string{"presence"}, `{"state":"unknown"}`}, {1, []string{"stopped"}, ""},
	} {
		if got := walk(doc.Agents[want.agent], want.path); got != want.value {
			t.Errorf("%v of %d: %s, want %s", want.path, want.agent, got, want.value)
		}
	}
	var numbers func(path string, v any)
	numbers = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				numbers(path+"/"+name, x)
			}
		case []any:
			for _, x := range v {
				numbers(path, x)
			}
		case float64:
			if v > 1e9 {
				text, _ := json.Marshal(v)
				t.Errorf("%s is %s: a time in milliseconds?", path, text)
			}
		}
	}
	for _, a := range doc.Agents {
		numbers("", a)
	}
}
