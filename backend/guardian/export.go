package guardian

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"deskbell/backend/gate"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// The form of an export: JSON Lines, the session first and then each step. Somebody who has never seen the hub can
// check it: request_hash is of params, entry_hash of entry and previous_hash.
const (
	exportKind    = "acs-session"
	exportVersion = 1
	// maxExportLine bounds one line of an export that is read, in bytes: a request and its answer.
	maxExportLine = 8 << 20
)

type exportHead struct {
	Deskbell string        `json:"deskbell"`
	Version  int           `json:"version"`
	Session  exportSession `json:"session"`
}

type exportSession struct {
	Protocol string     `json:"protocol"`
	ID       string     `json:"id"`
	Agent    string     `json:"agent"`
	AgentID  string     `json:"agent_id"`
	Platform string     `json:"platform,omitempty"`
	Folder   string     `json:"folder,omitempty"`
	OpenedAt time.Time  `json:"opened_at"`
	SealedAt *time.Time `json:"sealed_at,omitempty"`
	Steps    int        `json:"steps"`
	Head     string     `json:"head"`
}

type exportStep struct {
	Seq          int             `json:"seq"`
	At           time.Time       `json:"at"`
	Entry        json.RawMessage `json:"entry"`
	PreviousHash *string         `json:"previous_hash"` // null at the first. ACS §8.2
	EntryHash    string          `json:"entry_hash"`
	Params       json.RawMessage `json:"params"`
	Decision     *exportDecision `json:"decision,omitempty"`
	Answer       json.RawMessage `json:"answer,omitempty"`
}

