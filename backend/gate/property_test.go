package gate

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"git status", "git *", "ls -l", "*", "", "/w/a", "~/a", "../a", "https://example.com/a", "example.com", "*.example.com", "1", "null", `{"a":1}`, "/w", "acs", "Bash", "s1", "a/", "git commit ''", "sudo apt", "A=b c", "git commit -m", "strace a"}),
		rapid.StringOf(rapid.RuneFrom([]rune("ab */.~;|&$`'\"\\\n:-=@[]%\u202e\u00e9"))),
	)
}

func arguments() *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		m := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"command", "file_path", "url", "x", "y"}), 0, 3, rapid.ID[string]).Draw(t, "names") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				m[name] = rapid.SliceOf(texts()).Draw(t, "list")
			case 1:
				m[name] = rapid.Float64().Draw(t, "number")
			default:
				m[name] = texts().Draw(t, "text")
			}
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
}

func subjects() *rapid.Generator[Subject] {
	return rapid.Custom(func(t *rapid.T) Subject {
		return Subject{Protocol: rapid.SampledFrom([]string{"acs", "pi", ""}).Draw(t, "protocol"), Agent: texts().Draw(t, "agent"),
			At: thursday.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "minutes")) * time.Minute),
			Call: inbox.Call{Tool: texts().Draw(t, "tool"), Provider: rapid.SampledFrom([]string{"", "p"}).Draw(t, "provider"), Arguments: arguments().Draw(t, "arguments"), Platform: rapid.SampledFrom([]string{"claude-code", "codex", ""}).Draw(t, "platform"),
				Folder: rapid.OneOf(texts(), rapid.Just("/w")).Draw(t, "folder"), Session: rapid.SampledFrom([]string{"s1", "s2", ""}).Draw(t, "session"), Request: rapid.StringN(8, 8, -1).Draw(t, "request")}}
	})
}

func matches() *rapid.Generator[Match] {
	sometimes := func(t *rapid.T, name string) string {
		if rapid.Bool().Draw(t, "has "+name) {
			return texts().Draw(t, name)
		}
		return ""
	}
	return rapid.Custom(func(t *rapid.T) Match {
		m := Match{Protocol: sometimes(t, "protocol"), Platform: sometimes(t, "platform"), Agent: sometimes(t, "agent"), Folder: sometimes(t, "folder"), Session: sometimes(t, "session"), Tool: sometimes(t, "tool"), Provider: rapid.SampledFrom([]string{"", "", "p"}).Draw(t, "provider"), Only: rapid.Bool().Draw(t, "only")}
		for range rapid.IntRange(0, 2).Draw(t, "arguments") {
			m.Arguments = append(m.Arguments, Argument{Name: rapid.SampledFrom([]string{"command", "file_path", "url", "x"}).Draw(t, "name"),
				Op: rapid.SampledFrom([]Op{Is, Like, Command, Within, Host, "other"}).Draw(t, "op"), Value: texts().Draw(t, "value")})
		}
		if rapid.Bool().Draw(t, "has hours") {
			hour := rapid.SampledFrom([]string{"00:00", "09:00", "23:59", "x", ""})
			m.Hours = &Hours{From: hour.Draw(t, "from"), To: hour.Draw(t, "to"), Days: rapid.SliceOfN(rapid.IntRange(-1, 7), 0, 3).Draw(t, "days")}
		}
		return m
	})
}

func TestMatchingNeverPanicsAndNarrowingNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := subjects().Draw(t, "subject"), matches().Draw(t, "match")
		got := m.Matches(s, here)
		_, _ = m.String(), m.Check("")
		for _, v := range []Verdict{Allow, Ask, Deny} {
			if (Rule{Verdict: v, Match: m}).Matches(s, here) != got && v == Allow {
				t.Error("a rule that allows matches other calls than its match")
			}
		}
		wider := m
		wider.Arguments, wider.Tool, wider.Only = nil, "", false
		if got && !wider.Matches(s, here) {
			t.Error("what matches does not match with less asked for")
		}
		other := matches().Draw(t, "other")
		if other.covers(m, here) && got && !other.Matches(s, here) {
			t.Errorf("%+v is said to cover %+v, which matches what it does not", other, m)
		}
	})
}

