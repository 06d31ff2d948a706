package backend

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"deskbell/backend/wire"
)

// piChild is this test's own program as a pi.
func piChild() (code int, is bool) {
	if len(os.Args) < 2 || os.Args[1] != "fake-pi" {
		return 0, false
	}
	f := &fakePi{out: bufio.NewWriter(os.Stdout), session: "sess-1"}
	return f.run(os.Args[2:]), true
}

// withPi is a house whose pi is the one in this file.
func withPi(h *house) {
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.pi = filepath.Join(h.t.TempDir(), "pi")
	if err := os.WriteFile(h.pi, []byte("#!/bin/sh\nexec '"+self+"' fake-pi \"$@\"\n"), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

// fakePi is as much of a pi as a hub can tell: it answers, and asks what a prompt tells it to.
type fakePi struct {
	out      *bufio.Writer
	session  string
	calls    int
	asks     map[string]string // the call of each dialog that waits
	aborted  json.RawMessage   // the id of an abort that waits for dialogs
	prompts  []string          // by their entries: "e0", "e1"
	old      bool              // it knows the commands of before 0.43 alone, and leaves ids out of what it refuses
	model    string
	level    string
	api      string // of its --api-key
	args     []string
	nameless *string         // what it answers who it is, "error" that it does not; nil: who it is
	late     bool            // it does not answer the first command
	bash     json.RawMessage // the id of a command that runs
	command  json.RawMessage // the id of an extension's command that waits for its answer
	hold     bool            // what it says waits, so that it goes out at once
	had      int             // messages of before
}

type record = map[string]any

func (f *fakePi) say(r record) {
	raw, _ := wire.Marshal(r) // as pi does, which escapes nothing that need not be
	f.out.Write(append(raw, '\n'))
	if !f.hold {
		f.out.Flush()
	}
}

func (f *fakePi) run(args []string) int {
	f.asks, f.model, f.level, f.args = map[string]string{}, "m", "low", args
	for i, a := range args {
		switch a {
		case "--old":
			f.old = true
		case "--late":
			f.late = true
		case "--nameless": // it answers who it is like this
			f.nameless = &args[i+1]
		case "--api-key":
			f.api = args[i+1]
		case "--session":
			f.session, f.had = strings.TrimSuffix(filepath.Base(args[i+1]), ".jsonl"), 1
		case "--fail":
			fmt.Fprintln(os.Stderr, `Error: Model "x/y" not found.`)
			return 1
		}
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var c struct {
			ID        json.RawMessage
			Type      string
			EntryID   string
			ModelID   string
			Level     string
			Message   string
			Value     *string
			Confirmed *bool
			Cancelled bool
		}
		if json.Unmarshal(line, &c) != nil {
			return 1
		}
		if f.late {
			f.late = false
			continue
		}
		ok := func(data any) {
			r := record{"id": c.ID, "type": "response", "command": c.Type, "success": true}
			if data != nil {
				r["data"] = data
			}
			f.say(r)
		}
		no := func(why string) {
			f.say(record{"id": c.ID, "type": "response", "command": c.Type, "success": false, "error": why})
		}
		if f.old && slices.Contains([]string{"fork", "get_fork_messages", "get_available_thinking_levels", "clear_queue"}, c.Type) {
			f.say(record{"type": "response", "command": c.Type, "success": false, "error": "Unknown command: " + c.Type})
			continue
		}
		switch c.Type {
		case "get_fork_messages", "get_branch_messages":
			entries := []record{}
			for i, p := range f.prompts {
				entries = append(entries, record{"entryId": fmt.Sprint("e", i), "text": p})
			}
			ok(record{"messages": entries})
		case "fork", "branch":
			n, err := strconv.Atoi(strings.TrimPrefix(c.EntryID, "e"))
			if err != nil || n >= len(f.prompts) {
				no("Invalid entry ID for forking")
				continue
			}
			said := f.prompts[n]
			f.prompts = f.prompts[:n]
			f.session += "f"
			ok(record{"text": said, "cancelled": false})
		case "get_available_models":
			ok(record{"models": []record{{"provider": "p", "id": "m", "reasoning": true}, {"provider": "p", "id": "n", "reasoning": true}}})
		case "get_available_thinking_levels":
			ok(record{"levels": []string{"off", "low", "high"}})
		case "set_model":
			if c.ModelID != "m" && c.ModelID != "n" {
				no("Model not found: p/" + c.ModelID)
				continue
			}
			f.model = c.ModelID
			ok(record{"provider": "p", "id": f.model})
		case "set_thinking_level":
			if f.level = c.Level; f.level == "xhigh" {
				f.level = "high" // what the model has not is the next it has, and nobody is told
			}
			ok(nil)
		case "extension_ui_response":
			f.answered(line)
		case "get_state":
			switch {
			case f.nameless == nil:
			case *f.nameless == "error":
				no("no such command")
				continue
			case *f.nameless == "":
				ok(nil)
				continue
			default:
				ok(json.RawMessage(*f.nameless))
				continue
			}
			ok(record{"sessionId": f.session, "sessionFile": "/sessions/" + f.session + ".jsonl", "model": record{"id": f.model, "provider": "p", "input": []string{"text"}}, "thinkingLevel": f.level, "messageCount": f.had + len(f.prompts)})
		case "new_session":
			f.say(record{"type": "extension_ui_request", "id": "up", "method": "notify", "message": "up in a new session"})
			f.say(record{"type": "extension_ui_request", "id": "up2", "method": "setTitle", "title": "a new title"})
			f.session += "x"
			ok(record{"cancelled": false})
		case "abort":
			if len(f.asks) > 0 {
				f.aborted = c.ID // as pi does, it waits for what nobody may answer
				continue
			}
			f.say(record{"type": "agent_settled", "aborted": true})
			ok(nil)
		case "prompt":
			if c.Message == "EXIT" {
				fmt.Fprintln(os.Stderr, "as told")
				return 3
			}
			if c.Message == "/ask" { // an extension's command, which ends when its question is answered
				f.asks["ask-command"], f.command = "", c.ID
				f.say(record{"type": "extension_ui_request", "id": "ask-command", "method": "confirm", "title": "By a command?", "message": ""})
				continue
			}
			if c.Message == "NO" {
				no("No API key found")
				continue
			}
			if c.Message == "/leave" { // an extension's command, which ends pi before it answers
				return 0
			}
			if c.Message == "MUTE" { // it says nothing any more, and lives on
				f.say(record{"type": "agent_start"})
				os.Stdout.Close()
				continue
			}
			if c.Message == "/swap" { // an extension's command, which puts another session in this one's place
				f.session += "s"
				ok(nil)
				continue
			}
			ok(nil)
			f.prompts = append(f.prompts, c.Message)
			f.prompt(c.Message)
		case "bash":
			f.bash = c.ID // until it is stopped, or the process ends
		case "abort_bash":
			ok(nil)
			if f.bash != nil {
				f.say(record{"id": f.bash, "type": "response", "command": "bash", "success": true, "data": record{"output": "stopped", "cancelled": true}})
				f.bash = nil
			}
		case "get_session_stats":
			ok(record{"sessionId": f.session, "tokens": record{"input": 1, "total": 1}, "cost": 1})
		default:
			ok(record{})
		}
	}
}

// where is the folder that it works in.
func where() string {
	folder, _ := os.Getwd()
	return folder
}

func text(s string) []record { return []record{{"type": "text", "text": s}} }

func (f *fakePi) message(role string, content []record) {
	m := record{"role": role, "content": content, "stopReason": "stop"}
	f.say(record{"type": "message_start", "message": m})
	f.say(record{"type": "message_end", "message": m})
}

// prompt does what the words say: "ASK {a request}" for each line, or nothing but an answer.
func (f *fakePi) prompt(words string) {
	f.say(record{"type": "agent_start"})
	f.message("user", text(words))
	switch words {
	case "SLOW": // until it is stopped
		return
	case "ARGS":
		f.message("assistant", text("key “"+f.api+"”, started with "+strings.Join(f.args, " ")))
		f.settle()
		return
	case "WHERE":
		f.message("assistant", text("started in "+where()))
		f.settle()
		return
	case "GONE": // a call of the gate's that ends before there can be an answer
		f.calls++
		call := fmt.Sprint("call-", f.calls)
		asked, _ := json.Marshal(record{"tool": "bash", "call": call, "folder": where(), "input": record{"command": "rm -rf build"}})
		f.hold = true
		f.say(record{"type": "tool_execution_start", "toolCallId": call, "toolName": "bash", "args": record{"command": "rm -rf build"}})
		f.say(record{"type": "extension_ui_request", "id": "ask-" + call, "method": "input", "title": "deskbell-gate/1 " + string(asked)})
		f.say(record{"type": "tool_execution_end", "toolCallId": call, "toolName": "bash", "result": record{"content": text("aborted")}, "isError": true})
		f.hold = false
		f.settle()
		return
	}
	for _, line := range strings.Split(words, "\n") {
		raw, ok := strings.CutPrefix(line, "ASK ")
		if !ok {
			continue
		}
		var r record
		if json.Unmarshal([]byte(raw), &r) != nil {
			continue
		}
		f.calls++
		call, id := fmt.Sprint("call-", f.calls), fmt.Sprint("ask-", f.session, "-", f.calls)
		f.asks[id] = call
		f.say(record{"type": "tool_execution_start", "toolCallId": call, "toolName": "bash", "args": record{"command": "echo <" + call + "> && true"}})
		r["type"], r["id"] = "extension_ui_request", id
		if title, _ := r["title"].(string); title == "GATE" {
			if named, ok := r["call"].(string); ok { // models count as they like
				call = named
			}
			asked, _ := json.Marshal(record{"tool": "bash", "call": call, "folder": where(), "input": record{"command": "rm -rf build"}})
			r["title"] = "deskbell-gate/1 " + string(asked)
		}
		f.say(r)
	}
	if len(f.asks) == 0 {
		f.message("assistant", text("You said: "+words))
		f.settle()
	}
}

// answered ends the call of a dialog with what it was answered.
func (f *fakePi) answered(line []byte) {
	var a record
	_ = json.Unmarshal(line, &a)
	id, _ := a["id"].(string)
	call, waits := f.asks[id]
	if !waits { // as pi does, it makes nothing of it; the test is told
		f.say(record{"type": "extension_ui_request", "id": "late-" + id, "method": "notify", "message": "too late for " + id + ": " + string(line)})
		return
	}
	delete(f.asks, id)
	delete(a, "id")
	delete(a, "type")
	said, _ := json.Marshal(a)
	f.say(record{"type": "tool_execution_end", "toolCallId": call, "toolName": "bash", "result": record{"content": text(string(said))}, "isError": false})
	if f.command != nil && id == "ask-command" {
		f.say(record{"id": f.command, "type": "response", "command": "prompt", "success": true})
		f.command = nil
	}
	if len(f.asks) == 0 {
		f.settle()
		if f.aborted != nil {
			f.say(record{"id": f.aborted, "type": "response", "command": "abort", "success": true})
			f.aborted = nil
		}
	}
}

func (f *fakePi) settle() {
	f.say(record{"type": "agent_end", "messages": []any{}})
	f.say(record{"type": "agent_settled"})
}
