package backend

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskbell/schemas"
)

// Dialogues are files of requests and what must come back. A line begins with what it is:
//
//	== NAME               a new case; agents stay, idempotency keys that say $key are its own
//	> WHO METHOD PATH     a request of bot, other, op (the operator) or none; its body follows:
//	                        ask PATCH, task PATCH, notify PATCH: a usual message with PATCH merged into it ("$drop" drops)
//	                        quoted "…": the bytes of a Go string
//	                        anything else: as it stands
//	< STATUS [CODE]       what must come back; JSON lines that follow must be part of it
//	~ TEXT, !~ TEXT       the body must, must not contain this
//	! a.b.c               there must be no such member
//	= NAME a.b.c          keep a value as $NAME
//	@ restart, @ +30s     restart the hub; move its clock
//	@ set KEY VALUE       change a setting
//	# …                   a remark
//
// Every document that comes back is checked against its schema besides.
func TestDialogues(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("protocol/ma2h/testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d dialogues found: %v", len(files), err)
	}
	set, err := schemas.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := &clock{at: noon}
			h := openHouse(t, withClock(c))
			d := &dialogue{h: h, clock: c, schemas: set, vars: map[string]string{}, who: map[string]*client{
				"bot": h.agent("bot"), "other": h.agent("other"), "none": {h: h}}}
			for _, part := range strings.Split("\n"+string(text), "\n== ")[1:] {
				name, script, _ := strings.Cut(part, "\n")
				if !t.Run(name, func(t *testing.T) { h.t = t; d.t = t; d.run(name, script) }) {
					continue
				}
			}
			h.t = t
		})
	}
}

type dialogue struct {
	t       *testing.T
	h       *house
	clock   *clock
	schemas *schemas.Set
	who     map[string]*client
	vars    map[string]string
	last    reply
	line    string
}

func (d *dialogue) run(name, script string) {
	d.vars["key"] = unique("key-")
	d.vars["op"] = d.h.hub.operator().String()
	type step struct {
		kind, rest string
		body       []string
	}
	var steps []step
	for _, line := range strings.Split(script, "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case ">", "<", "~", "!~", "!", "=", "@":
			steps = append(steps, step{kind, rest, nil})
		case "#":
		default:
			if strings.TrimSpace(line) != "" {
				if len(steps) == 0 {
					d.t.Fatalf("%q belongs to nothing", line)
				}
				s := &steps[len(steps)-1]
				s.body = append(s.body, line)
			}
		}
	}
	for _, s := range steps {
		d.line = s.kind + " " + s.rest
		rest, body := d.fill(s.rest), d.fill(strings.Join(s.body, "\n"))
		switch s.kind {
		case ">":
			d.send(rest, body)
		case "<":
			d.expect(rest, body)
		case "~":
			if !strings.Contains(string(d.last.body), rest) {
				d.t.Errorf("%q is not in %s", rest, d.last.body)
			}
		case "!~":
			if strings.Contains(string(d.last.body), rest) {
				d.t.Errorf("%q is in %s", rest, d.last.body)
			}
		case "!":
			if got := d.last.get(strings.Split(rest, ".")...); got != "" {
				d.t.Errorf("%s is there: %s", rest, got)
			}
		case "=":
			name, path, _ := strings.Cut(rest, " ")
			d.vars[name] = d.last.get(strings.Split(path, ".")...)
			if d.vars[name] == "" {
				d.t.Fatalf("%s: nothing at %s in %s", d.line, path, d.last.body)
			}
		case "@":
			d.act(rest)
		}
	}
}

func (d *dialogue) fill(s string) string {
	for name, v := range d.vars {
		s = strings.ReplaceAll(s, "$"+name, v)
	}
	for strings.Contains(s, "$now") { // $now+30s
		i := strings.Index(s, "$now")
		end := i + 4
		for end < len(s) && strings.ContainsRune("+-0123456789hmsu.", rune(s[end])) {
			end++
		}
		var by time.Duration
		if end > i+4 {
			var err error
			if by, err = time.ParseDuration(strings.TrimPrefix(s[i+4:end], "+")); err != nil {
				d.t.Fatal(err)
			}
		}
		s = s[:i] + d.clock.now().Add(by).Format("2006-01-02T15:04:05.000Z") + s[end:]
	}
	return s
}

func (d *dialogue) act(what string) {
	word, rest, _ := strings.Cut(what, " ")
	switch {
	case word == "restart":
		d.h.restart()
	case word == "set":
		key, v, _ := strings.Cut(rest, " ")
		d.h.operator().call("PATCH", "/v1/settings", fmt.Sprintf(`{%q:%s}`, key, v)).want(200)
	default:
		by, err := time.ParseDuration(strings.TrimPrefix(word, "+"))
		if err != nil {
			d.t.Fatal(err)
		}
		d.clock.move(by)
	}
}