func TestWhatIsOfferedMatchesItsOwnCall(t *testing.T) {
	offered := 0
	rapid.Check(t, func(t *rapid.T) {
		s := subjects().Draw(t, "subject")
		for _, o := range Offers(s, here) {
			offered++
			if bad := o.Match.Check("/match"); len(bad) > 0 {
				t.Errorf("%+v cannot be stored: %v", o.Match, bad)
			}
			if !o.Match.Matches(s, here) {
				t.Errorf("%+v does not match the call it was made from", o.Match)
			}
			elsewhere := s
			elsewhere.Call.Session, elsewhere.Call.Tool = "elsewhere", s.Call.Tool
			if o.Scope == ForSession && o.Match.Matches(elsewhere, here) {
				t.Errorf("%+v reaches beyond its session", o.Match)
			}
			if elsewhere.Call.Tool = s.Call.Tool + "x"; o.Match.Matches(elsewhere, here) {
				t.Errorf("%+v reaches beyond its tool", o.Match)
			}
		}
	})
	if offered == 0 {
		t.Error("nothing was ever offered: the test proves nothing")
	}
}

// memory is a Store in memory.
type memory struct {
	Store
	rules      []Rule
	judgements []Judgement
}

func (m *memory) Rules(context.Context, bool) ([]Rule, error) {
	return append([]Rule(nil), m.rules...), nil
}

func (m *memory) PutRule(_ context.Context, r Rule, before string, _ fleet.Audit) error {
	kept := m.rules[:0:0]
	at := -1
	for _, old := range m.rules {
		if old.ID == before {
			at = len(kept)
		}
		if old.ID != r.ID {
			kept = append(kept, old)
		}
	}
	if before == "" {
		at = len(kept)
	} else if at < 0 {
		return ErrUnknownRule
	}
	m.rules = append(kept[:at:at], append([]Rule{r}, kept[at:]...)...)
	return nil
}

func (m *memory) ReplaceRule(ctx context.Context, old string, r Rule, before, _ string, audit fleet.Audit) error {
	if err := m.PutRule(ctx, r, before, audit); err != nil {
		return err
	}
	m.rules = slices.DeleteFunc(m.rules, func(r Rule) bool { return r.ID == old })
	return nil
}

func (m *memory) Judgements(_ context.Context, _ time.Time, _ int, fn func(Judgement) bool) error {
	for _, j := range m.judgements {
		if !fn(j) {
			break
		}
	}
	return nil
}

