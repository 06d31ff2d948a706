//go:build window

package windowtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests drive the program itself: build/bin/deskbell, its hub, its page.

// request speaks to the hub as an agent or as the operator does, and wants the status.
func (p *program) request(method, path, token string, want int, in, out any) {
	p.t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			p.t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, p.url+path, &body)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(resp.Body)
	if resp.StatusCode != want {
		p.t.Fatalf("%s %s: %s, want %d: %s", method, path, resp.Status, want, &text)
	}
	if out != nil {
		if err := json.Unmarshal(text.Bytes(), out); err != nil {
			p.t.Fatalf("%s %s: %v: %s", method, path, err, &text)
		}
	}
}

// agent makes a credential.
func (p *program) agent(id string) (token string) {
	p.t.Helper()
	operator, err := os.ReadFile(filepath.Join(p.data, "operator.token"))
	if err != nil {
		p.t.Fatal(err)
	}
	var made struct{ Token string }
	p.request("POST", "/v1/agents", strings.TrimSpace(string(operator)), 201, map[string]string{"agent_id": id}, &made)
	return made.Token
}

// ask posts a question with two choices and returns its id.
func (p *program) ask(token, agent, title, body string) (id string) {
	p.t.Helper()
	var got struct{ ID string }
	p.request("POST", "/v1/messages", token, 202, map[string]any{
		"ma2h_version": "0.6", "type": "ask", "created_at": time.Now().UTC().Format(time.RFC3339), "title": title, "body": body,
		"agent": map[string]string{"id": agent, "run_id": "run_1", "runtime": "cli"},
		"request": map[string]any{"mode": "select", "options": []map[string]string{
			{"value": "ship", "label": "Ship it"}, {"value": "hold", "label": "Hold"}}},
	}, &got)
	return got.ID
}

// needsHub skips where the program was built without its hub.
func (p *program) needsHub() {
	p.t.Helper()
	resp, err := http.Get(p.url + "/healthz")
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		p.t.Skip("this build has no hub yet")
	}
}

// browser puts a xdg-open first in the path that only writes down what it was told.
func browser(t *testing.T) (opened func() string) {
	t.Helper()
	dir := newData(t)
	file := filepath.Join(dir, "opened")
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >>'"+file+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string { text, _ := os.ReadFile(file); return string(text) }
}

func TestAQuestionIsAskedAndAnswered(t *testing.T) {
	opened := browser(t)
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.needsHub()
	token := p.agent("e2e/agent")
	id := p.ask(token, "e2e/agent", "Ship the blue one?", "See [the notes](https://example.org/notes) and <b>no markup</b>.")
	await(t, "the question in the list", func() bool { return strings.Contains(d.text("body"), "Ship the blue one?") })

	d.keys("j", "\uE007") // select it, read it
	await(t, "its body", func() bool { return strings.Contains(d.text("body"), "the notes") })
	d.script(nil, `document.querySelector('a[href^="https://example.org/notes"]').click()`)
	await(t, "the browser", func() bool { return opened() == "https://example.org/notes\n" })
	var at string
	d.script(&at, "return location.href.split(/[?#]/)[0]")
	if at != "wails://wails/" {
		t.Fatalf("the link took the window away, to %s", at)
	}

	d.keys("1")
	var m struct {
		Status   string
		Response struct{ Value string }
	}
	await(t, "the answer", func() bool {
		p.request("GET", "/v1/messages/"+id, token, 200, nil, &m)
		return m.Status == "answered"
	})
	if m.Response.Value != "ship" {
		t.Errorf("answered %q, want ship", m.Response.Value)
	}
}

func TestASecondStartOpensTheItem(t *testing.T) {
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.needsHub()
	token := p.agent("e2e/agent")
	first := p.ask(token, "e2e/agent", "The first question", "Body of the first.")
	p.ask(token, "e2e/agent", "The second question", "Body of the second.")
	await(t, "both in the list", func() bool { return strings.Contains(d.text("body"), "The second question") })
	if code := p.again("deskbell://item/" + first); code != 0 {
		t.Fatalf("the second start ended with %d", code)
	}
	await(t, "the item to open", func() bool { return strings.Contains(d.text("body"), "Body of the first.") })
}

// The shipped window as it is, with nothing preloaded: only the keyboard and the eye.
func TestTheWindowAsItIs(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.needsHub()
	p.awaitPainted()
	window := p.awaitVisible(true)
	await(t, "more than a blank sheet", func() bool {
		out, err := exec.Command("import", "-window", window, "-format", "%k", "info:").Output()
		colours, _ := strconv.Atoi(strings.TrimSpace(string(out)))
		return err == nil && colours > 20
	})
	p.press(window, "alt+F4")
	p.awaitVisible(false)
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	p.press(p.awaitVisible(true), "ctrl+q")
	p.awaitExit()
}

func TestASecondHubIsRefusedAndTheWindowEndsOnTerm(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.needsHub()
	if code := p.run("serve", "--data", p.data, "--addr", "127.0.0.1:0"); code != 3 {
		t.Errorf("a second hub on the folder ended with %d, want 3", code)
	}
	if code := p.run("serve", "--data", newData(t), "--addr", strings.TrimPrefix(p.url, "http://")); code != 4 {
		t.Errorf("a second hub on the address ended with %d, want 4", code)
	}
	p.signal(syscall.SIGTERM)
	p.awaitExit()
	if _, err := os.Stat(filepath.Join(p.data, "hub.json")); err == nil {
		t.Error("hub.json is left over")
	}
}
