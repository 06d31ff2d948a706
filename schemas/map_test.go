package schemas

import (
	"slices"
	"strings"
	"testing"
)

// What MAP's schemas take and refuse: as they stand, and as the hub reads requests.
func TestMAP(t *testing.T) {
	set := load(t)
	if n := len(set.MAPMethods()); n != 48 {
		t.Errorf("%d methods, want 48", n)
	}
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	for _, c := range []struct{ schema, doc, want string }{
		{"ConnectRequest", request("map/connect", `{"protocolVersion":1,"participantType":"agent"}`), ``},
		{"ConnectRequest", request("map/connect", `{"protocolVersion":2,"participantType":"agent"}`), `/params/protocolVersion`},
		{"ConnectRequest", request("map/connect", `{"protocolVersion":1,"participantType":"agent","capabilities":{"tasks":{}}}`), `/params/capabilities`},
		{"open/ConnectRequest", request("map/connect", `{"protocolVersion":2,"participantType":"agent","capabilities":{"tasks":{}},"auth":{"method":"did:wba"}}`), ``},
		{"open/ConnectRequest", request("map/connect", `{"protocolVersion":1,"participantType":"robot"}`), `/params/participantType`},
		{"open/ConnectRequest", request("map/connect", `{"protocolVersion":1}`), `/params/participantType`},
		{"open/ConnectRequest", request("map/connect", `{"protocolVersion":1,"participantType":"agent","capabilities":{"messaging":{"canSend":"yes"}}}`), `/params/capabilities/messaging/canSend`},
		{"open/SendRequest", request("map/send", `{"to":{"agent":"a"},"meta":{"protocol":"acp"}}`), ``},
		{"open/SendRequest", request("map/send", `{"to":{"agent":"a","more":1}}`), ``},
		{"SendRequest", request("map/send", `{"to":{"agent":"a","more":1}}`), `/params/to`},
		{"open/SendRequest", request("map/send", `{"payload":1}`), `/params/to`},
		{"open/SendRequest", request("map/send", `{"to":"a","meta":{"priority":"loud"}}`), `/params/meta/priority`},
		{"open/SubscribeRequest", request("map/subscribe", `{"filter":{"eventTypes":["agent.*"],"fromAgents":["a"]}}`), ``},
		{"SubscribeRequest", request("map/subscribe", `{"filter":{"eventTypes":["agent.*"]}}`), `/params/filter/eventTypes/0`},
		{"open/AuthRefreshRequest", request("map/auth/refresh", `{"method":"bearer","credential":"x"}`), ``},
		{"AuthRefreshRequest", request("map/auth/refresh", `{"method":"bearer","credential":"x"}`), `/params/refreshToken`},
		{"open/AgentsUpdateRequest", request("map/agents/update", `{"agentId":"a","state":"x-thinking"}`), ``},
		{"open/AgentsUpdateRequest", request("map/agents/update", `{"agentId":"a","state":"custom:x"}`), `/params/state`},
		{"open/MailTurnRequest", request("mail/turn", `{"conversationId":"c","contentType":"text"}`), `/params/content`},
		{"ConnectResponse", `{"protocolVersion":"1","sessionId":"s","participantId":"p","capabilities":{}}`, `/protocolVersion`},
	} {
		bad, err := set.Validate("map/"+c.schema, []byte(c.doc))
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && len(bad) > 0 {
			t.Errorf("%s refused %s: %v", c.schema, c.doc, bad)
		}
		if c.want != "" && !slices.ContainsFunc(bad, func(f FieldError) bool { return strings.HasPrefix(f.Pointer, c.want) }) {
			t.Errorf("%s: %s: %v, want it refused at %s", c.schema, c.doc, bad, c.want)
		}
	}
}
