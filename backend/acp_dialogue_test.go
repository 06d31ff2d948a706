package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskbell/schemas"
)

// Dialogues of ACP are files of requests, by HTTP, and what must come of them. A line begins with what it is:
//
//	== NAME                    a new case on a new hub, with the principals bot and other
//	> WHO METHOD PARAMS        a request
//	>> WHO BODY                a body as it stands; of none, without a credential
//	< RESULT                   what must be part of the result, or -32602 /params/x: the error's code, and what it names
//	<< STATUS [ANSWER]         of >>: the status, and what must be part of the answer
//	~ WHO METHOD PARAMS        a request that is held open
//	~< RESULT                  what it is answered in the end, as after <
//	= NAME a.b                 keep a member of the result as $NAME
//	^ NAME                     keep the id of the first delivery in the result of a heartbeat as $NAME
//	* WHO METHOD PARAMS        the next delivery to WHO, which has it then: its params hold this
//	- WHO                      nothing waits for WHO
//	? MESSAGE                  the one message that waits for the person, in the hub's own form; keeps its id as $ask
//	! BODY                     the person resolves it
//	@ …                        as in the other dialogues
//	# …                        a remark
//
// Every answer and every delivery is checked against the schema besides.
func TestACPDialogues(t *testing.T) {
	t.Parallel()
	set, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("protocol/acp/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		names = append(names, name)
		if name == "held" && runtime.GOOS == "windows" {
			continue // no processes there
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range strings.Split("\n"+string(text), "\n== ")[1:] {
				name, script, _ := strings.Cut(part, "\n")
				t.Run(name, func(t *testing.T) { runACP(t, set, script) })
			}
		})
	}
	for _, method := range []string{"agent.spawn", "agent.kill", "agent.status", "task.submit", "task.result", "task.progress", "context.share", "tool.invoke", "tool.result",
		"message.send", "message.broadcast", "heartbeat", "errors", "held"} {
		if !slices.Contains(names, method) {
			t.Errorf("there is no dialogue %s", method)
		}
	}
}

type acpDialogue struct {
	*dialogue
	result []byte // of the last request
	held   chan reply
}

func runACP(t *testing.T, set *schemas.Set, script string) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	d := &acpDialogue{dialogue: &dialogue{t: t, h: h, clock: c, schemas: set, who: map[string]*client{"bot": h.agent("bot"), "other": h.agent("other"), "none": {h: h}, "op": h.operator()},
		vars: map[string]string{"op": h.hub.operator().String(), "big": strings.Repeat("x", 1<<20), "deep": strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), "long": strings.Repeat("x", 900_000)}}}
	for _, line := range strings.Split(script, "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		d.line = line
		rest = d.fill(rest)
		switch kind {
		case "", "#":
		case ">":
			d.request(rest)
		case ">>":
			who, body, _ := strings.Cut(rest, " ")
			d.last = d.who[who].call("POST", "/acp", body)
		case "<":
			d.resulted(rest)
		case "~":
			d.hold(rest)
		case "~<":
			select {
			case d.last = <-d.held:
			case <-time.After(patience):
				t.Fatalf("%s: it is still held", line)
			}
			wantACP(t, d.last.body)
			d.result = []byte(d.last.get("result"))
			d.resulted(rest)
		case "<<":
			d.statusIs(rest)
		case "=":
			name, path, _ := strings.Cut(rest, " ")
			if d.vars[name] = field(d.result, strings.Split(path, ".")...); d.vars[name] == "" {
				t.Fatalf("%s: nothing there in %s", line, d.result)
			}
		case "^":
			var out struct{ Pending []pending }
			if err := json.Unmarshal(d.result, &out); err != nil || len(out.Pending) == 0 {
				t.Fatalf("%s: %v in %s", line, err, d.result)
			}
			d.vars[rest] = out.Pending[0].ID
		case "*":
			d.delivered(rest)
		case "-":
			if got := d.who[rest].beat(); len(got) != 0 {
				t.Fatalf("%s: %s", line, got)
			}
		case "?":
			r := h.asked(t)
			d.part(rest, r.body)
			d.vars["ask"] = r.get("id")
		case "!":
			h.operator().answer(d.vars["ask"], rest).want(200)
		case "@":
			d.act(rest)
		default:
			t.Fatalf("%q is no line of a dialogue", line)
		}
	}
}