func newGate(t testing.TB, m *memory) *Gate {
	g, err := New(context.Background(), Config{Store: m, Now: func() time.Time { return thursday }, Place: here, OnChange: func() {}, OnRules: func(context.Context, string) {},
		Retention: func() time.Duration { return 24 * time.Hour }, Log: slog.New(slog.DiscardHandler),
		Operator: func() inbox.Actor { return inbox.Actor{Kind: inbox.Human, ID: "me"} }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What a trial says is what happens when the rule is then added, or put in the place of another.
func TestATrialAgreesWithWhatHappensThen(t *testing.T) {
	valid := matches().Filter(func(m Match) bool { return len(m.Check("")) == 0 })
	rapid.Check(t, func(rt *rapid.T) {
		m := &memory{}
		g := newGate(t, m)
		ctx := context.Background()
		draft := func() Draft {
			d := Draft{Verdict: rapid.SampledFrom([]Verdict{Allow, Deny, Ask}).Draw(rt, "verdict"), Match: valid.Draw(rt, "match")}
			if len(m.rules) > 0 && rapid.Bool().Draw(rt, "has before") {
				d.Before = rapid.SampledFrom(m.rules).Draw(rt, "before").ID
			}
			return d
		}
		for range rapid.IntRange(0, 4).Draw(rt, "rules") {
			if _, err := g.Add(ctx, draft()); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 6).Draw(rt, "calls") {
			s := subjects().Draw(rt, "subject")
			m.judgements = append(m.judgements, Judgement{Subject: s, Verdict: g.Judge(s).Verdict})
		}
		d, replaces := draft(), ""
		if len(m.rules) > 0 && rapid.Bool().Draw(rt, "replaces one") {
			replaces = rapid.SampledFrom(m.rules).Draw(rt, "replaced").ID
		}
		trial, err := g.Try(ctx, d, replaces)
		if err != nil {
			rt.Fatal(err)
		}
		if replaces == "" {
			_, err = g.Add(ctx, d)
		} else {
			_, err = g.Change(ctx, replaces, d)
		}
		if err != nil {
			rt.Fatal(err)
		}
		changed, matched := 0, 0
		would := map[string]Verdict{}
		for _, c := range trial.Calls {
			would[c.Call.Request] = c.Would
		}
		for _, j := range m.judgements {
			now := g.Judge(j.Subject).Verdict
			if now != j.Verdict {
				changed++
			}
			if (Rule{Verdict: d.Verdict, Match: d.Match}).touches(j.Subject, here) {
				if matched++; would[j.Call.Request] != now {
					rt.Errorf("%s would be %s and is %s", j.Call.Request, would[j.Call.Request], now)
				}
			}
		}
		for _, s := range trial.Changes {
			changed -= s.N
		}
		if changed != 0 || matched != trial.Matched+trial.Untold {
			rt.Errorf("%d changes were not foretold; %d matched, foretold %d", changed, matched, trial.Matched+trial.Untold)
		}
	})
}

func FuzzMatches(f *testing.F) {
	f.Add([]byte(`{"arguments":[{"name":"command","op":"command","value":"git status"}]}`), []byte(`{"command":"git status 'a;b'"}`), "/w")
	f.Add([]byte(`{"arguments":[{"name":"p","op":"within","value":"~/a"}],"folder":"/w"}`), []byte(`{"p":"../a"}`), `C:\w`)
	f.Add([]byte(`{"arguments":[{"name":"u","op":"host","value":"*.example.com"}],"tool":"*"}`), []byte(`{"u":"https://a.example.com"}`), "")
	f.Add([]byte(`{"hours":{"from":"22:00","to":"06:00","days":[1]}}`), []byte(`{}`), "~")
	f.Fuzz(func(t *testing.T, match, arguments []byte, folder string) {
		var m Match
		if json.Unmarshal(match, &m) != nil {
			return
		}
		s := call("Bash", nil)
		s.Call.Arguments, s.Call.Folder = arguments, folder
		_, _, _ = m.Matches(s, here), m.Check(""), Rule{Verdict: Allow, Match: m}.Warnings([]Rule{{Match: m}}, here)
		for _, o := range Offers(s, here) {
			if !o.Match.Matches(s, here) {
				t.Errorf("%+v does not match its own call", o.Match)
			}
		}
	})
}

// A command that matches never holds a character with which a shell could start another one, outside of quotes.
func FuzzShellWords(f *testing.F) {
	f.Add("git status", true)
	f.Add("git 'a;b' \"c|d\"", true)
	f.Add("git \\; $x", false)
	f.Fuzz(func(t *testing.T, text string, posix bool) {
		words, ok := shellWords(text, posix)
		if !ok {
			return
		}
		quote := rune(0)
		for _, r := range text {
			switch {
			case quote != 0:
				if r == quote {
					quote = 0
				} else if quote == '"' && (r == '$' || r == '`' || r == '\\') {
					t.Errorf("%q in double quotes passed in %q", r, text)
				}
			case r == '\'' || r == '"':
				quote = r
			case r == ';' || r == '&' || r == '|' || r == '<' || r == '>' || r == '$' || r == '`' || r == '\\' || r == '(' || r == '\n':
				t.Errorf("%q passed in %q, as %q", r, text, words)
			}
		}
	})
}
