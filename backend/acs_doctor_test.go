package backend

import (
	"net/url"
	"testing"
)

// The doctor of this program is no agent of the fleet, unless it asks leave for something: then it can be stopped.
func TestACSDoctorIsNoAgent(t *testing.T) {
	h := openHouse(t)
	a := h.guardedOn("deskbell")
	a.id = "doctor"
	a.hello().allowedTo(t)
	a.step("steps/sessionStart", msg{}).allowedTo(t)
	if got := h.listed(a.peer()); got != nil {
		t.Errorf("it is listed: %v", got)
	}
	a.step("steps/toolCallRequest", msg{"tool": msg{"name": ACSDoctorTool}, "arguments": msg{}}).deniedFor(t, "doctor")
	if got := h.listed(a.peer()); got == nil {
		t.Error("it asked for something, and is not listed")
	}
	h.operator().call("POST", "/v1/agents/"+url.PathEscape(a.peer())+"/stop", nil).want(200)
	a.step("steps/userMessage", msg{"content": []msg{{"type": "text", "value": "x"}}}).deniedFor(t, "agent_stopped")
}
