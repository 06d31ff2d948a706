package pirpc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// frame is one recorded record of a real pi: what went in, what came out, and notes about both.
type frame struct {
	Run      string
	Seq      int
	T        int64 // milliseconds since the start of the run
	Dir      string
	Raw      string
	RawBytes bool // these bytes were written as they are
}

var noon = time.Date(2035, 9, 13, 12, 0, 0, 0, time.UTC)

func frames(t testing.TB) map[string][]frame {
	t.Helper()
	file, err := os.Open("testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	runs := map[string][]frame{}
	r := NewReader(bufio.NewReader(file), 0)
	for {
		line, err := r.Read()
		if err != nil {
			break
		}
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		runs[f.Run] = append(runs[f.Run], f)
	}
	if len(runs) < 10 {
		t.Fatalf("%d runs: the recordings are not there", len(runs))
	}
	return runs
}

// replayed is what a recording did to a session.
type replayed struct {
	t        testing.TB
	s        *Session
	rows     []*Row
	states   []State
	asks     map[string]Ask
	answered map[string]string // by whom a dialog was ended: "answer" or why
	results  map[string]Result // by the recording's own ids
	refused  []string          // commands that are not written
	ids      map[string]string // ours to the recording's
	at       time.Time
	settled  int
	replaced int
}

func (r *replayed) apply(fx Effects) {
	for _, row := range append(fx.Rows, fx.Next...) {
		if !slices.Contains(r.rows, row) {
			r.rows = append(r.rows, row)
		}
	}
	for _, a := range fx.Asks {
		r.asks[a.ID] = a
	}
	for _, e := range fx.Ended {
		r.answered[e.ID] = string(e.Why)
	}
	for _, res := range fx.Results {
		r.results[r.ids[res.ID]] = res
	}
	if fx.Settled {
		r.settled++
	}
	if fx.Was != nil {
		r.replaced++
	}
	if st := r.s.State(); len(r.states) == 0 || r.states[len(r.states)-1] != st {
		if !fx.Changed && len(r.states) > 0 {
			r.t.Errorf("the state moved to %s and nobody was told", st)
		}
		r.states = append(r.states, st)
	}
}

// replay plays a recording: what came out is taken, what went in is written by us and compared with what was written.
func replay(t testing.TB, run []frame) *replayed {
	t.Helper()
	r := &replayed{t: t, s: New(0), asks: map[string]Ask{}, answered: map[string]string{}, results: map[string]Result{}, ids: map[string]string{}}
	mine := map[string]string{}
	for _, f := range run {
		r.at = noon.Add(time.Duration(f.T) * time.Millisecond)
		for next := r.s.Next(); !next.IsZero() && !next.After(r.at); next = r.s.Next() {
			r.apply(r.s.Tick(next))
		}
		switch f.Dir {
		case "in":
			if !f.RawBytes {
				r.write(f, mine)
			}
		case "out":
			r.apply(r.s.Take([]byte(withID(f.Raw, mine)), r.at))
		case "meta":
			if how, ok := strings.CutPrefix(f.Raw, "exit "); ok {
				r.apply(r.s.Exit(how, r.at))
			}
		}
	}
	return r
}

// withID is a response with our id instead of the recording's.
func withID(raw string, mine map[string]string) string {
	f := object([]byte(raw))
	if f.text("type") == "response" || f.text("type") == "bash_execution_update" {
		if id := f.text("id"); mine[id] != "" {
			return strings.Replace(raw, string(quoted(id)), string(quoted(mine[id])), 1)
		}
	}
	return raw
}

func quoted(s string) []byte { b, _ := json.Marshal(s); return b }

func (r *replayed) write(f frame, mine map[string]string) {
	in := object([]byte(f.Raw))
	if in.text("type") == "extension_ui_response" {
		r.answer(f, in)
		return
	}
	c := Command{Type: in.text("type"), Params: map[string]any{}}
	for name, raw := range in {
		var v any
		_ = json.Unmarshal(raw, &v)
		switch name {
		case "type", "id":
		case "images":
			var all []Image
			_ = json.Unmarshal(raw, &all)
			c.Params[name] = all
		default:
			c.Params[name] = v
		}
	}
	id, line, fx, err := r.s.Command(c, r.at)
	if err != nil {
		r.refused = append(r.refused, f.Raw)
		return
	}
	r.apply(fx)
	recorded := idKey(in.raw("id"))
	mine[recorded], r.ids[id] = id, recorded
	same(r.t, line, []byte(f.Raw))
}

func (r *replayed) answer(f frame, in fields) {
	var a Answer
	switch {
	case in.bool("cancelled"):
	case in.has("confirmed"):
		yes := in.bool("confirmed")
		a.Confirmed = &yes
	default:
		v := in.text("value")
		a.Value = &v
	}
	id := in.text("id")
	line, fx, err := r.s.Answer(id, a, r.at)
	r.apply(fx)
	if err != nil {
		r.refused = append(r.refused, f.Raw)
		return
	}
	r.answered[id] = "answer"
	same(r.t, line, []byte(f.Raw))
}

// same compares two records without their ids.
func same(t testing.TB, got, want []byte) {
	t.Helper()
	var a, b map[string]any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
		t.Fatalf("not records: %s, %s", got, want)
	}
	if a["type"] != "extension_ui_response" {
		delete(a, "id")
		delete(b, "id")
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("written\n%s\nwant\n%s", got, want)
	}
}

