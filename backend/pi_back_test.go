package backend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// farPi is a pi behind a relay, which the test speaks for.
type farPi struct {
	h    *house
	conn *websocket.Conn
}

// farPi connects one that says hello and who it is: the session “far”, with so many messages.
func (h *house) farPi(hello string, messages int) *farPi {
	h.t.Helper()
	conn, _, err := websocket.Dial(h.t.Context(), strings.Replace(h.hub.URL(), "http", "ws", 1)+"/pi", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	p := &farPi{h, conn}
	p.say(hello)
	p.answer("get_state", fmt.Sprintf(`{"sessionId":"far","messageCount":%d}`, messages))
	return p
}

func (p *farPi) say(records ...string) {
	p.h.t.Helper()
	for _, s := range records {
		if err := p.conn.Write(p.h.t.Context(), websocket.MessageText, []byte(s)); err != nil {
			p.h.t.Fatal(err)
		}
	}
}

// answer answers the next command of a type.
func (p *farPi) answer(command, data string) {
	p.h.t.Helper()
	for {
		_, asked, err := p.conn.Read(p.h.t.Context())
		if err != nil {
			p.h.t.Fatal(err)
		}
		if field(asked, "type") == command {
			p.say(fmt.Sprintf(`{"type":"response","command":%q,"id":%q,"success":true,"data":%s}`, command, field(asked, "id"), data))
			return
		}
	}
}

// lose loses its relay.
func (p *farPi) lose() {
	p.h.t.Helper()
	_ = p.conn.CloseNow()
	eventually(p.h.t, "it is lost", func() bool { return p.h.piState("far") == "exited" })
}

// farMessage is a message, begun so many milliseconds after some moment.
func farMessage(role, content string, at int) string {
	return fmt.Sprintf(`{"role":%q,"content":%s,"timestamp":%d}`, role, content, time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC).UnixMilli()+int64(at))
}

// farBegun and farSaid are the records of its beginning, and of all of it.
func farBegun(message string) string { return `{"type":"message_start","message":` + message + `}` }
func farSaid(message string) []string {
	return []string{farBegun(message), `{"type":"message_end","message":` + message + `}`}
}

const farHello, farAgain = `{"type":"relay_hello","folder":"/w"}`, `{"type":"relay_hello","folder":"/w","again":true}`

