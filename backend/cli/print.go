package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"deskbell/backend/client"
	"deskbell/backend/render"
	"deskbell/backend/unseen"
)

// say writes for a person, on stderr. Strings and errors among args are made safe for a terminal, whoever wrote them.
func (a *app) say(format string, args ...any) { writeText(a.err, format, args) }

// tell writes for a person: on stdout, or on stderr when stdout is for JSON. It is as careful as say.
func (a *app) tell(format string, args ...any) { writeText(a.text(), format, args) }

func writeText(w io.Writer, format string, args []any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = line(arg)
		case error:
			args[i] = lines(arg.Error())
		}
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// safe is text that is fit for a terminal already.
type safe string

// text is where text for people goes.
func (a *app) text() io.Writer {
	if a.json {
		return a.err
	}
	return a.out
}

// printJSON writes one JSON document on stdout.
func (a *app) printJSON(v any) error {
	raw, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = client.Bytes(v); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(raw), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := a.out.Write(inert(readable(out.Bytes())))
	return err
}

// readable is the same JSON with <, > and & as themselves where an encoder wrote them for web pages: a person is to read the
// command that is asked about as it will run.
func readable(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u00`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			continue
		}
		if i+6 <= len(raw) {
			if c, ok := map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}[strings.ToLower(string(raw[i:i+6]))]; ok {
				out = append(out, c)
				i += 5
				continue
			}
		}
		out = append(out, raw[i], raw[i+1]) // a backslash of a backslash begins nothing
		i++
	}
	return out
}

// inert is the same JSON with control and invisible characters written as escapes: a terminal obeys some of them even
// inside a string.
func inert(raw []byte) []byte {
	odd := func(r rune) bool { return r >= 0x7f && unseen.Is(r) }
	if bytes.IndexFunc(raw, odd) < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+64)
	for _, r := range string(raw) {
		switch {
		case !odd(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// line is untrusted text as one line of a terminal.
func line(s string) string {
	return render.Terminal(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " "))
}

// lines is untrusted text as the lines it has.
func lines(s string) safe {
	all := strings.Split(strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	for i, l := range all {
		all[i] = render.Terminal(strings.ReplaceAll(l, "\t", "    "))
	}
	return safe(strings.Join(all, "\n"))
}

// block is untrusted text of several lines, indented.
func block(s string) safe { return safe("  " + strings.ReplaceAll(string(lines(s)), "\n", "\n  ")) }

// table writes rows in aligned columns. Cells are as they should appear: whoever fills them makes them safe.
func table(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// pairs writes names and values in two columns; empty values are left out.
func pairs(w io.Writer, list ...string) {
	var rows [][]string
	for i := 0; i+1 < len(list); i += 2 {
		if list[i+1] != "" {
			rows = append(rows, []string{list[i] + ":", list[i+1]})
		}
	}
	table(w, rows)
}

// colour paints text for a terminal that takes colours.
func (a *app) colour(code, s string) string {
	f, ok := a.text().(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// ago is a time as a person says it.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// instant is a time that the page's calls give in milliseconds, and that JSON for others shows as the wire writes times.
type instant int64

func (i instant) time() time.Time { return fromMs(int64(i)) }

// MarshalJSON implements json.Marshaler.
func (i instant) MarshalJSON() ([]byte, error) {
	return json.Marshal(i.time().UTC().Format(time.RFC3339Nano))
}

func fromMs(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// stamp is a time in full, in the person's zone.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
