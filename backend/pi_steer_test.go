package backend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"deskbell/backend/transcript"
)

// userRows are the numbers of the person's prompts in a transcript.
func (h *house) userRows(id string) (out []int) {
	h.t.Helper()
	rows, err := h.hub.store.Transcripts().Rows(h.t.Context(), "pi", id, transcript.Query{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Kind == "user" {
			out = append(out, r.N)
		}
	}
	return out
}

// A session is forked at a prompt, by pi's own id for it or by its row, also where others say the same; what is there then
// is another session, with the prompt offered again. An old pi forks under another name.
func TestPiForks(t *testing.T) {
	for name, args := range map[string][]string{"now": nil, "before 0.43": {"--old"}} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, withPi)
			id := h.startPi(msg{"args": args})
			for i, text := range []string{"one", "two  lines", "one", "one more"} {
				h.tellPi(id, text)
				eventually(t, "the prompt is kept", func() bool { return len(h.userRows(id)) == i+1 && h.piState(id) == "idle" })
			}
			rows := h.userRows(id)
			forks := h.operator().call("GET", "/api/pi/"+id+"/forks", nil).want(http.StatusOK)
			if got := forks.get("forks", "0", "entry") + forks.get("forks", "3", "entry"); got != "e3e0" {
				t.Errorf("forks %s", forks.body)
			}
			fork := func(id string, body msg) reply {
				body["type"] = "fork"
				return h.operator().call("POST", "/api/pi/"+id+"/commands", body)
			}
			if r := fork(id, msg{"row": rows[0] + 1}); r.status != http.StatusConflict || !strings.Contains(string(r.body), "no such prompt") {
				t.Errorf("a row that is no prompt: %d %s", r.status, r.body)
			}
			if r := fork(id, msg{"entry": "nope"}); r.status != http.StatusConflict || !strings.Contains(string(r.body), "Invalid entry ID") {
				t.Errorf("an entry that is none: %d %s", r.status, r.body)
			}
			// The later of the two that say "one": what came before it is there still.
			r := fork(id, msg{"row": rows[2]}).want(http.StatusOK)
			then := r.get("session")
			if then != "sess-1f" {
				t.Fatalf("%s", r.body)
			}
			if now := h.operator().call("GET", "/api/pi/"+then, nil).want(http.StatusOK); now.get("info", "prefill") != "one" {
				t.Errorf("%s", now.body)
			}
			if was := h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK); was.get("session", "then") != then {
				t.Errorf("it does not lead on: %s", was.body)
			}
			if left := h.operator().call("GET", "/api/pi/"+then+"/forks", nil).want(http.StatusOK); left.get("forks", "0", "entry") != "e1" {
				t.Errorf("%s", left.body)
			}
			if r := fork(then, msg{"entry": "e0"}).want(http.StatusOK); r.get("session") != "sess-1ff" {
				t.Errorf("%s", r.body)
			}
			r = h.operator().call("POST", "/api/pi/sess-1ff/commands", msg{"type": "clear_queue"})
			if old := args != nil; old && (r.status != http.StatusConflict || !strings.Contains(string(r.body), "this version of pi cannot do that")) || !old && r.status != http.StatusOK {
				t.Errorf("%d %s", r.status, r.body)
			}
			eventually(t, "the first has ended", func() bool { return h.piState(id) == "exited" })
			// The first can be taken up again beside the one that took its place.
			if again := h.startPi(msg{"resume": id}); again != id {
				t.Errorf("taken up as %s", again)
			}
		})
	}
}

// The model and how much it thinks are chosen, and the page is told what pi made of it; what it refuses is said.
func TestPiModelAndThinking(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	look := func() (string, reply) {
		r := h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK)
		return fmt.Sprintf("%s/%s %s", r.get("info", "provider"), r.get("info", "model"), r.get("info", "thinking")), r
	}
	eventually(t, "models and levels are known", func() bool {
		_, r := look()
		return r.get("info", "models", "1", "id") == "n" && r.get("info", "levels", "2") == "high"
	})
	tell := func(body msg) reply { return h.operator().call("POST", "/api/pi/"+id+"/commands", body) }
	tell(msg{"type": "set_model", "provider": "p", "model": "n"}).want(http.StatusOK)
	tell(msg{"type": "set_thinking_level", "level": "xhigh"}).want(http.StatusOK)
	if got, _ := look(); got != "p/n high" {
		t.Errorf("it is %s", got)
	}
	if r := tell(msg{"type": "set_model", "provider": "p", "model": "x"}); r.status != http.StatusConflict || !strings.Contains(string(r.body), "Model not found: p/x") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := tell(msg{"type": "set_thinking_level", "level": "most"}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", r.status, r.body)
	}
	eventually(t, "they are offered for the next session", func() bool {
		return h.operator().call("GET", "/api/pi-models", nil).want(http.StatusOK).get("models", "0", "id") == "m"
	})
}

// What cannot be told is refused under the name that it was sent by, in words that help.
func TestPiNamesWhatCannotBeTold(t *testing.T) {
	h := openHouse(t, withPi)
	id := h.startPi(nil)
	for body, want := range map[string]string{
		`{"text":" "}`: "/text must not be blank", `{"type":"set_model","provider":"p"}`: "/model must not be blank", `{"type":"set_model","model":"m"}`: "/provider must not be blank",
		`{"text":"/name"}`: `/text "/name" needs the name that the session is to have`, `{"text":"hi","images":[{"mime":"image/png","data":"!!"}]}`: "/images must be base64",
	} {
		r := h.operator().call("POST", "/api/pi/"+id+"/commands", body).want(http.StatusUnprocessableEntity)
		if got := r.get("error", "details", "0", "pointer") + " " + r.get("error", "details", "0", "message"); got != want {
			t.Errorf("%s: %s; %s", body, got, r.body)
		}
	}
}

// How long nothing was heard of a session at work is told, and is over with a stop.
func TestPiIsSilent(t *testing.T) {
	c := &clock{}
	c.set(noon)
	h := openHouse(t, withPi, withClock(c))
	id := h.startPi(nil)
	quiet := func() string { return h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK).get("quiet_ms") }
	h.tellPi(id, "SLOW")
	h.waitPiText(id, "SLOW")
	c.move(3 * time.Minute)
	if got := quiet(); got != "180000" || h.piState(id) != "running" {
		t.Errorf("%s: nothing was heard for %s ms", h.piState(id), got)
	}
	h.operator().call("POST", "/api/pi/"+id+"/stop", nil).want(http.StatusOK)
	eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })
	if got := quiet(); got != "0" {
		t.Errorf("it is idle, and nothing was heard for %s ms", got)
	}
}
