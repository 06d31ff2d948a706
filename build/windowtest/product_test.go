//go:build window

package windowtest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
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

// operator is the operator's token.
func (p *program) operator() string {
	p.t.Helper()
	token, err := os.ReadFile(filepath.Join(p.data, "operator.token"))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// agent makes a credential.
func (p *program) agent(id string) (token string) {
	p.t.Helper()
	var made struct{ Token string }
	p.request("POST", "/v1/agents", p.operator(), 201, map[string]string{"agent_id": id}, &made)
	return made.Token
}

// message is a question with two choices that the operator may answer.
func (p *program) message(agent, title, body string) map[string]any {
	p.t.Helper()
	if p.me == "" {
		var state struct{ Operator string }
		p.request("GET", "/api/state", p.operator(), 200, nil, &state)
		p.me = state.Operator
	}
	return map[string]any{
		"ma2h_version": "0.6", "type": "ask", "created_at": time.Now().UTC().Format(time.RFC3339), "title": title, "body": body,
		"agent": map[string]string{"id": agent, "run_id": "run_1", "runtime": "cli"}, "idempotency_key": rand.Text(),
		"request": map[string]any{"mode": "select", "allowed_resolvers": []string{p.me}, "options": []map[string]string{
			{"value": "ship", "label": "Ship it"}, {"value": "hold", "label": "Hold"}}},
	}
}

// ask posts a question and returns its id.
func (p *program) ask(token, agent, title, body string) (id string) {
	p.t.Helper()
	var got struct{ ID string }
	p.request("POST", "/v1/messages", token, 202, p.message(agent, title, body), &got)
	return got.ID
}

// answer is what became of a question.
func (p *program) answer(token, id string) (status, value string) {
	p.t.Helper()
	var m struct {
		Status   string
		Response struct{ Response struct{ Value string } }
	}
	p.request("GET", "/v1/messages/"+id, token, 200, nil, &m)
	return m.Status, m.Response.Response.Value
}

// cli is a command of the same program, running beside the window.
type cli struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

func (p *program) cli(args ...string) *cli {
	p.t.Helper()
	c := &cli{cmd: exec.Command(p.path, append(args, "--data", p.data)...)}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// says waits for the command to end well, and wants what it printed.
func (c *cli) says(t *testing.T, want string) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil || c.out.String() != want {
			t.Errorf("%v: printed %q, want %q; %s", err, &c.out, want, &c.err)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("the command does not end: %s", &c.err)
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
	await(t, "the answer", func() bool { status, value := p.answer(token, id); return status == "answered" && value == "ship" })
}

// selects waits until the item with this title is on show, with what can be chosen.
func selects(d *driver, title string) {
	d.t.Helper()
	await(d.t, title, func() bool {
		return strings.Contains(d.text("h2"), title) && strings.Contains(d.text("[data-decision]"), "1") && d.text("[data-decision] .off") == ""
	})
}

func TestAskedInATerminalAnsweredInTheWindow(t *testing.T) {
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	c := p.cli("ask", "Ship the green one?", "--option", "ship=Ship it", "--option", "hold=Hold it", "--wait", "--timeout", "5m")
	await(t, "the row", func() bool { return strings.Contains(d.text("[data-list]"), "Ship the green one?") })
	await(t, "the badge", func() bool { w, ok := p.visible(); return ok && xdo(t, "getwindowname", w) == "(1) Deskbell" })
	d.keys("j")
	selects(d, "Ship the green one?")
	d.keys("2")
	c.says(t, "hold\n")
	await(t, "the badge to go", func() bool { w, ok := p.visible(); return ok && xdo(t, "getwindowname", w) == "Deskbell" })
}

func TestAnAnswerOutlivesAKill(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.awaitPainted()
	c := p.cli("ask", "Through a crash?", "--option", "yes", "--option", "no", "--wait", "--timeout", "5m")
	await(t, "the question", func() bool {
		var list struct{ Messages []struct{ Title string } }
		p.request("GET", "/v1/messages", p.operator(), 200, nil, &list)
		return len(list.Messages) == 1
	})
	p.signal(syscall.SIGKILL)
	<-p.exited
	_, d := drive(t, "deskbell", p.data, "--addr", strings.TrimPrefix(p.url, "http://"))
	await(t, "the row", func() bool { return strings.Contains(d.text("[data-list]"), "Through a crash?") })
	d.keys("j")
	selects(d, "Through a crash?")
	d.keys("1")
	c.says(t, "yes\n")
}

// An export is a file that the page makes and WebKit saves: among the downloads, or at home where there is no such folder.
func TestTheWindowSavesWhatThePageGivesIt(t *testing.T) {
	_, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	d.script(nil, `
		const link = document.createElement('a');
		link.href = URL.createObjectURL(new Blob(['a line\n']));
		link.download = 'saved-by-the-page.jsonl';
		link.click()`)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the file", func() bool {
		for _, folder := range []string{"Downloads", "."} {
			if got, err := os.ReadFile(filepath.Join(home, folder, "saved-by-the-page.jsonl")); err == nil {
				return string(got) == "a line\n"
			}
		}
		return false
	})
}

