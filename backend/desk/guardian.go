package desk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
)

// The bounds of one page of sessions and of one page of steps.
const (
	guardedPage = 50
	stepsPage   = 200
	maxSteps    = 500
)

// guardedView is a guarded session as the page shows it.
type guardedView struct {
	Key       string        `json:"key"`
	ID        string        `json:"id"`
	Protocol  string        `json:"protocol"`
	Agent     string        `json:"agent"`
	AgentText []render.Span `json:"agent_text"`
	Platform  []render.Span `json:"platform"`
	Folder    []render.Span `json:"folder"`
	OpenedAt  int64         `json:"opened_at"`
	LastSeen  int64         `json:"last_seen"`
	SealedAt  int64         `json:"sealed_at,omitempty"`
	Steps     int           `json:"steps"`
	Waiting   int           `json:"waiting"`
	Allowed   int           `json:"allowed"`
	Denied    int           `json:"denied"`
	Head      string        `json:"head"`
	BrokenAt  int           `json:"broken_at,omitempty"`
	Terms     termsView     `json:"terms"`
}

// termsView is what was agreed with a client that the person should know of.
type termsView struct {
	DecisionMs        int64    `json:"decision_ms"`
	OnDecisionFailure string   `json:"on_decision_failure"`
	Methods           []string `json:"methods"`
	Profiles          []string `json:"profiles"`
}

// viewTerms reads the terms as they were sent: a ServerHello, by itself or as the result of an answer. ACS §5
func viewTerms(raw []byte) termsView {
	type hello struct {
		Timeout struct {
			Default int64 `json:"default_ms"`
		} `json:"timeout_config"`
		OnFailure string   `json:"on_decision_failure"`
		Methods   []string `json:"methods_evaluated"`
		Profiles  []string `json:"profiles_accepted"`
	}
	var sent struct {
		hello
		Result hello `json:"result"`
	}
	h := sent.hello
	if json.Unmarshal(raw, &sent) == nil {
		if h = sent.hello; h.Timeout.Default == 0 {
			h = sent.Result
		}
	}
	return termsView{h.Timeout.Default, h.OnFailure, list(h.Methods), list(h.Profiles)}
}

func (d *Desk) viewGuarded(ctx context.Context, s guardian.Session) (guardedView, error) {
	tally, err := d.Gate.Store.CountJudgements(ctx, s.Protocol, s.ID)
	return guardedView{
		Key: s.Protocol + "/" + s.ID, ID: s.ID, Protocol: s.Protocol, Agent: s.Agent, AgentText: list(render.Visible(s.Agent)),
		Platform: shortSpans(s.Platform), Folder: shortSpans(s.Folder), OpenedAt: ms(s.OpenedAt), LastSeen: ms(s.LastSeen), SealedAt: ms(s.SealedAt),
		Steps: s.Steps, Waiting: tally.Waiting, Allowed: tally.Allowed, Denied: tally.Denied, Head: s.Head, Terms: viewTerms(s.Terms), BrokenAt: d.Guardian.BrokenAt(s.Protocol, s.ID),
	}, err
}

