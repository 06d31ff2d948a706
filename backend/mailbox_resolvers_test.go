package backend

import (
	"net/http"
	"testing"
)

// Whom the person is sent to about a message between agents is who the hub lets answer it (MA2H §9.1).
func TestWhoMayAnswerIsSaidAsItIs(t *testing.T) {
	h, _ := openBox(t)
	a, b, third := h.peer("a"), h.peer("b"), h.peer("c")
	bs, other := b.register(), b.register()
	person := h.hub.settings.Get().Operator().String()
	listed := func(to string, resolvers ...string) msg {
		m := a.to("ask", to, "")
		m["request"].(msg)["allowed_resolvers"] = append([]string{}, resolvers...)
		return m
	}
	for _, c := range []struct {
		m    msg
		says string
		may  map[string]bool // by whom, whether it may
	}{
		{a.to("ask", "agent:b", ""), "It is addressed to agent:b: only that agent may answer it.", map[string]bool{"b": true, "c": false}},
		{a.to("ask", "agent:b#"+bs, ""), "It is addressed to agent:b#" + bs + ": only agent:b may answer it, in any of its sessions.", map[string]bool{"b other": true, "c": false}},
		{listed("agent:b", "agent:c"), "Only agent:c may answer it; you are " + person + ".", map[string]bool{"b": false, "c": true}},
		{listed("agent:b", "agent:b#"+bs), "Only agent:b#" + bs + " may answer it; you are " + person + ".", map[string]bool{"b other": false, "b": false, "c": false}},
		{listed("agent:b"), "This message says that nobody may answer it.", map[string]bool{"b": false, "c": false}},
	} {
		id := a.send(c.m)
		if says := h.operator().call("GET", "/api/items/"+id, nil).get("answerable", "reason"); says != c.says {
			t.Errorf("%s\nwant %s", says, c.says)
		}
		for _, who := range []string{"c", "b", "b other"} {
			may, asked := c.may[who]
			if !asked {
				continue
			}
			by, query := map[string]*peer{"b": b, "b other": b, "c": third}[who], ""
			if who == "b other" {
				query = q(other)
			}
			r := by.call("POST", "/v1/messages/"+id+"/resolve"+query, msg{"resolution": "answered", "value": "approve"})
			if (r.status == http.StatusOK) != may {
				t.Errorf("%q, and %s gets %d", c.says, who, r.status)
			}
		}
	}
}