func (d *acpDialogue) request(rest string) {
	f := strings.SplitN(rest, " ", 3)
	params := "{}"
	if len(f) == 3 {
		params = f[2]
	}
	d.last = d.who[f[0]].call("POST", "/acp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, unique("d"), f[1], params)).want(200)
	wantACP(d.t, d.last.body)
	d.result = []byte(d.last.get("result"))
}

func (d *acpDialogue) hold(rest string) {
	f := strings.SplitN(rest, " ", 3)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, unique("d"), f[1], f[2])
	who, held := d.who[f[0]], make(chan reply, 1)
	d.held = held
	go func() {
		r, err := who.try(context.Background(), "POST", "/acp", body)
		if err != nil {
			d.t.Error(err)
		}
		held <- r
	}()
}

func (d *acpDialogue) resulted(want string) {
	code, pointer, _ := strings.Cut(want, " ")
	if _, err := strconv.Atoi(code); err == nil {
		if got := d.last.get("error", "code"); got != code || d.last.get("error", "data", "pointer") != pointer {
			d.t.Fatalf("%s: %s", d.line, d.last.body)
		}
		return
	}
	if d.last.get("error") != "" {
		d.t.Fatalf("%s: %s", d.line, d.last.body)
	}
	d.part(want, d.result)
}

func (d *acpDialogue) statusIs(rest string) {
	status, want, _ := strings.Cut(rest, " ")
	if strconv.Itoa(d.last.status) != status {
		d.t.Fatalf("%s: %d %s", d.line, d.last.status, d.last.body)
	}
	if want == "" {
		if len(d.last.body) > 0 {
			d.t.Errorf("%s: %s", d.line, d.last.body)
		}
		return
	}
	d.part(want, d.last.body)
	var all []json.RawMessage
	if json.Unmarshal(d.last.body, &all) != nil {
		all = []json.RawMessage{d.last.body}
	}
	for _, raw := range all {
		if field(raw, "method") != "" && field(raw, "error", "code") != "-32601" {
			wantACP(d.t, raw)
		}
	}
}

func (d *acpDialogue) delivered(rest string) {
	f := strings.SplitN(rest, " ", 3)
	got := d.next(f[0])
	if got.method() != f[1] {
		d.t.Fatalf("%s: %s", d.line, got.Message)
	}
	if len(f) == 3 {
		d.part(f[2], []byte(field(got.Message, "params")))
	}
}

// next is the first delivery that waits for somebody, who has it then.
func (d *acpDialogue) next(who string) pending {
	d.t.Helper()
	var got []pending
	eventually(d.t, d.line, func() bool { got = d.who[who].beat(); return len(got) > 0 })
	d.who[who].beat(got[0].ID)
	return got[0]
}

// part wants a document to hold another.
func (d *acpDialogue) part(want string, got []byte) {
	d.t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		d.t.Fatalf("%s: %v", want, err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		d.t.Fatalf("%s: %v in %s", d.line, err, got)
	}
	if list, ok := w.([]any); ok { // each of its elements in its place
		all, _ := g.([]any)
		if len(all) != len(list) {
			d.t.Fatalf("%s: %s", d.line, got)
		}
		for i := range list {
			if at := differ(list[i], all[i], fmt.Sprintf("/%d", i)); at != "" {
				d.t.Fatalf("%s: %s: %s", d.line, at, got)
			}
		}
		return
	}
	if at := differ(w, g, ""); at != "" {
		d.t.Fatalf("%s: %s: %s", d.line, at, got)
	}
}
