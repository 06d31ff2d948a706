//go:build window

package windowtest

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// page is the process that shows the page, once that is loaded: WebKit ends the whole program where a process ends while it
// is being started.
func (p *program) page() (pid int) {
	p.t.Helper()
	await(p.t, "the page", func() bool {
		return strings.Count(p.output(), "the page is there again") == strings.Count(p.output(), "the page is loaded again")
	})
	out, err := exec.Command("pgrep", "-n", "-P", strconv.Itoa(p.pid), "WebKitWebProces").Output() // as the kernel cuts it
	if pid, _ = strconv.Atoi(strings.TrimSpace(string(out))); pid == 0 {
		p.t.Fatalf("the page has no process: %v", err)
	}
	return pid
}

// killPage kills the page's process n times, each time that of the page loaded last.
func (p *program) killPage(n int) {
	p.t.Helper()
	for range n {
		before := strings.Count(p.output(), "the page's process ")
		if err := syscall.Kill(p.page(), syscall.SIGKILL); err != nil {
			p.t.Fatal(err)
		}
		await(p.t, "a line in the log", func() bool { return strings.Count(p.output(), "the page's process ") > before })
	}
}

// answersByKey wants that what is asked now can be answered in the window, by its number.
func (p *program) answersByKey(token, title string) {
	p.t.Helper()
	window := p.awaitVisible(true)
	id := p.ask(token, "e2e/agent", title, "")
	await(p.t, "the count of what waits", func() bool { return xdo(p.t, "getwindowname", window) == "(1) Deskbell" })
	var pressed time.Time // a key decides nothing before what it decides was in sight
	await(p.t, "the answer to "+title, func() bool {
		if time.Since(pressed) > time.Second {
			p.press(window, "j", "1")
			pressed = time.Now()
		}
		status, value := p.answer(token, id)
		return status == "answered" && value == "ship"
	})
}

func TestAPageThatDiesIsLoadedAgain(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.awaitPainted()
	token := p.agent("e2e/agent")
	p.answersByKey(token, "Before it dies?")
	p.killPage(1)
	p.answersByKey(token, "After it died?")

	// What asks for the window meanwhile is not forgotten.
	p.killPage(1)
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	p.answersByKey(token, "After it died again?")
	p.press(p.awaitVisible(true), "ctrl+q")
	p.awaitExit()
}

func TestAPageThatDiesAgainAndAgainIsLeft(t *testing.T) {
	const title = "Deskbell (its page has ended)"
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.awaitPainted()
	window := p.awaitVisible(true)
	token := p.agent("e2e/agent")
	p.killPage(4)
	await(t, "the window to say so", func() bool { return xdo(t, "getwindowname", window) == title })
	if !strings.Contains(p.output(), "the page is not loaded any more, the hub goes on") {
		t.Error("the log does not say so")
	}
	notice := p.message("e2e/agent", "The hub goes on", "")
	notice["type"] = "notify"
	delete(notice, "request")
	p.request("POST", "/v1/messages", token, 202, notice, nil)

	p.press(window, "Return") // the first button
	p.answersByKey(token, "And the page?")

	// Started again, it loads the page as well; closed, it only hides.
	p.killPage(4)
	await(t, "the window to say so", func() bool { return xdo(t, "getwindowname", window) == title })
	p.press(window, "alt+F4")
	p.awaitVisible(false)
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	p.answersByKey(token, "And after another start?")

	p.killPage(4)
	await(t, "the window to say so", func() bool { return xdo(t, "getwindowname", window) == title })
	p.press(window, "Tab", "Return") // the second
	p.awaitExit()
}

func TestAWindowThatIsDestroyedComesBack(t *testing.T) {
	p := start(t, "deskbell", newData(t), "--addr", "127.0.0.1:0")
	p.awaitPainted()
	token := p.agent("e2e/agent")
	xdo(t, "windowclose", p.awaitVisible(true)) // unlike a window manager, which asks
	await(t, "a line in the log", func() bool { return strings.Contains(p.output(), "the window was destroyed from outside") })
	p.awaitVisible(false)
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	p.answersByKey(token, "Is it back?")
	p.press(p.awaitVisible(true), "alt+F4")
	p.awaitVisible(false)
	p.again()
	p.press(p.awaitVisible(true), "ctrl+q")
	p.awaitExit()
}
