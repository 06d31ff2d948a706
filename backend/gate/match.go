package gate

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"deskbell/backend/inbox"
	"deskbell/backend/unseen"
	"deskbell/backend/wire"
)

// Place is where the hub stands.
type Place struct {
	Location *time.Location // whose local time the hours of rules are in
	Home     string         // what "~" is in a path; empty: nothing
}

// fit is how a call compares to what a rule says, or to a part of it. Of parts, the least is that of the whole.
type fit int8

// The ways to compare. What cannot be told is allowed by no rule, and a rule that denies or asks leaves it to the person.
const (
	no fit = iota
	untold
	yes
)

// certain is a comparison that can always be made.
func certain(fits bool) fit {
	if fits {
		return yes
	}
	return no
}

// Matches says whether the rule is certainly about that call. One that allows doubts more.
func (r Rule) Matches(s Subject, p Place) bool { return r.fits(s, p) == yes }

// Matches says whether a rule that allows would be about that call.
func (m Match) Matches(s Subject, p Place) bool { return m.fits(s, p, true) == yes }

// touches says whether the rule has a say in what becomes of that call, unless another decides before it.
func (r Rule) touches(s Subject, p Place) bool {
	fits := r.fits(s, p)
	return fits == yes || fits == untold && r.Verdict != Allow
}

func (r Rule) fits(s Subject, p Place) fit { return r.Match.fits(s, p, r.Verdict == Allow) }

func (m Match) fits(s Subject, p Place, strict bool) fit {
	c := s.Call
	same := func(want, is string) bool { return want == "" || want == is }
	if strict && (len(c.Extra) > 0 || garbled(c.Tool) || garbled(c.Folder)) || m.Only && (m.Provider != c.Provider || m.Version != c.Version) {
		return no // it says more than a rule can compare, or says it so that it reads as another call
	}
	platform := same(m.Platform, c.Platform)
	unsaid := !platform && c.Platform == "" && m.Protocol == s.Protocol // it may be of that one, and says nothing of it
	if !same(m.Protocol, s.Protocol) || !same(m.Provider, c.Provider) || !same(m.Version, c.Version) || !platform && !unsaid || !same(m.Session, c.Session) || !same(m.Addressee, c.Addressee) ||
		m.Agent != "" && !like(m.Agent, s.Agent) || m.Tool != "" && !m.fitsTool(s, strict) || m.Hours != nil && !m.Hours.contain(s.At, p.Location) {
		return no
	}
	fits := yes
	if unsaid {
		fits = untold
	}
	if m.Folder != "" {
		fits = min(fits, m.worksWithin(c, p.Home))
	}
	if m.Only && fits != no {
		fits = min(fits, m.namesAll(c))
	}
	for _, a := range m.Arguments {
		if fits == no {
			break
		}
		is := a.fits(s, p, strict)
		if _, beside := wire.Get(c.Extra, a.Name); is == no && beside && !strict {
			is = untold // it may be that one which counts
		}
		fits = min(fits, is)
	}
	return fits
}

// chosenNames is the protocol in which who asks for a tool chooses what it is called.
const chosenNames = "acp"

// garbled says whether a name or a folder holds what no usual one does and what is not seen: controls, breaks of lines, or
// bytes that are no text. It may pass for another one, so a call with it is the person's and no rule's to allow.
func garbled(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) })
}

// fitsTool says whether the call is of a tool that the match names. Where its name is chosen by who asks, or garbled, how it
// is written takes it past no rule that denies or asks; what is allowed is named as it stands.
func (m Match) fitsTool(s Subject, strict bool) bool {
	if !strict && (s.Protocol == chosenNames || garbled(s.Call.Tool)) {
		return FitsFolded(m.Tool, s.Call.Tool)
	}
	return like(m.Tool, s.Call.Tool)
}

// namesAll says whether a call has no arguments but those that the match names, and asides.
func (m Match) namesAll(c inbox.Call) fit {
	if len(c.Arguments) == 0 {
		return yes
	}
	members, err := wire.Members(c.Arguments)
	if err != nil {
		return untold
	}
	return certain(!slices.ContainsFunc(members, func(member wire.Member) bool {
		return !m.names(member.Name) && !Aside(c, member.Name)
	}))
}

func (m Match) names(argument string) bool {
	return slices.ContainsFunc(m.Arguments, func(a Argument) bool { return a.Name == argument })
}

// asides are the arguments of a known tool of which Aside is true.
func asides(platform, tool string) []string {
	if platform != asidePlatform {
		return nil
	}
	switch tool {
	case "Bash":
		return []string{"description", "timeout"}
	case "Read":
		return []string{"offset", "limit"}
	case "WebFetch":
		return []string{"prompt"}
	}
	return nil
}

// Aside says whether an argument of a call is for the eye, or bounds how much it does: whatever it is, the call does no other
// harm.
func Aside(c inbox.Call, argument string) bool {
	return slices.Contains(asides(c.Platform, c.Tool), argument)
}

// asidePlatform is whose tools have asides, and asideTools are those tools.
const asidePlatform = "claude-code"

func asideTools() []string { return []string{"Bash", "Read", "WebFetch"} }

// fits says whether the call has that argument as it must be.
func (a Argument) fits(s Subject, p Place, strict bool) fit {
	raw, ok := wire.Get(s.Call.Arguments, a.Name)
	if !ok {
		if arguments := bytes.TrimSpace(s.Call.Arguments); len(arguments) > 0 && arguments[0] != '{' && string(arguments) != "null" {
			return untold // they have no names
		}
		return no
	}
	text, isText := wire.String(raw)
	switch {
	case a.Op == Is && isText:
		return certain(text == a.Value)
	case a.Op == Is:
		return sameValue(raw, a.Value)
	case a.Op == Command:
		return fitsCommand(a.Value, raw, s.Call, strict)
	case !isText:
		return untold
	case a.Op == Like:
		return certain(like(a.Value, text))
	case a.Op == Within:
		return anywhere(s.Call, func(base string) fit { return within(a.Value, text, base, p.Home) })
	case a.Op == Host:
		return fitsHost(a.Value, text)
	}
	return no
}

// FitsFolded says whether the whole text fits a pattern as those of rules are, where * is any text, however the two are written: case, white space and characters that do not show are nothing.
func FitsFolded(pattern, text string) bool { return like(folded(pattern), folded(text)) }

func folded(s string) string {
	shows := func(r rune) rune {
		if unseen.Is(r) {
			return -1
		}
		return r
	}
	return strings.ToLower(strings.ToUpper(strings.Map(shows, s))) // both: some letters have more than two forms
}

// like says whether the whole text fits the pattern: * is any text, also none and also of many lines.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// contain says whether the hours hold that moment. Days name the day on which the hours began.
func (h Hours) contain(t time.Time, loc *time.Location) bool {
	from, okFrom := minute(h.From)
	to, okTo := minute(h.To)
	if !okFrom || !okTo {
		return false
	}
	t = t.In(loc)
	now, day := t.Hour()*60+t.Minute(), int(t.Weekday())
	switch {
	case from <= to:
		if now < from || now >= to {
			return false
		}
	case now >= from:
	case now < to:
		day = (day + 6) % 7
	default:
		return false
	}
	return len(h.Days) == 0 || slices.Contains(h.Days, day)
}

// minute reads "HH:MM" as the minute of a day.
func minute(s string) (int, bool) {
	t, err := time.Parse("15:04", s)
	return t.Hour()*60 + t.Minute(), err == nil && len(s) == 5
}