// transcript is rows as lines, without what differs from run to run.
func transcript(rows []*Row) []string {
	var out []string
	for _, r := range rows {
		if r.Kind == SystemRow {
			continue
		}
		line := string(r.Kind)
		for _, s := range []string{r.Level, r.Title, r.Stop} {
			if s != "" {
				line += " " + s
			}
		}
		if r.Open {
			line += " OPEN"
		}
		if r.Interrupted {
			line += " INTERRUPTED"
		}
		if r.Retried {
			line += " retried"
		}
		for _, b := range r.Blocks {
			line += fmt.Sprintf(" [%s %s%q]", b.Kind, b.Name, b.Text)
		}
		if t := r.Tool; t != nil {
			line += fmt.Sprintf(" %s%s error=%v %q", t.Name, t.Arguments, t.IsError, plain(t.Result))
		}
		out = append(out, line)
	}
	return out
}

// Every recording, whatever its generation, ends with nothing left open, and every dialog in it ended in one way.
func TestRecordings(t *testing.T) {
	for name, run := range frames(t) {
		t.Run(name, func(t *testing.T) {
			r := replay(t, run)
			if last := r.states[len(r.states)-1]; last != Exited && slices.ContainsFunc(run, func(f frame) bool { return strings.HasPrefix(f.Raw, "exit ") }) {
				t.Errorf("it ends %s", last)
			}
			for _, row := range r.rows {
				if row.Open {
					t.Errorf("row %d (%s) is open at the end", row.N, row.Kind)
				}
				if row.Kind == RawRow {
					t.Errorf("row %d: %s is not known", row.N, row.Title)
				}
			}
			for id, a := range r.asks {
				if r.answered[id] == "" {
					t.Errorf("the %s %q was neither answered nor withdrawn", a.Method, a.Title)
				}
			}
		})
	}
}

// Both recorded generations tell the same story of the same prompts.
func TestGenerationsAgree(t *testing.T) {
	all := frames(t)
	for _, run := range []string{"s1-basic", "s2-ui"} {
		b, c := transcript(replay(t, all["v073-"+run]).rows), transcript(replay(t, all["v16-"+run]).rows)
		for i, line := range b { // one of them had something to compact
			if strings.HasPrefix(line, "compaction ") {
				b[i] = "compaction manual"
			}
		}
		if !slices.Equal(b, c) {
			t.Errorf("%s:\n%s\n\n%s", run, strings.Join(b, "\n"), strings.Join(c, "\n"))
		}
		if len(b) < 14 {
			t.Errorf("%s: only %d rows", run, len(b))
		}
	}
}