// What runs while its hub is lost goes on in its row when the relay is back, with all that was known of it.
func TestPiRelayGoesOnInItsRows(t *testing.T) {
	h := openHouse(t)
	rows := func() string {
		return string(h.operator().call("GET", "/api/pi/far/rows", nil).want(http.StatusOK).body)
	}
	p := h.farPi(farHello, 0)
	p.say(`{"type":"agent_start"}`, `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command": "sleep 301"}}`)
	eventually(t, "it runs", func() bool { return strings.Contains(h.piText("far"), "sleep 301") })
	p.lose()
	eventually(t, "it is broken off, as far as one knows", func() bool { return strings.Contains(rows(), `"interrupted":true`) })
	p = h.farPi(farAgain, 0)
	p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command": "sleep 301"}}`) // as a relay says again of what still runs
	p.say(`{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":"slept"},"isError":false}`)
	eventually(t, "it has ended", func() bool { return strings.Contains(h.piText("far"), "slept") })
	if got := rows(); strings.Contains(got, "interrupted") || strings.Count(got, `"call":"c1"`) != 1 || !strings.Contains(got, "sleep 301") {
		t.Error(got)
	}
	p.lose()
	p = h.farPi(farHello, 0) // another pi, whose model counts anew
	p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"date"}}`)
	eventually(t, "it has a row of its own", func() bool { return strings.Count(rows(), `"call":"c1"`) == 2 })
}

// An answer that was broken off before goes on in its row when its relay is back, and no other does, nor a call of its id:
// not after another hub, nor after another life.
func TestPiRelayKeepsItsAnswersApart(t *testing.T) {
	h := openHouse(t)
	p := h.farPi(farHello, 0)
	p.say(farSaid(farMessage("user", `"one"`, 0))...)
	p.say(farBegun(farMessage("assistant", `"half of one"`, 1)))
	eventually(t, "it answers", func() bool { return strings.Contains(h.piText("far"), "half of one") })
	p.lose()
	p = h.farPi(farAgain, 0)
	p.say(`{"type":"message_end","message":` + farMessage("assistant", `"all of one"`, 1) + `}`)
	eventually(t, "it has answered", func() bool { return strings.Contains(h.piText("far"), "2 assistant: all of one") })
	p.say(farSaid(farMessage("user", `"two"`, 2))...)
	p.say(farBegun(farMessage("assistant", `"half of two"`, 3)))
	p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"sleep 302"}}`)
	eventually(t, "it answers again", func() bool { return strings.Contains(h.piText("far"), "sleep 302") })
	p.lose()
	p = h.farPi(farAgain, 0)
	p.say(farSaid(farMessage("user", `"three"`, 4))...)
	p.say(farSaid(farMessage("assistant", `"an answer to three"`, 5))...)
	p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"sleep 302"}}`)
	eventually(t, "the next call", func() bool { return strings.Count(h.piText("far"), "sleep 302") == 2 })
	if got := h.piText("far"); !strings.Contains(got, "half of two") || strings.Index(got, "an answer to three") < strings.Index(got, "user: three") {
		t.Error(got)
	}
}

// What a hub heard in the moment before it was killed, and wrote down nowhere, is in the transcript when the relay is back,
// before what came after it, and once.
func TestPiRelayRecallsWhatWasNotWrittenDown(t *testing.T) {
	h := openHouse(t)
	p := h.farPi(farHello, 0)
	one, two := farMessage("user", `"one"`, 0), farMessage("user", `"two"`, 1)
	call := farMessage("assistant", `[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"sleep 303"}}]`, 2)
	result := farMessage("toolResult", `"slept"`, 3)[1:]
	after := farMessage("assistant", `"well"`, 4)
	p.say(farSaid(one)...)
	eventually(t, "it is told", func() bool { return strings.Contains(h.piText("far"), "one") })
	p.lose()
	p = h.farPi(farAgain, 5)
	p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"sleep 303"}}`)
	p.say(`{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":"slept"},"isError":false}`)
	p.say(farSaid(after)...)
	p.answer("get_messages", `{"messages":[`+strings.Join([]string{one, two, call, `{"toolCallId":"c1",` + result, after}, ",")+`]}`)
	eventually(t, "all of it", func() bool { return strings.Contains(h.piText("far"), "well") })
	got := strings.ReplaceAll(strings.TrimSpace(h.piText("far")), "\n", "; ")
	const want = "1 user: one; 2 notice: ended |  | the connection to the relay was lost; 3 notice: the next 2 entries were said while the hub did not follow this session; " +
		"4 user: two; 5 assistant: "
	if !strings.HasPrefix(got, want) || strings.Count(got, "tool:") != 1 || !strings.Contains(got, "; 6 tool: ") || !strings.HasSuffix(got, "; 7 assistant: well") {
		t.Error(got)
	}
}

// A pi that has nothing of what was said before, as where it never wrote its file, does not pass for one that goes on.
func TestPiThatForgotSaysSo(t *testing.T) {
	h := openHouse(t)
	p := h.farPi(farHello, 0)
	one := farMessage("user", `"one"`, 0)
	p.say(farSaid(one)...)
	eventually(t, "it is told", func() bool { return strings.Contains(h.piText("far"), "one") })
	p.lose()
	p = h.farPi(farHello, 1)
	p.answer("get_messages", `{"messages":[`+one+`]}`)
	p.answer("get_commands", `{}`)
	p.lose()
	if got := h.piText("far"); strings.Contains(got, "pi has nothing") {
		t.Errorf("it knows: %s", got)
	}
	h.farPi(farHello, 0)
	eventually(t, "it says so", func() bool { return strings.Contains(h.piText("far"), "pi has nothing of what was said here before") })
}
