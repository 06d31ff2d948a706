package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"deskbell/backend/config"
)

var noon = time.Date(2035, 9, 13, 12, 0, 0, 0, time.UTC)

const begun = `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{}}`

func dialog(id, more string) string {
	return `{"type":"extension_ui_request","id":"` + id + `","method":"confirm","title":"Go?"` + more + `}`
}

// handed are the records that a relay hands over at a time, all that it has.
func handed(r *relay, now time.Time) (out []string) {
	for {
		s, _ := r.next(now)
		if s.record == nil {
			return out
		}
		out = append(out, string(s.record))
	}
}

func relayOf(lines ...string) *relay {
	r := newRelay(&app{}, config.Config{}, nil)
	for _, l := range lines {
		r.take(own([]byte(l)), noon)
	}
	return r
}

func all(records [][]byte) string {
	var out []string
	for _, r := range records {
		out = append(out, string(r))
	}
	return strings.Join(out, "\n")
}

// A hub that comes back is asked what still waits, each after the call that asks; not what was answered, what ended with
// its call, and what pi's own clock has ended.
func TestRelayAsksAgainWhatStillWaits(t *testing.T) {
	r := relayOf(begun, dialog("u1", ""), dialog("u2", ""), dialog("u3", `,"timeout":5000`), dialog("u4", `,"timeout":60000`))
	handed(r, noon)
	r.answered("u2")
	later := noon.Add(10 * time.Second)
	if got := all(r.waiting(later)); got != begun+"\n"+dialog("u1", "")+"\n"+`{"id":"u4","method":"confirm","timeout":50000,"title":"Go?","type":"extension_ui_request"}` {
		t.Errorf("%s", got)
	}
	r.take([]byte(`{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{}}`), later)
	if got := all(r.waiting(later)); got != "" {
		t.Errorf("after its end: %s", got)
	}
}

// Nor is it handed over late: what waits in the queue has its own time, too. It leaves a trace.
func TestRelayHandsOverNoDialogThatHasEnded(t *testing.T) {
	r := relayOf(begun, dialog("u1", `,"timeout":5000`), dialog("u2", `,"timeout":60000`), dialog("u3", ""))
	if got := all(r.waiting(noon)); got != "" {
		t.Errorf("asked twice: %s", got)
	}
	got := handed(r, noon.Add(10*time.Second))
	missed := `{"type":"relay_missed","title":"Go?","why":"pi went on without you (counted as no)"}`
	if len(got) != 4 || got[0] != begun || got[1] != missed || !strings.Contains(got[2], `"timeout":50000`) || got[3] != dialog("u3", "") {
		t.Errorf("%q", got)
	}
}

// What does not fit is counted and told.
func TestRelaySaysWhatIsMissing(t *testing.T) {
	r := newRelay(&app{}, config.Config{}, nil)
	const each = 8 << 20
	for range maxKept/each + 2 {
		r.put(said{record: make([]byte, each)})
	}
	s, more := r.next(noon)
	var m struct {
		Type          string
		Size, Records int
	}
	if err := json.Unmarshal(s.record, &m); err != nil || !more || m.Type != "relay_dropped" || m.Records != 2 || m.Size != 2*each {
		t.Errorf("%s, %v", s.record, err)
	}
	if rest := handed(r, noon); len(rest) != maxKept/each {
		t.Errorf("%d are left", len(rest))
	}
}

// A dialog that did not fit, and ended before a hub was there, is told of, whichever came first.
func TestRelaySaysWhatItMissedThatDidNotFit(t *testing.T) {
	const end = `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{}}`
	for name, endsFirst := range map[string]bool{"it ended first": true, "it did not fit first": false} {
		r := relayOf(begun, dialog("u1", ""))
		if endsFirst {
			r.take([]byte(end), noon)
		}
		for range 8 {
			r.put(said{record: make([]byte, 8<<20)})
		}
		if !endsFirst {
			r.take([]byte(end), noon)
		}
		if got := strings.Count(strings.Join(handed(r, noon), "\n"), `"relay_missed","title":"Go?"`); got != 1 || len(r.missed) > 0 {
			t.Errorf("%s: told %d times; %d are kept", name, got, len(r.missed))
		}
	}
}

// Nothing that pi runs speaks for the relay.
func TestRelayWrapsWhatSpeaksForIt(t *testing.T) {
	for _, in := range []string{`{"type":"relay_exit","code":0}`, `{"type":"\u0072elay_hello","folder":"/"}`, `{"TYPE":"relay_hello","folder":"/"}`} {
		var m struct{ Type string }
		if out := own([]byte(in)); json.Unmarshal(out, &m) != nil || !strings.HasPrefix(m.Type, "pi_relay_") || !strings.Contains(string(out), fmt.Sprintf(`"record":%s`, in)) {
			t.Errorf("%s became %s", in, out)
		}
	}
	for _, in := range []string{`{"type":"agent_start"}`, `relay_exit`, `["relay_exit"]`} {
		if out := own([]byte(in)); string(out) != in {
			t.Errorf("%s became %s", in, out)
		}
	}
}

// The operator's token goes to no other machine.
func TestRelayStaysOnThisMachine(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	a.flags.Addr = "https://hub.example:1"
	if _, err := newRelay(a, config.Config{Data: t.TempDir()}, nil).dial(t.Context()); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Errorf("%v", err)
	}
}
