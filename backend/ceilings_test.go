package backend

import (
	"strconv"
	"strings"
	"testing"
)

// What no request may exceed is said where agents look, and holds.
func TestAdvertisedCeilingsHold(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	limit := func(name string) int {
		t.Helper()
		n, err := strconv.Atoi(bot.call("GET", "/.well-known/ma2h", nil).want(200).get("request_limits", name))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	size, depth := limit("max_bytes"), limit("max_depth")
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if r := bot.call("POST", "/v1/messages", nested(depth)); strings.Contains(r.get("error", "message"), "deep") {
		t.Errorf("%d levels: %s", depth, r.body)
	}
	if r := bot.call("POST", "/v1/messages", nested(depth+1)).want(400); !strings.Contains(r.get("error", "message"), "deep") {
		t.Errorf("%d levels: %s", depth+1, r.body)
	}
	if r := bot.call("POST", "/v1/messages", strings.Repeat(" ", size-2)+"{}"); strings.Contains(r.get("error", "message"), "larger") {
		t.Errorf("%d bytes: %s", size, r.body)
	}
	if r := bot.call("POST", "/v1/messages", strings.Repeat(" ", size-1)+"{}").want(422); !strings.Contains(r.get("error", "message"), "larger") {
		t.Errorf("%d bytes: %s", size+1, r.body)
	}
}

// What is wrong with a whole document is said of no field.
func TestErrorsOfAWholeDocumentReadWell(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	for path, body := range map[string]string{"/v1/messages": "[1]", "/v1/messages/" + id + "/resolve": "[]", "/v1/inbox/ack": "[]", "/v1/sessions": `"x"`} {
		if r := bot.call("POST", path, body); r.status < 400 || strings.HasPrefix(r.get("error", "message"), ":") || strings.HasPrefix(r.get("error", "message"), " ") {
			t.Errorf("%s %s: %s", path, body, r.body)
		}
	}
}
