package backend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realPi is where the pi is that `make test` installs.
const realPi = "../build/pitest/node_modules/.bin/pi"

// withRealPi is a house whose pi is the real one, with a model of this test's own and a folder of its own.
func withRealPi(h *house) {
	path, err := filepath.Abs(realPi)
	if err == nil {
		_, err = os.Stat(path)
	}
	t, ok := h.t.(*testing.T)
	if err != nil || !ok {
		h.t.Skipf("the real pi is not installed (make test does): %v", err)
	}
	model := httptest.NewServer(http.HandlerFunc(stubModel))
	t.Cleanup(model.Close)
	dir := t.TempDir()
	write := func(name string, v any) {
		raw, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("models.json", msg{"providers": msg{"stub": msg{"baseUrl": model.URL + "/v1", "api": "openai-completions", "apiKey": "x",
		"compat": msg{"supportsDeveloperRole": false, "supportsReasoningEffort": false}, "models": []msg{{"id": "stub-1"}}}}})
	write("settings.json", msg{"defaultProvider": "stub", "defaultModel": "stub-1"})
	for name, value := range map[string]string{"PI_CODING_AGENT_DIR": dir, "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"} {
		t.Setenv(name, value)
	}
	h.pi = path
}

// stubModel is a model that runs what stands in RUN{…} and says what came of it, and otherwise repeats what it is told.
func stubModel(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if len(in.Messages) == 0 {
		http.Error(w, "no messages", http.StatusBadRequest)
		return
	}
	last := in.Messages[len(in.Messages)-1]
	var said string
	if json.Unmarshal(last.Content, &said) != nil {
		var parts []struct{ Text string }
		_ = json.Unmarshal(last.Content, &parts)
		for _, p := range parts {
			said += p.Text
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta msg, finish any) {
		raw, _ := json.Marshal(msg{"id": "c", "object": "chat.completion.chunk", "model": "stub-1", "choices": []msg{{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
	_, command, runs := strings.Cut(said, "RUN{")
	command, _, _ = strings.Cut(command, "}")
	if runs && last.Role == "user" {
		arguments, _ := json.Marshal(msg{"command": command})
		send(msg{"role": "assistant", "content": "I will run it."}, nil)
		send(msg{"tool_calls": []msg{{"index": 0, "id": unique("call_"), "type": "function", "function": msg{"name": "bash", "arguments": string(arguments)}}}}, nil)
		send(msg{}, "tool_calls")
	} else {
		send(msg{"role": "assistant", "content": "I heard: " + said}, nil)
		send(msg{}, "stop")
	}
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","model":"stub-1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`+"\n\ndata: [DONE]\n\n")
}

// The real pi, with the hub's gate: what is refused does not run and the model reads why, what is allowed runs, what runs
// is stopped, and the session is taken up again with its history.
func TestTheRealPi(t *testing.T) {
	h := openHouse(t, withRealPi)
	folder := t.TempDir()
	id := h.startPi(msg{"folder": folder, "gate": true})
	file := filepath.Join(folder, "made")
	run := "RUN{touch " + file + " && echo made it}"

	h.tellPi(id, run)
	m := h.waitPiAsks(1)[0]
	if title := walk(m, []string{"title"}); !strings.HasPrefix(title, "bash: touch ") {
		t.Errorf("the card says %q", title)
	}
	h.operator().call("POST", "/v1/messages/"+walk(m, []string{"id"})+"/resolve", msg{"resolution": "answered", "value": "deny", "comment": "not in this folder"}).want(http.StatusOK)
	h.waitPiText(id, "I heard: not in this folder")
	if _, err := os.Stat(file); err == nil {
		t.Fatal("what was refused was run")
	}

	eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })
	h.tellPi(id, run)
	h.operator().call("POST", "/v1/messages/"+walk(h.waitPiAsks(1)[0], []string{"id"})+"/resolve", msg{"resolution": "answered", "value": "allow"}).want(http.StatusOK)
	h.waitPiText(id, "I heard: made it")
	if _, err := os.Stat(file); err != nil {
		t.Error("what was allowed was not run")
	}

	// A stop lets go of what waits for the person, and the process goes on.
	eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })
	h.tellPi(id, run)
	h.waitPiAsks(1)
	h.operator().call("POST", "/api/pi/"+id+"/stop", nil).want(http.StatusOK)
	eventually(t, "it is stopped", func() bool { return len(h.piAsks()) == 0 && h.piState(id) == "idle" })

	h.operator().call("POST", "/v1/directives", msg{"to": "pi/" + id, "title": "hello from the desk"}).want(http.StatusCreated)
	h.waitPiText(id, "I heard: hello from the desk")

	// It is forked at its second prompt: another session, which has what came before it.
	eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })
	forked := h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"type": "fork", "row": h.userRows(id)[1]}).want(http.StatusOK)
	first := id
	if id = forked.get("session"); id == "" || id == first {
		t.Fatalf("%s", forked.body)
	}
	h.waitPiText(id, "I heard: not in this folder")
	if text := h.piText(id); strings.Contains(text, "I heard: made it") || strings.Count(text, "user: ") != 1 {
		t.Errorf("the fork has\n%s", text)
	}
	if now := h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK); now.get("info", "prefill") != run || now.get("info", "models", "0", "id") != "stub-1" {
		t.Errorf("%s", now.body)
	}
	h.tellPi(id, "in the fork")
	h.waitPiText(id, "I heard: in the fork")
	eventually(t, "it is idle", func() bool { return h.piState(id) == "idle" })

	// The gate holds there too. While its question waits the model is told something that it is to hear before it goes on.
	h.tellPi(id, run)
	ask := walk(h.waitPiAsks(1)[0], []string{"id"})
	h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "and mind the tests", "steer": true}).want(http.StatusOK)
	eventually(t, "it waits to be told", func() bool {
		return strings.Contains(h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK).get("info", "steering"), "and mind the tests")
	})
	h.operator().call("POST", "/v1/messages/"+ask+"/resolve", msg{"resolution": "answered", "value": "allow"}).want(http.StatusOK)
	h.waitPiText(id, "I heard: and mind the tests")
	eventually(t, "it is idle, and knows what it has cost", func() bool {
		now := h.operator().call("GET", "/api/pi/"+id, nil).want(http.StatusOK)
		return now.get("session", "state") == "idle" && now.get("info", "steering") == "[]" && now.get("info", "total") != ""
	})

	// A command of the person's own passes no gate, and is stopped by Stop.
	h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "!printf 'by %s' hand"}).want(http.StatusOK)
	h.waitPiText(id, "by hand")
	h.operator().call("POST", "/api/pi/"+id+"/commands", msg{"text": "/login"}).want(http.StatusUnprocessableEntity)

	before := h.piText(id)
	if how := h.endPi(id); how != "ended by you" {
		t.Errorf("it %s", how)
	}
	if again := h.startPi(msg{"resume": id}); again != id {
		t.Fatalf("taken up as %s", again)
	}
	h.tellPi(id, "and again")
	h.waitPiText(id, "I heard: and again")
	if now := h.piText(id); !strings.HasPrefix(now, before) {
		t.Errorf("its history changed:\n%s\nwas\n%s", now, before)
	}
	// It has its gate still, though nobody said so again.
	h.tellPi(id, run)
	h.operator().call("POST", "/v1/messages/"+walk(h.waitPiAsks(1)[0], []string{"id"})+"/resolve", msg{"resolution": "answered", "value": "deny"}).want(http.StatusOK)
	h.waitPiText(id, "I heard: Refused by the person at this hub.")
	h.endPi(id)
}