// The oldest generation has other names for compaction and none for the queue. It reads as the one after it.
func TestTheOldestGeneration(t *testing.T) {
	run := frames(t)["v073-s5-retry"]
	var old []frame
	for _, f := range run {
		f.Raw = strings.Replace(f.Raw, `{"type":"compaction_`, `{"type":"auto_compaction_`, 1)
		if !strings.HasPrefix(f.Raw, `{"type":"queue_update"`) {
			old = append(old, f)
		}
	}
	if a, b := transcript(replay(t, old).rows), transcript(replay(t, run).rows); !slices.Equal(a, b) {
		t.Errorf("%s\n\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// Without pi's word that it has settled, a run that is tried again is not idle in between.
func TestRetriesAreNotIdle(t *testing.T) {
	all := frames(t)
	for name, want := range map[string]string{"v073-s5-retry": "idle running retrying running retrying running idle", "v16-s5-retry": "idle running retrying running retrying running idle"} {
		r := replay(t, all[name])
		if got := fmt.Sprint(r.states); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
		if i := slices.IndexFunc(r.rows, func(r *Row) bool { return r.Retried }); i < 0 || r.rows[i].Stop != "error" {
			t.Errorf("%s: no row is marked as tried again", name)
		}
	}
}

// A pi of 0.84.4 or later compacts in the middle of a run, after which nothing says that the run goes on. In the first run
// of a process it has not said yet that it settles either: the run is over when it ends, and not before.
func TestACompactionInTheMiddleOfARunIsNotItsEnd(t *testing.T) {
	s := tell(`{"type":"agent_start"}`, `{"type":"turn_start"}`, `{"type":"compaction_start","reason":"threshold"}`,
		`{"type":"compaction_end","reason":"threshold","result":{"summary":"so far"},"aborted":false,"willRetry":false}`,
		`{"type":"message_start","message":{"role":"assistant","content":[]}}`,
		`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"go"}}`, toolStart, confirm)
	later := noon.Add(time.Minute)
	s.note(s.Tick(later))
	if s.State() != Waiting || !s.Busy() || len(s.ended) != 0 || !s.rows[1].Open {
		t.Fatalf("%s, busy %v, dialogs ended %+v, the answer is open: %v", s.State(), s.Busy(), s.ended, s.rows[1].Open)
	}
	s.tell(`{"type":"agent_end","messages":[],"willRetry":false}`, `{"type":"compaction_start","reason":"threshold"}`, `{"type":"compaction_end","reason":"threshold","willRetry":false}`)
	s.note(s.Tick(later))
	if s.Busy() {
		t.Errorf("after the end of the run, and the compaction that followed it: %s", s.State())
	}
}

// A dialog knows the call that asks, with all of its arguments, even with two calls at once.
func TestADialogKnowsItsCall(t *testing.T) {
	all := frames(t)
	for _, name := range []string{"v073-s2-ui", "v16-s2-ui"} {
		n := 0
		for _, a := range replay(t, all[name]).asks {
			if a.Method != Confirm || !strings.Contains(a.Message, "G_CONFIRM") {
				continue
			}
			n++
			if a.Tool == nil || object(a.Tool.Arguments).text("command") != a.Message {
				t.Errorf("%s: %q is asked by %+v", name, a.Message, a.Tool)
			}
		}
		if n < 6 {
			t.Errorf("%s: only %d dialogs", name, n)
		}
	}
}

// What would break a real pi is not written, and a dialog takes no answer that is not its own, nor a second one.
func TestWhatIsNotWritten(t *testing.T) {
	all := frames(t)
	for name, want := range map[string][]string{
		"v073-s4-errors": {"null", `{"type":"prompt","id":"m1"}`, "not json"}, "v16-s5-retry": {`{"id":"c19","type":"bash"}`},
		"v16-s2-ui": {"something not in options", "no-such-id", `"ef546b81-7c2f-4d90-a464-88c78d670762","value":"yes"`},
	} {
		refused := strings.Join(replay(t, all[name]).refused, "\n")
		for _, w := range want {
			if !strings.Contains(refused, w) {
				t.Errorf("%s: %s was written", name, w)
			}
		}
	}
}

// An older pi leaves the id out when it does not know a command.
func TestAnErrorWithoutAnID(t *testing.T) {
	r := replay(t, frames(t)["v073-s3-control"])
	if got := r.results["c19"]; got.Error != "Unknown command: clear_queue" {
		t.Errorf("%+v", got)
	}
}

// Dialogs end by themselves in silence: by pi's clock, or with the call that asked.
func TestDialogsThatPiEnds(t *testing.T) {
	all := frames(t)
	r := replay(t, all["v16-s2-ui"])
	expired := 0
	for id, a := range r.asks {
		if !a.Deadline.IsZero() && r.answered[id] == string(WhyExpired) {
			expired++
		}
	}
	if expired != 2 {
		t.Errorf("%d dialogs expired, want 2: %v", expired, r.answered)
	}
	for _, name := range []string{"v073-s3-control", "v16-s3-control"} {
		if r := replay(t, all[name]); !slices.Contains(slices.Collect(maps.Values(r.answered)), string(WhyTool)) {
			t.Errorf("%s: no dialog ended with its call: %v", name, r.answered)
		}
	}
	if r := replay(t, all["v16-s6-life-eof-dialog"]); !slices.Contains(slices.Collect(maps.Values(r.answered)), string(WhyExited)) {
		t.Errorf("no dialog ended with the process: %v", r.answered)
	}
}

// What the instructions of a session are is kept, wherever its message has them, in their order.
func TestInstructionsAreKept(t *testing.T) {
	const message = `{"role":"system","content":"","sections":{"preamble":"You are pi.","rules":"Be brief.","tools":null},"toolsAdded":[{"name":"read","description":"reads a file"}],"toolsRemoved":[{"name":"write"}]}`
	s := tell(`{"type":"message_start","message":`+message+`}`, `{"type":"message_end","message":`+message+`}`)
	var got []string
	for _, b := range s.rows[0].Blocks {
		got = append(got, string(b.Text))
	}
	want := []string{"preamble:\n\nYou are pi.", "rules:\n\nBe brief.", "tools:\n\nnull", "Tools from here on:", `{"name":"read","description":"reads a file"}`, "No tools any more:", `{"name":"write"}`}
	if len(s.rows) != 1 || s.rows[0].Kind != SystemRow || !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The oldest generation says nothing of a compaction that it was told to do but its answer: that is its row. Of a later one
// the answer adds nothing.
func TestACompactionOfTheOldestGenerationHasItsRow(t *testing.T) {
	for name, events := range map[string][]string{
		"the oldest": nil,
		"a later":    {`{"type":"compaction_start","reason":"manual"}`, `{"type":"compaction_end","reason":"manual","result":{"summary":"so far"}}`},
	} {
		s := tell(`{"type":"compaction_start","reason":"threshold"}`, `{"type":"compaction_end","reason":"threshold","result":{"summary":"before"}}`)
		id := s.command(t, Command{Type: "compact"})
		s.tell(append(events, `{"type":"response","command":"compact","id":"`+id+`","success":true,"data":{"summary":"so far","firstKeptEntryId":"e","tokensBefore":9}}`)...)
		if len(s.rows) != 2 || s.rows[1].Kind != CompactionRow || s.rows[1].Title != "manual" || plain(s.rows[1].Blocks) != "so far" || s.rows[1].Open {
			t.Errorf("%s: %s", name, titles(s.rows))
		}
	}
}