// guarded answers with a page of sessions, the one seen last first, and the alerts.
func (d *Desk) guarded(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	page, next, err := d.Guardian.Sessions(r.Context(), guardedPage, r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	sessions := []guardedView{}
	for _, s := range page {
		v, err := d.viewGuarded(r.Context(), s)
		if err != nil {
			return err
		}
		sessions = append(sessions, v)
	}
	alerts := []map[string]any{}
	for _, a := range d.Guardian.Alerts() {
		alerts = append(alerts, map[string]any{"at": ms(a.At), "kind": a.Kind, "agent": shortSpans(a.Agent), "text": render.Terminal(a.Text), "session": a.Session})
	}
	out := map[string]any{"sessions": sessions, "alerts": alerts}
	if next != "" {
		out["next_cursor"] = next
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// chainView is how the check of a chain went.
type chainView struct {
	OK       bool   `json:"ok"`
	Steps    int    `json:"steps"`
	Foreign  int    `json:"foreign,omitempty"` // steps that were signed with another secret than the hub has now
	BrokenAt int    `json:"broken_at,omitempty"`
	Why      string `json:"why,omitempty"`
}

// stepView is one step of a session.
type stepView struct {
	Seq         int           `json:"seq"`
	At          int64         `json:"at"`
	SentAt      int64         `json:"sent_at"`
	Method      string        `json:"method"`
	What        string        `json:"what"`
	Text        []render.Span `json:"text"`
	Tool        []render.Span `json:"tool,omitempty"`
	Turn        string        `json:"turn,omitempty"`
	Verdict     gate.Verdict  `json:"verdict"`
	Judge       string        `json:"judge,omitempty"`
	Rule        string        `json:"rule,omitempty"`
	Reason      []render.Span `json:"reason,omitempty"`
	Changed     []changedView `json:"arguments_changed,omitempty"`
	WaitedMs    int64         `json:"waited_ms,omitempty"`
	Item        string        `json:"item,omitempty"`
	Codes       []string      `json:"codes"`
	RequestHash string        `json:"request_hash"`
	Hash        string        `json:"hash"`
}

// kindOfStep is what a method is to the person. ACS §6
func kindOfStep(method string) string {
	switch name := method[strings.LastIndexByte(method, '/')+1:]; {
	case name == "sessionStart" || name == "sessionEnd":
		return "session"
	case name == "turnStart" || name == "turnEnd":
		return "turn"
	case name == "userMessage" || name == "agentTrigger":
		return "prompt"
	case name == "toolCallRequest" || strings.HasSuffix(method, "tools/call"):
		return "call"
	case name == "toolCallResult":
		return "result"
	case name == "agentResponse":
		return "answer"
	case name == "subagentStart" || name == "subagentStop":
		return "subagent"
	}
	return "other"
}

func viewStep(s guardian.Step, j gate.Judgement, judged bool) stepView {
	v := stepView{
		Seq: s.Seq, At: ms(s.At), SentAt: millis(s.SentAt), Method: s.Method, What: kindOfStep(s.Method), Text: shortSpans(s.Summary), Turn: s.Turn,
		Verdict: s.Verdict, Codes: list(s.Codes), RequestHash: s.RequestHash, Hash: s.Hash,
	}
	if s.Verdict == guardian.Unanswered {
		v.Verdict = gate.Deny // nobody was told so, and nobody was told "allow"; the code says which
	}
	if !judged {
		return v
	}
	v.Tool, v.Judge, v.Item, v.Changed = spansOrNone(j.Call.Tool), j.Judge, j.Item, viewChanged(j.Call.Arguments, j.Changed)
	if j.Reason != "" {
		v.Reason = shortSpans(j.Reason)
	}
	if id, ok := strings.CutPrefix(j.Judge, gate.RuleJudge); ok {
		v.Rule = id
	}
	if j.Item != "" && !j.DecidedAt.IsZero() {
		v.WaitedMs = j.DecidedAt.Sub(j.At).Milliseconds()
	}
	return v
}

// guardedSession answers with one session: its chain, checked now, and a page of its steps, oldest first.
func (d *Desk) guardedSession(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx, q := r.Context(), r.URL.Query()
	after, err := wholeNumber(q.Get("after"), "after", 0, 0)
	if err != nil {
		return err
	}
	limit, err := wholeNumber(q.Get("limit"), "limit", 1, stepsPage)
	if err != nil {
		return err
	}
	limit = min(limit, maxSteps)
	s, judged, err := d.judgedSession(r)
	if err != nil {
		return err
	}
	view, err := d.viewGuarded(ctx, s)
	if err != nil {
		return err
	}
	out := map[string]any{"session": view}
	if after == 0 { // the rest of a long session need not be checked again with every page of it
		c, err := d.Guardian.Verified(ctx, s.Protocol, s.ID)
		if err != nil {
			return err
		}
		out["chain"] = chainView{c.OK(), c.Steps, c.Foreign, c.BrokenAt, c.Why}
	}
	steps := []stepView{}
	enough := errors.New("enough")
	err = d.Guardian.Steps(ctx, s.Protocol, s.ID, after, func(st guardian.Step) error {
		if len(steps) == limit {
			out["next_cursor"] = strconv.Itoa(steps[limit-1].Seq)
			return enough
		}
		j, ok := judged[st.Request]
		steps = append(steps, viewStep(st, j, ok))
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return err
	}
	out["steps"] = steps
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// judgedSession is the session that the path names, with its judgements by request.
func (d *Desk) judgedSession(r *http.Request) (guardian.Session, map[string]gate.Judgement, error) {
	s, err := d.Guardian.Session(r.Context(), r.PathValue("protocol"), r.PathValue("id"))
	if err != nil {
		return s, nil, err
	}
	judged := map[string]gate.Judgement{}
	err = d.Gate.Store.JudgementsOf(r.Context(), s.Protocol, s.ID, func(j gate.Judgement) bool {
		judged[j.Call.Request] = j
		return true
	})
	return s, judged, err
}

// exportSession streams a session in a form that anybody can verify.
func (d *Desk) exportSession(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	s, err := d.Guardian.Session(r.Context(), r.PathValue("protocol"), r.PathValue("id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="acs-session-`+fileName(s.ID)+`.jsonl"`)
	if err := guardian.Export(r.Context(), w, d.Guardian.Store, s); err != nil {
		// The status is sent: all that is left is to break off, so that a part is not taken for the whole.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// fileName keeps what is harmless in the name of a file.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s[:min(len(s), 64)])
}

// wholeNumber reads a query's number; absent is what it is then.
func wholeNumber(text, name string, least, absent int) (int, error) {
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, inbox.Invalid("/"+name, "must be a whole number, %d or more", least)
	}
	return n, nil
}