func TestASecondStartOpensTheItem(t *testing.T) {
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
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
	p.awaitPainted()
	window := p.awaitVisible(true)
	await(t, "more than a blank sheet", func() bool {
		out, err := exec.Command("import", "-window", window, "-format", "%k", "info:").Output()
		colours, _ := strconv.Atoi(strings.TrimSpace(string(out)))
		return err == nil && colours > 20
	})
	token := p.agent("e2e/agent")
	first, second := p.ask(token, "e2e/agent", "By key?", ""), p.ask(token, "e2e/agent", "Not this one", "")
	await(t, "the badge", func() bool { return xdo(t, "getwindowname", window) == "(2) Deskbell" })
	// The first run shows the first of them, and is where it is answered.
	await(t, "it to be read", func() bool {
		var item struct{ Unread bool }
		p.request("GET", "/api/items/"+first, p.operator(), 200, nil, &item)
		return !item.Unread
	})
	p.press(window, "Return", "space")                   // decide nothing
	xdo(t, "keydown", "2", "sleep", "1.5", "keyup", "2") // held, so that it repeats
	await(t, "the answer", func() bool { status, value := p.answer(token, first); return status == "answered" && value == "hold" })
	if status, _ := p.answer(token, second); status != "open" {
		t.Errorf("the held key reached the next item: %s", status)
	}
	p.press(window, "alt+F4")
	p.awaitVisible(false)
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	p.press(p.awaitVisible(true), "ctrl+q")
	p.awaitExit()
}

func TestTheProductKeepsItsPlace(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.awaitPainted()
	window := p.awaitVisible(true)
	xdo(t, "windowsize", "--sync", window, "900", "600")
	xdo(t, "windowmove", "--sync", window, "123", "87")
	await(t, "its new place", func() bool { return near(t, window, 123, 87) })
	p.signal(syscall.SIGTERM)
	p.awaitExit()
	p = start(t, "deskbell", p.data, "--addr", "127.0.0.1:0")
	p.awaitPainted()
	window = p.awaitVisible(true)
	await(t, "its old place", func() bool { return near(t, window, 123, 87) })
	if geometry := xdo(t, "getwindowgeometry", window); !strings.Contains(geometry, "900x600") {
		t.Errorf("its size is not kept: %s", geometry)
	}
	p.signal(syscall.SIGTERM)
	p.awaitExit()
}

