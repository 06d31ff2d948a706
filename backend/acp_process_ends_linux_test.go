package backend

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// However an agent ends, no process is left of those below it, also where an agent without one stands between, and none of
// their tokens works any more.
func TestACPProcessEndsWithWhatIsAbove(t *testing.T) {
	type tree struct {
		h      *house
		bot    *client
		top    string // the agent that ends
		leader int    // its process, where it has one
		dir    string
	}
	agent := func(verb string) func(x tree, t *testing.T) {
		return func(x tree, t *testing.T) {
			path := "/v1/agents/" + url.PathEscape("acp/"+x.top)
			if verb == "stop" {
				x.h.operator().call("POST", path+"/stop", nil).want(200)
			} else {
				x.h.operator().call("DELETE", path, nil).want(204)
			}
		}
	}
	leave := func(how string) func(x tree, t *testing.T) {
		return func(x tree, t *testing.T) {
			if err := os.WriteFile(filepath.Join(x.dir, "leave"), []byte(how), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		how     string
		process bool
		does    func(x tree, t *testing.T)
	}{
		{"its process ends well", true, leave("exit 0")},
		{"its process fails", true, leave("exit 7")},
		{"its process is killed", true, func(x tree, t *testing.T) {
			if err := syscall.Kill(x.leader, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}},
		{"its supervisor is killed", true, func(x tree, t *testing.T) {
			if err := syscall.Kill(parentOf(t, x.leader), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}},
		{"agent.kill of a process", true, func(x tree, t *testing.T) { x.bot.ok("agent.kill", msg{"agentId": x.top}) }},
		{"agent.kill", false, func(x tree, t *testing.T) { x.bot.ok("agent.kill", msg{"agentId": x.top}) }},
		{"agent.kill of the principal's own", false, func(x tree, t *testing.T) { x.bot.ok("agent.kill", msg{"agentId": "bot"}) }},
		{"the operator stops it", false, agent("stop")},
		{"the operator revokes it", false, agent("revoke")},
		{"the operator revokes it as a process", true, agent("revoke")},
		{"the operator revokes the principal's own", false, func(x tree, t *testing.T) {
			x.h.operator().call("DELETE", "/v1/agents/"+url.PathEscape("acp/bot"), nil).want(204)
		}},
		{"the operator revokes the principal", false, func(x tree, t *testing.T) { x.h.operator().call("DELETE", "/v1/agents/bot", nil).want(204) }},
	} {
		t.Run(c.how, func(t *testing.T) {
			h := openHouse(t)
			x := tree{h: h, bot: h.agent("bot"), dir: t.TempDir()}
			below := t.TempDir()
			setRole(t, h.operator(), "boss", fmt.Sprintf("cd %s; echo $$ >pid; while ! test -s leave; do sleep 0.05; done; . ./leave", x.dir))
			if c.process {
				x.top = h.startProcess(t, x.bot, "boss", msg{})
				eventually(t, "it runs", func() bool {
					text, err := os.ReadFile(filepath.Join(x.dir, "pid"))
					if err == nil {
						_, err = fmt.Sscan(string(text), &x.leader)
					}
					return err == nil
				})
			} else {
				x.top = x.bot.spawn("boss")
			}
			between := x.bot.spawn("between", msg{"parentId": x.top})
			setRole(t, h.operator(), "worker", []string{"/bin/sh", "-c", crewScript(below)})
			id := h.startAs(t, x.bot, msg{"role": "worker", "processMode": true, "parentId": between})
			all := pids(t, below)
			text, err := os.ReadFile(filepath.Join(below, "env"))
			if err != nil {
				t.Fatal(err)
			}
			_, token, _ := strings.Cut(string(text), "ACP_TOKEN=")
			token, _, _ = strings.Cut(token, "\n")
			c.does(x, t)
			wantGone(t, all, c.how)
			eventually(t, "its token is nothing", func() bool {
				return (&client{h: h, token: token}).call("GET", "/v1/inbox", nil).status == 401
			})
			got := h.operator().ok("agent.status", msg{"agentId": id}).get("agents")
			if !strings.Contains(got, `"stopped"`) {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// parentOf is the process above another one.
func parentOf(t *testing.T, pid int) (parent int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, err = fmt.Sscan(string(text)[strings.LastIndexByte(string(text), ')')+4:], &parent)
	}
	if err != nil {
		t.Fatal(err)
	}
	return parent
}