type exportDecision struct {
	Verdict   gate.Verdict    `json:"verdict"`
	Codes     []string        `json:"codes"`
	DecidedAt *time.Time      `json:"decided_at,omitempty"`
	Judge     string          `json:"judge,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Item      string          `json:"item,omitempty"`
	Changed   json.RawMessage `json:"changed,omitempty"`
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Export writes a session with its steps; judged are its judgements by request.
func Export(ctx context.Context, w io.Writer, store Store, s Session, judged map[string]gate.Judgement) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	err := out.Encode(exportHead{exportKind, exportVersion, exportSession{
		Protocol: s.Protocol, ID: s.ID, Agent: s.Agent, AgentID: s.AgentID, Platform: s.Platform, Folder: s.Folder,
		OpenedAt: s.OpenedAt.UTC(), SealedAt: timeOrNil(s.SealedAt), Steps: s.Steps, Head: s.Head,
	}})
	if err != nil {
		return err
	}
	var previous *string
	err = store.Steps(ctx, s.Protocol, s.ID, 0, func(st Step) error {
		if st.Seq > s.Steps { // made since the session was read
			return errEnough
		}
		line := exportStep{Seq: st.Seq, At: st.At.UTC(), Entry: st.entry(), PreviousHash: previous, EntryHash: st.Hash, Params: st.Params, Answer: st.Answer}
		if st.Verdict != "" {
			j := judged[st.Request]
			line.Decision = &exportDecision{st.Verdict, st.Codes, timeOrNil(st.DecidedAt), j.Judge, j.Reason, j.Item, j.Changed}
		}
		previous = &st.Hash
		return out.Encode(line) // which also takes the line breaks out of what was received
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

var errEnough = errors.New("enough")

// NotExportError: the file is no export of a session.
type NotExportError struct {
	Line int
	Why  string
}

func (e *NotExportError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// VerifyExport reads an export, recomputes every hash in it, and checks that each answer is that of its step. Without a
// secret that shows that the file is consistent in itself. With the secret that was shared with the agent's host it also
// checks both signatures of every step that was answered (Chain.Signed): only who has the secret can have written those.
// The session is as the export says. Errors: *NotExportError, and the reader's.
func VerifyExport(r io.Reader, secret []byte) (Session, Chain, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxExportLine)
	n := 0
	next := func(v any) (bool, error) {
		if !lines.Scan() {
			if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
				return false, &NotExportError{n + 1, fmt.Sprintf("is longer than %d bytes", maxExportLine)}
			} else if err != nil {
				return false, err
			}
			return false, nil
		}
		n++
		raw := bytes.TrimSpace(lines.Bytes())
		if err := wire.Check(raw, 0); err != nil {
			return false, &NotExportError{n, err.Error()}
		}
		if err := json.Unmarshal(raw, v); err != nil {
			return false, &NotExportError{n, "does not have the form of an export"}
		}
		return true, nil
	}
	var head exportHead
	if ok, err := next(&head); err != nil || !ok || head.Deskbell != exportKind {
		if err == nil {
			err = &NotExportError{1, `must be the session: {"deskbell":"` + exportKind + `",…}`}
		}
		return Session{}, Chain{}, err
	}
	if head.Version != exportVersion {
		return Session{}, Chain{}, &NotExportError{1, fmt.Sprintf("is version %d of the form; this program knows version %d", head.Version, exportVersion)}
	}
	s := head.Session.session()
	var c Chain
	var key []byte
	if len(secret) > 0 {
		var err error
		if key, err = signing.SessionKey(secret, s.ID); err != nil {
			return s, c, err
		}
	}
	for {
		var line exportStep
		ok, err := next(&line)
		if err != nil {
			return s, c, err
		}
		if !ok {
			break
		}
		if c.line(s, line, key); !c.OK() {
			return s, c, nil
		}
	}
	c.end(s)
	return s, c, nil
}

func (e exportSession) session() Session {
	s := Session{Protocol: e.Protocol, ID: e.ID, Agent: e.Agent, AgentID: e.AgentID, Platform: e.Platform, Folder: e.Folder, OpenedAt: e.OpenedAt, Steps: e.Steps, Head: e.Head}
	if e.SealedAt != nil {
		s.SealedAt = *e.SealedAt
	}
	return s
}

// line checks one step of an export: that its entry is of its params and of this session, then as any step, and then its
// answer; the signatures too, with the session's key.
func (c *Chain) line(s Session, line exportStep, key []byte) {
	broken := func(why string) { c.BrokenAt, c.Why = c.Steps+1, why }
	var entry struct {
		EntryID     string `json:"entry_id"`
		StepID      string `json:"step_id"`
		StepType    string `json:"step_type"`
		RequestHash string `json:"request_hash"`
		Timestamp   string `json:"timestamp"`
	}
	var params struct {
		RequestID string `json:"request_id"`
		Timestamp string `json:"timestamp"`
		Metadata  struct {
			SessionID string `json:"session_id"`
		} `json:"metadata"`
	}
	if json.Unmarshal(line.Entry, &entry) != nil || json.Unmarshal(line.Params, &params) != nil {
		broken("the entry or the params do not have the form of a step's")
		return
	}
	st := Step{Seq: line.Seq, Request: entry.EntryID, Method: entry.StepType, SentAt: entry.Timestamp, RequestHash: entry.RequestHash, Hash: line.EntryHash, Params: line.Params}
	if same, err := sameJSON(line.Entry, st.entry()); err != nil || !same || entry.StepID != entry.EntryID {
		broken("the entry has other members than a step's")
		return
	}
	if params.RequestID != entry.EntryID || params.Timestamp != entry.Timestamp || params.Metadata.SessionID != s.ID {
		broken("the entry is not that of the params beside it, or of another session")
		return
	}
	if previous := line.PreviousHash; (previous == nil) != (c.Head == "") || (previous != nil && *previous != c.Head) {
		broken("previous_hash is not the hash of the step before")
		return
	}
	if c.next(st); !c.OK() {
		return
	}
	if why := line.answered(st, key); why != "" {
		c.Steps-- // this one does not hold
		broken(why)
		return
	}
	if key != nil && line.Answer != nil {
		c.Signed++
	}
}

// answered says what is wrong with what a step was answered with; "": nothing.
func (line exportStep) answered(st Step, key []byte) string {
	var verdict gate.Verdict
	if line.Decision != nil {
		verdict = line.Decision.Verdict
	}
	if len(line.Answer) == 0 {
		if verdict != "" && verdict != Unanswered {
			return "there is a decision, and no answer that says it"
		}
		return ""
	}
	var answer struct {
		ID     json.RawMessage `json:"id"`
		Result struct {
			RequestID string       `json:"request_id"`
			Decision  gate.Verdict `json:"decision"`
			Chain     string       `json:"chain_hash"`
		} `json:"result"`
	}
	switch err := json.Unmarshal(line.Answer, &answer); {
	case err != nil:
		return "the answer does not have the form of one"
	case answer.Result.RequestID != st.Request:
		return "the answer is bound to another request"
	case answer.Result.Chain != st.Hash:
		return "the answer's chain_hash is not the entry_hash"
	case answer.Result.Decision != verdict:
		return "the answer says another decision than the one recorded"
	case key == nil:
		return ""
	case !signing.VerifyEnvelope(key, line.Answer, "result"):
		return "the answer's signature is not right: it was not written with this key, or was changed"
	}
	// The id of the request is in its answer alone, and the signature covers it.
	request := wire.Compose([]wire.Member{
		{Name: "jsonrpc", Value: wire.Quote("2.0")}, {Name: "id", Value: answer.ID}, {Name: "method", Value: wire.Quote(st.Method)}, {Name: "params", Value: line.Params},
	})
	if !signing.VerifyEnvelope(key, request, "params") {
		return "the request's signature is not right: it was not written with this key, or was changed"
	}
	return ""
}
