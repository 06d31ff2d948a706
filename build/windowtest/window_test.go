//go:build window

package windowtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	bus "github.com/godbus/dbus/v5"
)

const probe = "windowtest/probe"

func TestThePageReachesTheHubInProcess(t *testing.T) {
	_, d := drive(t, probe, newData(t))
	var got struct {
		Status int
		Body   map[string]string
	}
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		d.script(&got, `
			const r = await fetch('/api/echo/../echo?a=1&b=%2F', {method: arguments[0], headers: {'Content-Type': 'application/json'}, body: '{"ü":1}'});
			return {Status: r.status, Body: await r.json()}`, method)
		want := map[string]string{"method": method, "type": "application/json", "body": `{"ü":1}`, "query": "a=1&b=%2F", "path": "/api/echo"}
		if got.Status != 202 || fmt.Sprint(got.Body) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, want %v", method, got, want)
		}
	}
	var url string
	d.script(&url, "return location.href")
	if url != "wails://wails/" {
		t.Errorf("the page is at %s", url)
	}
}

func TestThePageMayDoNoMoreThanItMust(t *testing.T) {
	p, d := drive(t, probe, newData(t))
	var methods []string
	d.script(&methods, `
		const all = [];
		for (const pkg in window.go) for (const struct in window.go[pkg]) for (const m in window.go[pkg][struct]) all.push([pkg, struct, m].join('.'));
		return all.sort()`)
	if want := []string{"app.Desktop.OpenExternal", "app.Desktop.OpenItemOnStart", "app.Desktop.SetBadge"}; !slices.Equal(methods, want) {
		t.Errorf("callable: %v, want %v", methods, want)
	}
	var blocked map[string]any
	d.script(&blocked, `
		const tried = async f => { try { await f(); return 'allowed' } catch (e) { return 'blocked' } };
		const inline = document.createElement('script');
		inline.textContent = "document.documentElement.dataset.added = 'ran'";
		document.head.append(inline);
		const img = new Image();
		const image = new Promise(r => { img.onload = () => r('allowed'); img.onerror = () => r('blocked') });
		img.src = arguments[0] + '/x.png';
		return {
			inline: document.documentElement.dataset.inline || 'blocked',
			added: document.documentElement.dataset.added || 'blocked',
			eval: await tried(() => eval('1')),
			fetch: await tried(() => fetch(arguments[0] + '/change')),
			socket: await tried(() => new Promise((ok, no) => { const s = new WebSocket(arguments[0].replace('http', 'ws')); s.onopen = ok; s.onerror = no })),
			image: await image,
			popup: window.open('about:blank') ? 'allowed' : 'blocked',
			binding: await tried(() => window.go.app.Desktop.OpenItemOnStart()),
		}`, p.url)
	for name, got := range blocked {
		if want := map[bool]string{true: "allowed", false: "blocked"}[name == "binding"]; got != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}

func TestChangesReachThePage(t *testing.T) {
	p, d := drive(t, probe, newData(t))
	await(t, "the page", func() bool { return d.text("#theme") != "" }) // it listens by then
	p.post("/change", map[string]any{"rev": 7, "items": []string{"msg_ü'\"</script>"}, "topics": []string{"items"}})
	want := `{"rev":7,"items":["msg_ü'\"</script>"],"topics":["items"]}`
	var got string
	await(t, "the change", func() bool { got = d.text("#changed"); return got != "" })
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestALinkOpensItsItem(t *testing.T) {
	p, d := drive(t, probe, newData(t), "deskbell://item/msg_first")
	await(t, "the first item", func() bool { return d.text("#item") == "msg_first" })
	var again string
	d.script(&again, "return await window.go.app.Desktop.OpenItemOnStart()")
	if again != "" {
		t.Errorf("it is given out twice: %q", again)
	}
	if code := p.again("deskbell://item/msg_second"); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	await(t, "the second item", func() bool { return d.text("#item") == "msg_second" })
	if code := p.again("deskbell://elsewhere/x"); code == 0 {
		t.Error("a link that is none was taken")
	}
}

func TestTheBadgeIsInTheTitle(t *testing.T) {
	p, d := drive(t, probe, newData(t))
	window := p.awaitVisible(true)
	for n, want := range map[int]string{3: "(3) Deskbell", 0: "Deskbell", 5000: "(999+) Deskbell"} {
		d.script(nil, "await window.go.app.Desktop.SetBadge(arguments[0])", n)
		await(t, want, func() bool { return xdo(t, "getwindowname", window) == want })
	}
}

func TestLinksLeaveThroughTheBrowser(t *testing.T) {
	opened := browser(t)
	_, d := drive(t, probe, newData(t))

	var errs []string
	d.script(&errs, `
		const errs = [];
		for (const url of arguments[0]) await window.go.app.Desktop.OpenExternal(url).then(() => errs.push(''), e => errs.push(String(e)));
		return errs`, []string{"https://example.org/a_(b)?q=1;2&r=~x y#z", "javascript:alert(1)", "file:///etc/passwd", "vscode://x", "/relative", "mailto:a@example.org"})
	for i, wantError := range []bool{false, true, true, true, true, false} {
		if (errs[i] != "") != wantError {
			t.Errorf("link %d: %q", i, errs[i])
		}
	}
	want := "https://example.org/a_%28b%29?q=1%3B2&r=%7Ex%20y#z\nmailto:a@example.org\n"
	await(t, "the browser", func() bool { return strings.Count(opened(), "\n") == 2 })
	lines := strings.SplitAfter(opened(), "\n")
	slices.Sort(lines) // each is opened on its own
	if got := strings.Join(lines, ""); got != want {
		t.Errorf("opened\n%s, want\n%s", got, want)
	}
}

func TestClosingHidesAndASecondStartShows(t *testing.T) {
	p := start(t, probe, newData(t))
	p.awaitPainted()
	window := p.awaitVisible(true)
	xdo(t, "windowsize", "--sync", window, "900", "600")
	xdo(t, "windowmove", "--sync", window, "123", "87")
	p.press(window, "alt+F4")
	p.awaitVisible(false)

	var place struct{ X, Y, Width, Height int }
	text, err := os.ReadFile(filepath.Join(p.data, "window.json"))
	if err != nil || json.Unmarshal(text, &place) != nil || place.Width != 900 || place.Height != 600 {
		t.Errorf("kept %s, %v", text, err)
	}
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	window = p.awaitVisible(true)
	await(t, "its old place", func() bool { return near(t, window, 123, 87) })
	p.press(window, "ctrl+q")
	p.awaitExit()

	// And so after a new start.
	p = start(t, probe, p.data)
	p.awaitPainted()
	window = p.awaitVisible(true)
	await(t, "its old place", func() bool { return near(t, window, 123, 87) })
	if geometry := xdo(t, "getwindowgeometry", window); !strings.Contains(geometry, "900x600") {
		t.Errorf("its size is not kept: %s", geometry)
	}
	p.signal(syscall.SIGTERM)
	p.awaitExit()
}

// near allows for the window's frame.
func near(t *testing.T, window string, x, y int) bool {
	var gotX, gotY int
	_, err := fmt.Sscanf(strings.ReplaceAll(xdo(t, "getwindowgeometry", "--shell", window), "\n", " "),
		"WINDOW="+window+" X=%d Y=%d", &gotX, &gotY)
	return err == nil && abs(gotX-x) <= 40 && abs(gotY-y) <= 60
}

func abs(n int) int { return max(n, -n) }

func TestTermEndsIt(t *testing.T) {
	p := start(t, probe, newData(t))
	p.awaitPainted()
	if info, err := os.Stat(filepath.Join(p.data, "window.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("window.sock: %v, %v", info, err)
	}
	p.signal(syscall.SIGTERM)
	p.awaitExit()
	if !strings.Contains(p.output(), "window gone") {
		t.Error("it did not end by itself")
	}
	if _, err := os.Stat(filepath.Join(p.data, "window.sock")); err == nil {
		t.Error("window.sock is left over")
	}
}

func TestHiddenUntilCalled(t *testing.T) {
	p := start(t, probe, newData(t), "--hidden")
	await(t, "notifications to be sorted out", func() bool { return strings.Contains(p.output(), "notifications ") })
	p.awaitVisible(false)
	if code := p.again("deskbell://item/msg_x"); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
	p.awaitVisible(true)
	p.awaitPainted()
	p.signal(syscall.SIGINT)
	p.awaitExit()
}

func TestALeftOverSocketIsNoHindrance(t *testing.T) {
	p := start(t, probe, newData(t))
	p.awaitPainted()
	p.signal(syscall.SIGKILL)
	<-p.exited
	p = start(t, probe, p.data)
	p.awaitPainted()
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
}

func TestADeepDataFolder(t *testing.T) {
	data := filepath.Join(newData(t), strings.Repeat("deep/", 40))
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, probe, data)
	p.awaitPainted()
	if code := p.again(); code != 0 {
		t.Errorf("the second start ended with %d", code)
	}
}

func TestTheThemeFollowsTheSystem(t *testing.T) {
	for _, theme := range []string{"Adwaita", "Adwaita:dark"} {
		t.Setenv("GTK_THEME", theme)
		_, d := drive(t, probe, newData(t))
		want := map[bool]string{true: "dark", false: "light"}[theme == "Adwaita:dark"]
		await(t, theme, func() bool { return d.text("#theme") == want })
	}
}

// notes is a notification service for one test.
type notes struct {
	conn *bus.Conn

	mu    sync.Mutex
	shown map[uint32]string // summary and body
	last  uint32
}

func newNotes(t *testing.T) *notes {
	t.Helper()
	conn, err := bus.Connect(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	n := &notes{conn: conn, shown: map[uint32]string{}}
	if err := conn.Export(n, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if r, err := conn.RequestName("org.freedesktop.Notifications", bus.NameFlagDoNotQueue); err != nil || r != bus.RequestNameReplyPrimaryOwner {
		t.Fatalf("the bus has a notification service already: %v %v", r, err)
	}
	return n
}

func (n *notes) GetCapabilities() ([]string, *bus.Error) {
	return []string{"body", "body-markup", "actions"}, nil
}

func (n *notes) Notify(_ string, replaces uint32, _, summary, body string, _ []string, _ map[string]bus.Variant, _ int32) (uint32, *bus.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if replaces == 0 {
		n.last++
		replaces = n.last
	}
	n.shown[replaces] = summary + ": " + body
	return replaces, nil
}

func (n *notes) CloseNotification(id uint32) *bus.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.shown, id)
	return nil
}

// latest is the id of the note that was shown last.
func (n *notes) latest() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

func (n *notes) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for id, s := range n.shown {
		all = append(all, fmt.Sprintf("%d %s", id, s))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestNotifications(t *testing.T) {
	n := newNotes(t)
	p, d := drive(t, probe, newData(t), "--hidden")
	await(t, "the service to be found", func() bool { return strings.Contains(p.output(), "notifications true") })
	for _, id := range []string{"msg_a", "msg_b"} {
		p.post("/event", map[string]any{"Kind": "ring", "ID": id, "Title": "Ship <it> & " + id, "Agent": "deploybot/dev"})
	}
	want := "1 deploybot/dev: Ship &lt;it&gt; &amp; msg_a\n2 deploybot/dev: Ship &lt;it&gt; &amp; msg_b"
	await(t, "two notes", func() bool { return n.all() == want })
	p.post("/event", map[string]any{"Kind": "withdraw", "ID": "msg_a"})
	await(t, "one to be taken back", func() bool { return !strings.Contains(n.all(), "msg_a") })
	p.awaitVisible(false)
	if err := n.conn.Emit("/org/freedesktop/Notifications", "org.freedesktop.Notifications.ActionInvoked", uint32(2), "default"); err != nil {
		t.Fatal(err)
	}
	p.awaitVisible(true)
	await(t, "the item to open", func() bool { return d.text("#item") == "msg_b" })
}

func TestClosingSaysOnceThatItGoesOn(t *testing.T) {
	n := newNotes(t)
	p := start(t, probe, newData(t))
	p.awaitPainted()
	await(t, "the service to be found", func() bool { return strings.Contains(p.output(), "notifications true") })
	for range 2 {
		p.press(p.awaitVisible(true), "alt+F4")
		p.awaitVisible(false)
		await(t, "a word about it", func() bool { return strings.Contains(n.all(), "keeps running") })
		p.again()
	}
	if all := n.all(); strings.Count(all, "\n") != 0 {
		t.Errorf("said more than once:\n%s", all)
	}
}

func TestNoNotificationServiceIsNoHarm(t *testing.T) {
	p := start(t, probe, newData(t))
	p.awaitPainted()
	await(t, "word about notifications", func() bool { return strings.Contains(p.output(), "notifications false no notification service") })
	p.post("/event", map[string]any{"Kind": "ring", "ID": "msg_a", "Title": "x", "Agent": "y"})
	p.signal(syscall.SIGTERM)
	p.awaitExit()
}
