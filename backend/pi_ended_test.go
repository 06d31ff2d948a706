package backend

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deskbell/backend/transcript"
)

// A session whose process has ended is listed as ended at once: what is sent to it is refused, what waited for it bounces,
// and a stop says that there was nothing to stop. Taken up again it is there again.
func TestPiEndedIsListedAsEnded(t *testing.T) {
	h := openHouse(t, withPi)
	id, op := h.startPi(nil), h.operator()
	agent := "pi/" + id
	h.tellPi(id, `ASK {"method":"confirm","title":"Go?"}`)
	h.waitPiAsks(1)
	if a := h.listed(agent); a == nil || a["ended_at"] != nil || a["presence"].(map[string]any)["state"] != "online" {
		t.Errorf("while it runs: %v", a)
	}
	h.endPi(id)
	eventually(t, "it has ended", func() bool { return h.piState(id) == "exited" })
	if a := h.listed(agent); a["ended_at"] == nil || a["presence"].(map[string]any)["state"] == "online" {
		t.Errorf("afterwards: %v", a)
	}
	if r := h.tell("agent:" + agent); r.status != http.StatusGone || r.code() != "destination_gone" {
		t.Errorf("told afterwards: %d %s", r.status, r.body)
	}
	if r := h.onACP(agent, "stop").want(http.StatusOK); r.get("ended") != "true" {
		t.Errorf("stopped afterwards: %s", r.body)
	}
	if got := op.call("GET", "/v1/agents/"+url.PathEscape(agent)+"/presence", nil).want(200).get("state"); got == "online" {
		t.Errorf("it is present")
	}
	h.startPi(msg{"resume": id})
	if a := h.listed(agent); a["ended_at"] != nil {
		t.Errorf("taken up again: %v", a)
	}
	h.tell("agent:" + agent).want(http.StatusCreated)
}

// What waits for a session that another one takes the place of in its process bounces; what waits for one behind a relay
// that was lost waits on: it may be back.
func TestPiNothingWaitsForTheEnded(t *testing.T) {
	h := openHouse(t, withPi)
	ctx, transcripts := t.Context(), h.hub.store.Transcripts()
	for _, c := range []struct {
		name string
		gone bool
		want string
	}{{"replaced", true, "bounced"}, {"lost", false, "queued"}} {
		agent := "pi/" + c.name
		if _, err := h.hub.fleet.Peer(ctx, agent, "pi"); err != nil {
			t.Fatal(err)
		}
		s := transcript.Session{Protocol: "pi", ID: c.name, Agent: agent, Origin: transcript.Relay, OpenedAt: h.now()}
		if err := transcripts.Put(ctx, s); err != nil {
			t.Fatal(err)
		}
		key := h.tell("agent:" + agent).want(http.StatusCreated).get("id")
		s.EndedAt, s.Gone = h.now(), c.gone
		if err := errors.Join(transcripts.Put(ctx, s), h.hub.mailbox.Bounce(ctx)); err != nil {
			t.Fatal(err)
		}
		if got := h.operator().call("GET", "/v1/directives/"+key, nil).want(200).get("delivery", "state"); got != c.want {
			t.Errorf("%s: what waited for it is %s", c.name, got)
		}
		if a := h.listed(agent); (a["ended_at"] != nil) != c.gone || a["presence"].(map[string]any)["state"] == "online" {
			t.Errorf("%s: %v", c.name, a)
		}
	}
}

// What pi refuses is no directive that it took, and neither is one that it has not answered; others are told meanwhile. That
// one is taken when pi says so, and told once.
func TestPiSaysWhatItTook(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	state := func(r reply) reply {
		return h.operator().call("GET", "/v1/directives/"+r.get("id"), nil).want(http.StatusOK)
	}
	refused := h.tell("agent:pi/"+id, msg{"title": "NO"}).want(http.StatusCreated)
	eventually(t, "it is refused", func() bool { return state(refused).get("delivery", "state") == "bounced" })
	if got := state(refused).get("delivery", "note"); got != "pi refused it: No API key found" {
		t.Errorf("why: %s", got)
	}
	asks := h.tell("agent:pi/"+id, msg{"title": "/ask"}).want(http.StatusCreated)
	m := h.waitPiAsks(1)[0]
	h.tell("agent:pi/"+id, msg{"title": "meanwhile"}).want(http.StatusCreated)
	eventuallyIn(t, 30*time.Second, "another is told", func() bool { return strings.Contains(h.piText(id), "meanwhile") })
	if got := state(asks).get("delivery", "state"); got != "delivered" {
		t.Errorf("what pi has not answered is %s", got)
	}
	h.operator().call("POST", "/v1/messages/"+walk(m, []string{"id"})+"/resolve", `{"resolution":"answered","value":"approve"}`).want(http.StatusOK)
	eventually(t, "it is taken", func() bool { return state(asks).get("delivery", "state") == "acknowledged" })
}

// A pi that says much before it says who it is, as a relay does that was away, or that is slow to start, is one session: by
// pi's own name, and no other.
func TestPiSaysWhoItIsLate(t *testing.T) {
	h := openHouse(t)
	for id, says := range map[string]struct {
		hello, record string
		times         int
	}{
		"behind a backlog": {`{"type":"relay_hello","folder":"/w","again":true}`, `{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Go?"}`, 20},
		"slow to start":    {`{"type":"relay_hello","folder":"/w"}`, `{"type":"extension_ui_request","id":"n","method":"notify","message":"hello"}`, 1},
	} {
		id = strings.ReplaceAll(id, " ", "-")
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(h.hub.URL(), "http", "ws", 1)+"/pi", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		say := func(record string) {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(record)); err != nil {
				t.Fatal(err)
			}
		}
		say(says.hello)
		_, asked, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range says.times {
			say(says.record)
		}
		say(fmt.Sprintf(`{"type":"response","command":"get_state","id":%q,"success":true,"data":{"sessionId":%q}}`, field(asked, "id"), id))
		eventually(t, "it is there", func() bool {
			_, err := h.hub.store.Transcripts().Get(t.Context(), "pi", id)
			return err == nil
		})
		sessions, err := h.hub.store.Transcripts().List(t.Context(), "pi", time.Time{}, 10)
		for _, s := range sessions {
			if strings.HasPrefix(s.ID, "s-") {
				t.Errorf("%s: there is a session %s", id, s.ID)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}