func (d *dialogue) send(line, body string) {
	f := strings.Fields(line)
	c := d.who[f[0]]
	if f[0] == "op" {
		c = d.h.operator()
	}
	if c == nil || len(f) < 3 {
		d.t.Fatalf("%q is not a request", line)
	}
	var b any
	word, rest, _ := strings.Cut(body, " ")
	switch word {
	case "":
	case "ask", "task", "notify":
		b = d.message(c, word, rest)
	case "quoted":
		text, err := strconv.Unquote(rest)
		if err != nil {
			d.t.Fatalf("%s: %v", rest, err)
		}
		b = text
	default:
		b = body
	}
	d.last = c.call(f[1], f[2], b)
	d.check(f[0], f[1], f[2])
}

func (d *dialogue) message(c *client, kind, patch string) any {
	m := c.envelope(kind)
	if kind != "notify" {
		m["idempotency_key"] = d.vars["key"]
	}
	switch kind {
	case "ask":
		m["request"] = msg{"mode": "select", "options": []msg{{"value": "yes", "label": "Yes"}, {"value": "no", "label": "No"}},
			"allowed_resolvers": []string{d.vars["op"]}}
	case "task":
		m["action"] = msg{"instructions": "Do it", "allowed_resolvers": []string{d.vars["op"]}}
	}
	text, err := json.Marshal(m)
	if err != nil {
		d.t.Fatal(err)
	}
	var whole, change map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		d.t.Fatal(err)
	}
	if patch != "" {
		if err := json.Unmarshal([]byte(patch), &change); err != nil {
			d.t.Fatalf("%s: %v", patch, err)
		}
	}
	return merge(whole, change)
}

func merge(m, change map[string]any) map[string]any {
	for k, v := range change {
		if v == "$drop" {
			delete(m, k)
			continue
		}
		inner, isObject := v.(map[string]any)
		had, hadObject := m[k].(map[string]any)
		if isObject && hadObject {
			m[k] = merge(had, inner)
		} else {
			m[k] = v
		}
	}
	return m
}

func (d *dialogue) expect(line, body string) {
	f := strings.Fields(line)
	if got := strconv.Itoa(d.last.status); got != f[0] {
		d.t.Fatalf("%s: %s, want %s: %s", d.last.what, got, f[0], d.last.body)
	}
	if len(f) > 1 && d.last.code() != f[1] {
		d.t.Fatalf("%s: code %q, want %q: %s", d.last.what, d.last.code(), f[1], d.last.body)
	}
	if body == "" {
		return
	}
	var want, got any
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		d.t.Fatalf("%s: %v", body, err)
	}
	d.last.into(&got)
	if at := differ(want, got, ""); at != "" {
		d.t.Fatalf("%s: %s: want %s, got %s", d.last.what, at, body, d.last.body)
	}
}

// differ says where want is not part of got: objects may have more members, everything else is equal.
func differ(want, got any, at string) string {
	w, ok := want.(map[string]any)
	if !ok {
		if reflect.DeepEqual(want, got) {
			return ""
		}
		return at + " differs"
	}
	g, ok := got.(map[string]any)
	if !ok {
		return at + " is no object"
	}
	for k, v := range w {
		inner, there := g[k]
		if !there {
			return at + "/" + k + " is missing"
		}
		if d := differ(v, inner, at+"/"+k); d != "" {
			return d
		}
	}
	return ""
}

// check validates what came back against the schema of its kind.
func (d *dialogue) check(who, method, path string) {
	d.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	name := ""
	switch {
	case d.last.status >= 400:
		var e struct {
			Error struct{ Code, Message string } `json:"error"`
		}
		d.last.into(&e)
		if e.Error.Code == "" || e.Error.Message == "" {
			d.t.Errorf("%s: not the error form: %s", d.last.what, d.last.body)
		}
		if (d.last.status == 429) != (d.last.header.Get("Retry-After") != "") {
			d.t.Errorf("%s: %d with Retry-After %q", d.last.what, d.last.status, d.last.header.Get("Retry-After"))
		}
	case d.last.status == 304:
		if len(d.last.body) > 0 {
			d.t.Errorf("%s: 304 with a body", d.last.what)
		}
	case strings.HasPrefix(path, "/.well-known/"):
		name = "capability"
	case method == "POST" && path == "/v1/messages":
		name = "submit-ack"
	case method == "GET" && strings.HasPrefix(path, "/v1/messages/") && who != "op":
		name = "get-message"
	case strings.HasSuffix(path, "/ack"):
		name = "ack"
	}
	if name == "" {
		return
	}
	bad, err := d.schemas.Validate("ma2h/"+name, d.last.body)
	if err != nil || len(bad) > 0 {
		d.t.Errorf("%s: not a %s: %v %v in %s", d.last.what, name, err, bad, d.last.body)
	}
}
