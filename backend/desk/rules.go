package desk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
	"deskbell/backend/transcript"
)

// ruleView is a rule as the page shows it.
type ruleView struct {
	ID      string        `json:"id"`
	Verdict gate.Verdict  `json:"verdict"`
	Reason  []render.Span `json:"reason"`
	// ReasonText is the reason as it is stored: what an editor begins with.
	ReasonText string        `json:"reason_text"`
	Match      gate.Match    `json:"match"`
	Text       []render.Span `json:"text"`
	Marked     marked        `json:"marked,omitempty"`
	Warnings   []string      `json:"warnings"`
	CreatedAt  int64         `json:"created_at"`
	CreatedBy  string        `json:"created_by"`
	Item       string        `json:"item,omitempty"`
	Uses       int           `json:"uses"`
	LastUsed   int64         `json:"last_used,omitempty"`
	RevokedAt  int64         `json:"revoked_at,omitempty"`
	RevokedBy  string        `json:"revoked_by,omitempty"`
}

func viewRule(s gate.Standing) ruleView {
	return ruleView{
		ID: s.ID, Verdict: s.Verdict, Reason: list(render.Visible(s.Reason)), ReasonText: s.Reason, Match: s.Match, Text: sentence(s.Rule), Marked: markedOf(s.Match), Warnings: safeTexts(s.Warnings),
		CreatedAt: ms(s.CreatedAt), CreatedBy: s.CreatedBy, Item: s.Item, Uses: s.Use.N, LastUsed: ms(s.Use.Last), RevokedAt: ms(s.RevokedAt), RevokedBy: s.RevokedBy,
	}
}

// sentence is what a rule says, with nothing hidden in it: its values may be an agent's own words.
func sentence(r gate.Rule) []render.Span { return render.Visible(r.String()) }

// marked are the texts of a match in which something is not what it looks like, and how they are shown.
type marked map[string][]render.Span

func markedOf(m gate.Match) marked {
	texts := []string{m.Protocol, m.Platform, m.Agent, m.Addressee, m.Folder, m.Session, m.Tool, m.Provider, m.Version}
	for _, a := range m.Arguments {
		texts = append(texts, a.Name, a.Value)
	}
	all := marked{}
	for _, text := range texts {
		if spans := render.Visible(text); slices.ContainsFunc(spans, func(s render.Span) bool { return s.M != "" }) {
			all[text] = spans
		}
	}
	return all
}

func safeTexts(texts []string) []string {
	safe := make([]string, len(texts))
	for i, t := range texts {
		safe[i] = render.Terminal(t)
	}
	return safe
}

// ruleBody is what the page sends of a rule.
type ruleBody struct {
	Verdict gate.Verdict `json:"verdict"`
	Match   *gate.Match  `json:"match"` // one that is left out would match every call
	Reason  string       `json:"reason"`
	Before  string       `json:"before"`
	ID      string       `json:"id"` // of a trial: the rule it would replace
}

func (b ruleBody) draft() (gate.Draft, error) {
	if b.Match == nil {
		return gate.Draft{}, inbox.Invalid("/match", "is missing: it says which calls the rule is about")
	}
	return gate.Draft{Verdict: b.Verdict, Reason: b.Reason, Match: *b.Match, Before: b.Before}, nil
}

// readDraft reads the rule of a request, and the rule that it would replace in a trial.
func readDraft(r *http.Request) (draft gate.Draft, id string, err error) {
	body, err := decode[ruleBody](r)
	if err == nil {
		draft, err = body.draft()
	}
	return draft, body.ID, err
}

// under puts the pointers of an invalid input below another one.
func under(pointer string, err error) error {
	var invalid *inbox.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	below := &inbox.InvalidError{}
	for _, f := range invalid.Fields {
		below.Fields = append(below.Fields, inbox.FieldError{Pointer: pointer + f.Pointer, Message: f.Message})
	}
	return below
}

func (d *Desk) rules(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	inForce, revoked, err := d.Gate.Rules(r.Context())
	if err != nil {
		return err
	}
	views := func(rules []gate.Standing) []ruleView {
		out := []ruleView{}
		for _, s := range rules {
			out = append(out, viewRule(s))
		}
		return out
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"rules": views(inForce), "revoked": views(revoked)})
}

// writeRule answers with one rule as it now stands.
func (d *Desk) writeRule(ctx context.Context, w http.ResponseWriter, status int, id string) error {
	inForce, _, err := d.Gate.Rules(ctx)
	if err != nil {
		return err
	}
	for _, s := range inForce {
		if s.ID == id {
			return protocol.WriteJSON(w, status, viewRule(s))
		}
	}
	return gate.ErrUnknownRule // revoked in between
}

func (d *Desk) addRule(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	draft, _, err := readDraft(r)
	if err != nil {
		return err
	}
	rule, err := d.Gate.Add(r.Context(), draft)
	if err != nil {
		return err
	}
	return d.writeRule(r.Context(), w, http.StatusCreated, rule.ID)
}

func (d *Desk) changeRule(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	draft, _, err := readDraft(r)
	if err != nil {
		return err
	}
	rule, err := d.Gate.Change(r.Context(), r.PathValue("id"), draft)
	if err != nil {
		return err
	}
	return d.writeRule(r.Context(), w, http.StatusOK, rule.ID)
}

