package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/client"
	"deskbell/backend/inbox"
)

// reader is what `deskbell inbox` does with entries.
type reader struct {
	*app
	*inboxFlags
	stdout *failingWriter
	seen   map[string]bool // what was reported, of what may come again
	any    bool            // something came
	count  int
	failed bool
}

func newReader(a *app, f *inboxFlags) *reader {
	r := &reader{inboxFlags: f, stdout: &failingWriter{w: a.out}, seen: map[string]bool{}}
	own := *a
	own.out = r.stdout
	r.app = &own
	return r
}

// entryDoc is an entry as --json prints it.
type entryDoc struct {
	Kind    string          `json:"kind"`
	ID      string          `json:"id"`
	From    string          `json:"from,omitempty"`
	To      string          `json:"to"`
	Outcome client.What     `json:"outcome"`
	Note    string          `json:"note,omitempty"`
	Error   string          `json:"error,omitempty"`
	Entry   json.RawMessage `json:"entry,omitempty"` // not of one that was refused: nobody should act on it
}

func docOf(what client.What, e client.Entry, note string, err error) entryDoc {
	d := entryDoc{Kind: e.Kind, ID: e.Key, From: e.From, To: e.To, Outcome: what, Note: note}
	if what != client.EventRefused {
		d.Entry = e.Object
	}
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

// act prints an entry, or runs the command for it.
func (r *reader) act(ctx context.Context, e client.Entry) (note string, err error) {
	r.stdout.err = nil
	switch {
	case r.exec != "":
		if !r.json {
			r.printHead(e)
		}
		return r.run(ctx, e)
	case r.seen[e.Key]: // it was left in the mailbox
		return "", nil
	case r.json:
		err = r.printLine(docOf(client.EventActed, e, "", nil))
	default:
		err = r.printEntry(e)
	}
	return "", errors.Join(err, r.stdout.err)
}

// report tells the person what became of an entry.
func (r *reader) report(ev client.Event) error {
	e, known := ev.Entry, r.seen[ev.Entry.Key]
	r.any = true
	switch ev.What {
	case client.EventBusy:
		return nil
	case client.EventRepeated:
		r.say("%s was acted on before.", e.Key)
		r.unacknowledged(ev)
		return nil
	case client.EventFailed:
		r.failed = true
		r.say("%s: %s. It comes again after the hub's visibility time-out, unless it has ended.", e.Key, ev.Err)
	case client.EventInterrupted:
		r.failed = true
		if errors.Is(ev.Err, client.ErrCutShort) {
			r.say("%s from %s: %s. It is not run again (--rerun would).", e.Key, e.From, ev.Err)
			break
		}
		r.say("%s from %s: an earlier run was cut short while it acted on it; it is not run again (--rerun would).", e.Key, e.From)
		r.unacknowledged(ev)
	case client.EventActed:
		if r.exec != "" {
			r.say("%s: done %s", e.Key, ev.Note)
		}
		r.unacknowledged(ev)
	case client.EventRefused:
		policy := errors.Is(ev.Err, client.ErrPolicy)
		r.failed = r.failed || !policy
		if !r.json && !known {
			hint := ""
			if policy {
				hint = " (--allow-from or --allow-any would let it)"
			}
			r.app.tell("%s %s from %s: refused: %s%s", e.Kind, e.Key, e.From, ev.Err, hint)
		}
	}
	stays := ev.What == client.EventRefused || (ev.What == client.EventActed && r.noAck && r.exec == "")
	if stays && known {
		return nil
	}
	r.seen[e.Key] = stays
	if r.json && (ev.What != client.EventActed || r.exec != "") {
		if err := r.printLine(docOf(ev.What, e, ev.Note, ev.Err)); err != nil {
			return err
		}
	}
	if r.count++; r.most > 0 && r.count >= r.most {
		return errEnough
	}
	return nil
}

func (r *reader) unacknowledged(ev client.Event) {
	if ev.Err != nil {
		r.say("%s could not be acknowledged: %s. It will be when it comes again.", ev.Entry.Key, ev.Err)
	}
}

// printLine writes one JSON document on a line of its own.
func (a *app) printLine(v any) error {
	raw, err := client.Bytes(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = a.out.Write(inert(out.Bytes()))
	return err
}

// printHead names an entry: what it is, whose, and its title if it has one.
func (r *reader) printHead(e client.Entry) {
	var m message
	_ = json.Unmarshal(e.Object, &m) // its shape was checked
	what, from := e.Kind, e.From
	if e.Kind == "message" {
		what = e.Type
	}
	if from == "" {
		from = "the hub"
	}
	if m.Title != "" {
		from += ": " + m.Title
	}
	r.app.tell("%s %s from %s", what, e.Key, from)
}

// printEntry writes an entry for a person.
func (r *reader) printEntry(e client.Entry) error {
	r.printHead(e)
	switch e.Kind {
	case "response":
		var a client.Answer
		if err := json.Unmarshal(e.Object, &a); err != nil {
			return err
		}
		how := ""
		switch {
		case a.ByDeadline():
			how = " (nobody answered: the default was taken)"
		case a.Response.Edited:
			how = " (an answer of their own)"
		}
		r.app.tell("  %s: %s %s%s", a.InReplyTo, a.Resolution, bare(a.Response.Value), how)
		r.section("Comment", a.Response.Comment)
	case "receipt":
		var b struct {
			InReplyTo string `json:"in_reply_to"`
			Prior     string `json:"prior"`
		}
		if err := json.Unmarshal(e.Object, &b); err != nil {
			return err
		}
		r.app.tell("  %s bounced: it was %s", b.InReplyTo, map[string]string{"queued": "not acknowledged, and whether it was read is not known", "delivered": "collected, and not acknowledged"}[b.Prior])
	default:
		var m message
		if err := json.Unmarshal(e.Object, &m); err != nil {
			return err
		}
		pairs(r.text(), "  priority", m.Priority, "  tags", line(strings.Join(m.Tags, " ")), "  expires", stamp(parseTime(m.ExpiresAt)))
		r.showContent(m, detail{})
	}
	return nil
}

// failingWriter keeps the first error: what could not be printed must not count as seen.
type failingWriter struct {
	w   io.Writer
	err error
}

func (f *failingWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.err = errors.Join(f.err, err)
	return n, err
}

// run runs the command for an entry. Nothing that the entry says becomes part of a command line.
func (r *reader) run(ctx context.Context, e client.Entry) (note string, err error) {
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1], r.exec)
	cmd.Stdin = bytes.NewReader(append(bytes.Clone(e.Object), '\n'))
	again := ""
	if e.Again {
		again = "1"
	}
	cmd.Env = append(os.Environ(), "DESKBELL_KIND="+e.Kind, "DESKBELL_ID="+e.Key, "DESKBELL_FROM="+e.From, "DESKBELL_TO="+e.To,
		"DESKBELL_SESSION="+e.Session, "DESKBELL_TYPE="+e.Type, "DESKBELL_AGAIN="+again)
	first, rest := "", false
	stdout := &lineWriter{each: func(l string) {
		if !rest {
			first, rest = l, true
		}
		r.app.tell("  %s", l)
	}}
	stderr := &lineWriter{each: func(l string) { r.say("  %s", l) }}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	inGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("the command %w: %w", client.ErrNotBegun, err)
	}
	err = cmd.Wait()
	if cmd.ProcessState.Success() {
		err = nil // whatever it was told meanwhile, and whatever it left running in the background: that has its own life
	}
	stdout.end()
	stderr.end()
	if err != nil && ctx.Err() != nil {
		return "", fmt.Errorf("the command was ended: %w", context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("the command failed: %w", err)
	}
	return brief.Cut(strings.ToValidUTF8(strings.TrimSpace(first), "?"), inbox.MaxNote), nil
}

// lineWriter hands on what is written line by line. The lines are cut where they are absurdly long.
type lineWriter struct {
	mu   sync.Mutex
	part []byte
	each func(string)
}

const longestLine = 64 << 10

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 && len(l.part) < longestLine {
			return len(b), nil
		}
		if i < 0 {
			l.each(string(l.part))
			l.part = nil
			return len(b), nil
		}
		l.each(string(l.part[:i]))
		l.part = l.part[i+1:]
	}
}

func (l *lineWriter) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.each(string(l.part))
		l.part = nil
	}
}