func TestNotificationsOfTheProduct(t *testing.T) {
	n := newNotes(t)
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0", "--hidden")
	await(t, "the service to be found", func() bool { available, _ := p.notifications(); return available })
	token := p.agent("e2e/agent")
	first := p.ask(token, "e2e/agent", "Ship <b>it</b> & go?", "")
	await(t, "its note", func() bool { return n.all() == "1 e2e/agent: Ship &lt;b&gt;it&lt;/b&gt; &amp; go?" })
	p.awaitVisible(false)

	// Answered elsewhere, the note is taken back.
	p.request("POST", "/api/items/"+first+"/resolve", p.operator(), 200, map[string]string{"resolution": "answered", "value": "ship"}, nil)
	await(t, "it to be taken back", func() bool { return n.all() == "" })

	// A click opens the item.
	clicked := p.ask(token, "e2e/agent", "Open me by a click", "Body of the clicked.")
	await(t, "its note", func() bool { return strings.Contains(n.all(), "Open me by a click") })
	if err := n.conn.Emit("/org/freedesktop/Notifications", "org.freedesktop.Notifications.ActionInvoked", n.latest(), "default"); err != nil {
		t.Fatal(err)
	}
	window := p.awaitVisible(true)
	await(t, "the item to open", func() bool { return strings.Contains(d.text("body"), "Body of the clicked.") })
	p.request("POST", "/api/items/"+clicked+"/resolve", p.operator(), 200, map[string]string{"resolution": "answered", "value": "ship"}, nil)
	p.press(window, "alt+F4") // hides it
	p.awaitVisible(false)

	// A burst becomes one note, which is replaced and not added to.
	var ids []string
	for i := range 8 {
		ids = append(ids, p.ask(token, "e2e/agent", fmt.Sprintf("Burst %d", i), ""))
	}
	await(t, "one note for all of them", func() bool { return strings.Contains(n.all(), "8 new questions") })
	if all := n.all(); strings.Contains(all, "Burst") {
		t.Errorf("a burst of eight shows\n%s", all)
	}
	for _, id := range ids {
		p.request("POST", "/api/items/"+id+"/resolve", p.operator(), 200, map[string]string{"resolution": "answered", "value": "ship"}, nil)
	}
	await(t, "all to be taken back", func() bool { all := n.all(); return !strings.Contains(all, "e2e/agent") })

}

// notifications is what the hub says of them.
func (p *program) notifications() (available bool, reason string) {
	p.t.Helper()
	var state struct {
		Notifications struct {
			Available bool
			Reason    string
		}
	}
	p.request("GET", "/api/state", p.operator(), 200, nil, &state)
	return state.Notifications.Available, state.Notifications.Reason
}

func TestTheProductWithoutANotificationService(t *testing.T) {
	p, d := drive(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	token := p.agent("e2e/agent")
	id := p.ask(token, "e2e/agent", "Still asked?", "")
	await(t, "the row", func() bool { return strings.Contains(d.text("[data-list]"), "Still asked?") })
	await(t, "the reason", func() bool {
		available, reason := p.notifications()
		return !available && strings.Contains(reason, "no notification service")
	})
	d.keys("g", "s")
	await(t, "the window to say so", func() bool { return strings.Contains(d.text("main"), "not available: no notification service") })
	d.keys("g", "n")
	await(t, "the row", func() bool { return strings.Contains(d.text("[data-list]"), "Still asked?") })
	d.keys("j")
	selects(d, "Still asked?")
	d.keys("1")
	await(t, "the answer", func() bool { status, _ := p.answer(token, id); return status == "answered" })
}

func TestASecondHubIsRefusedAndTheWindowEndsOnTerm(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	if code := p.run("serve", "--data", p.data, "--addr", "127.0.0.1:0"); code != 3 {
		t.Errorf("a second hub on the folder ended with %d, want 3", code)
	}
	if code := p.run("serve", "--data", newData(t), "--addr", strings.TrimPrefix(p.url, "http://")); code != 4 {
		t.Errorf("a second hub on the address ended with %d, want 4", code)
	}
	// Ending takes no longer because somebody waits.
	token := p.agent("e2e/agent")
	id := p.ask(token, "e2e/agent", "Waiting", "")
	waiting := make(chan error, 1)
	go func() {
		req, _ := http.NewRequest("GET", p.url+"/v1/messages/"+id+"?wait=30", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		waiting <- err
	}()
	await(t, "the pull to wait", func() bool {
		var item struct {
			WaitingNow bool `json:"waiting_now"`
		}
		p.request("GET", "/api/items/"+id, p.operator(), 200, nil, &item)
		return item.WaitingNow
	})
	p.signal(syscall.SIGTERM)
	p.awaitExit()
	<-waiting
	if _, err := os.Stat(filepath.Join(p.data, "hub.json")); err == nil {
		t.Error("hub.json is left over")
	}
}
