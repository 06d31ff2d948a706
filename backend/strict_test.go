package backend

import (
	"net/http"
	"strings"
	"testing"
)

// What the operator writes and the hub does not know is refused by its name: who believes to have restricted something
// must not be left believing it.
func TestOperatorRequestsHaveKnownMembersOnly(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	ask := bot.submit(bot.ask())
	op := h.operator()
	for _, c := range []struct {
		method, path string
		body         msg
		pointer      string
	}{
		{"POST", "/v1/agents", msg{"agent_id": "other", "bogus": 1}, "/bogus"},
		{"PUT", "/v1/agents/bot/policy", msg{"allowed_sender": []string{"bot"}}, "/allowed_sender"},
		{"POST", "/v1/agents/bot/stop", msg{"bogus": 1}, "/bogus"},
		{"POST", "/v1/agents/bot/resume", msg{"a/b~c": 1}, "/a~1b~0c"},
		{"POST", "/api/practice", msg{"a/b~c": 1}, "/a~1b~0c"},
		{"PATCH", "/v1/settings", msg{"retention": 3}, "/retention"},
		{"POST", "/api/agents/bot/rotate", msg{"bogus": 1}, "/bogus"},
		{"POST", "/api/agents/bot/hosts", msg{"host": "a.example", "approve": true, "bogus": 1}, "/bogus"},
		{"POST", "/api/pairings/pair_x", msg{"approved": true}, "/approved"},
		{"PUT", "/api/secrets/x", msg{"value": "v", "agent": "bot"}, "/agent"},
		{"POST", "/api/backup", msg{"paths": "/x"}, "/paths"},
		{"POST", "/api/marks/read", msg{"boxes": "done"}, "/boxes"},
		{"POST", "/api/practice", msg{"bogus": 1}, "/bogus"},
		{"POST", "/api/session", msg{"token": h.token, "bogus": 1}, "/bogus"},
		{"POST", "/api/items/" + ask + "/marks", msg{"stared": true}, "/stared"},
		{"POST", "/api/items/" + ask + "/resolve", msg{"resolution": "answered", "value": "yes", "remark": "x"}, "/remark"},
		{"POST", "/api/items/" + ask + "/undo", msg{"bogus": 1}, "/bogus"},
		{"POST", "/api/items/" + ask + "/redeliver", msg{"bogus": 1}, "/bogus"},
		{"POST", "/api/items/" + ask + "/allow-operator", msg{"bogus": 1}, "/bogus"},
	} {
		r := op.call(c.method, c.path, c.body)
		if (r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity) || !strings.Contains(r.get("error", "details"), `"pointer":"`+c.pointer+`"`) {
			t.Errorf("%s %s %v: %d %s", c.method, c.path, c.body, r.status, r.body)
		}
	}
	if r := op.call("GET", "/v1/agents", nil).want(200); strings.Contains(string(r.body), `"other"`) {
		t.Errorf("a refused request was carried out: %s", r.body)
	}
	if it := h.item(ask); it.Terminal() || it.Marks.Starred {
		t.Errorf("%+v", it)
	}
	// MA2H messages and their answers are not held to that: there a newer version's members are passed over.
	op.answer(ask, msg{"resolution": "answered", "value": "yes", "later": 1}).want(200)
	bot.call("POST", "/v1/messages", bot.ask().with("later", 1)).want(202)
}
