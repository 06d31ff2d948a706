package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"deskbell/backend/protocol"
)

// Who refuses in its own words has what was sent, within the bounds of any body, and not who came: whatever does not come, or is
// too much, is nothing.
func TestRefusalInOwnWordsHasTheBody(t *testing.T) {
	refused := func(w http.ResponseWriter, r *http.Request, e *protocol.Error) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return protocol.WriteJSON(w, e.Status, map[string]string{"repeats": string(body)})
	}
	d := open(t, []protocol.Route{{Pattern: "POST /v1/own", Access: protocol.AgentOnly, MaxBody: 10, Refused: refused,
		Handle: func(http.ResponseWriter, *http.Request, protocol.Caller) error { panic("it was let in") }}})
	for body, want := range map[string]string{"{}": "{}", strings.Repeat("x", 11): ""} {
		resp, answer := d.send(fmt.Sprintf("POST /v1/own HTTP/1.1\nHost: $HOST\nContent-Type: application/json\nContent-Length: %d\n\n%s", len(body), body))
		if resp.StatusCode != 401 || !strings.Contains(answer, `{"repeats":"`+want+`"}`) {
			t.Errorf("%q: %d %s", body, resp.StatusCode, answer)
		}
	}
	resp, answer := d.send("POST /v1/own HTTP/1.1\nHost: $HOST\nContent-Type: application/json\nContent-Length: 5\n\n{")
	if resp.StatusCode != 401 || !strings.Contains(answer, `{"repeats":""}`) {
		t.Errorf("unfinished: %d %s", resp.StatusCode, answer)
	}
}