func (d *Desk) revokeRule(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if err := d.Gate.Revoke(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// triedView is one call of a trial.
type triedView struct {
	At      int64         `json:"at"`
	Agent   []render.Span `json:"agent"`
	Tool    []render.Span `json:"tool"`
	Summary []render.Span `json:"summary"`
	Was     string        `json:"was"`
	Judge   string        `json:"judge"`
	Would   gate.Verdict  `json:"would"`
	Item    string        `json:"item,omitempty"`
}

func (d *Desk) tryRule(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	draft, id, err := readDraft(r)
	if err != nil {
		return err
	}
	t, err := d.Gate.Try(r.Context(), draft, id)
	if err != nil {
		return err
	}
	changes := []map[string]any{}
	for _, s := range t.Changes {
		changes = append(changes, map[string]any{"was": s.Was, "would": s.Would, "count": s.N})
	}
	calls := []triedView{}
	for _, c := range t.Calls {
		calls = append(calls, triedView{
			At: ms(c.At), Agent: list(render.Visible(c.Agent)), Tool: list(render.Visible(c.Call.Tool)), Summary: shortSpans(summary(c.Call)),
			Was: string(c.Became()), Judge: c.Judge, Would: c.Would, Item: c.Item,
		})
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{
		"text": sentence(t.Rule), "marked": markedOf(draft.Match), "aside": draft.Match.Asides(), "warnings": safeTexts(t.Warnings),
		"tried": t.Tried, "since": ms(t.Since), "matched": t.Matched, "untold": t.Untold, "changes": changes, "calls": calls,
	})
}

// summary is one line that tells a call from others of its tool.
func summary(c inbox.Call) string {
	for _, a := range gate.Telling(c) {
		if a != "" {
			return strings.Join(strings.Fields(a), " ")
		}
	}
	return ""
}

// offerView is a rule that the page offers on a card.
type offerView struct {
	Scope    gate.Scope    `json:"scope"`
	Verdict  gate.Verdict  `json:"verdict"`
	Match    gate.Match    `json:"match"`
	Text     []render.Span `json:"text"`
	Marked   marked        `json:"marked,omitempty"`
	Aside    string        `json:"aside,omitempty"` // the arguments that do not count as others
	Warnings []string      `json:"warnings"`
	Past     int           `json:"past"`
}

// keepsSteps says whether what a session did can be looked at: not every protocol keeps it, and nothing is kept for ever.
func (d *Desk) keepsSteps(ctx context.Context, protocol, session string) (bool, error) {
	_, err := d.Guardian.Session(ctx, protocol, session)
	if !errors.Is(err, guardian.ErrUnknownSession) {
		return err == nil, err
	}
	_, err = d.Transcripts.Get(ctx, protocol, session)
	if errors.Is(err, transcript.ErrUnknown) {
		return false, nil
	}
	return err == nil, err
}

// addCall adds to an item's detail what concerns its call: what it asks leave for, what rules could be made of it, and
// what judged it.
func (d *Desk) addCall(ctx context.Context, v *detail, it inbox.Item) error {
	c := it.Content.Call
	if c == nil {
		return nil
	}
	v.Call = d.viewCall(it.Protocol, c)
	v.Call.Shown = !it.Content.AsksLeave()
	kept, err := d.keepsSteps(ctx, it.Protocol, c.Session)
	if err != nil {
		return err
	}
	if !kept {
		v.Call.Session = "" // there is nothing to open
	}
	if it.Outcome == nil && !it.Content.AsksLeave() {
		return nil // no rule answers it
	}
	if it.Outcome == nil {
		if r := d.Gate.Judge(gate.SubjectOf(it)); r.Asks() != "" {
			v.Call.Asks = &asksView{ruleRef{ID: r.Rule.ID, Text: render.Visible(r.Rule.Match.String())}, r.Rule.Verdict, r.Untold}
		}
		offers, err := d.offers(ctx, gate.SubjectOf(it))
		v.RuleOffers = offers
		return err
	}
	v.Outcome.Changed = viewChanged(c.Arguments, it.Outcome.Arguments)
	id, byRule := strings.CutPrefix(it.Outcome.Actor, gate.RuleJudge)
	if !byRule {
		return nil
	}
	v.Outcome.Rule = &ruleRef{ID: id}
	rules, err := d.Gate.Store.Rules(ctx, true)
	for _, r := range rules {
		if r.ID == id {
			v.Outcome.Rule.Text = sentence(r)
		}
	}
	return err
}

func (d *Desk) offers(ctx context.Context, s gate.Subject) ([]offerView, error) {
	offers := gate.Offers(s, d.Gate.Place)
	matches := make([]gate.Match, len(offers))
	for i, o := range offers {
		matches[i] = o.Match
	}
	past, err := d.Gate.Past(ctx, matches)
	if err != nil {
		return nil, err
	}
	views := []offerView{}
	for i, o := range offers {
		r := gate.Rule{Verdict: o.Verdict, Match: o.Match}
		views = append(views, offerView{o.Scope, o.Verdict, o.Match, sentence(r), markedOf(o.Match), o.Match.Asides(), safeTexts(d.Gate.Warnings(r)), past[i]})
	}
	return views, nil
}
