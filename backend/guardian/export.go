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

	"deskbell/backend/fleet"
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

// Export writes a session with its steps and how each was judged.
func Export(ctx context.Context, w io.Writer, store Store, s Session) error {
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
			j := st.Judgement
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
// secret that shows that the file is consistent in itself. With the secrets that were shared with the agent's host, more
// than one where a session went on with a new one, it also checks both signatures of every step that was answered
// (Chain.Signed): only who has one of them can have written those. The session is as the export says. Errors:
// *NotExportError, and the reader's.
func VerifyExport(r io.Reader, secrets ...[]byte) (Session, Chain, error) {
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
	c := exportCheck{session: s}
	for _, secret := range secrets {
		key, err := signing.SessionKey(secret, s.ID)
		if err != nil {
			return s, c.Chain, err
		}
		c.keys = append(c.keys, key)
	}
	for {
		var line exportStep
		ok, err := next(&line)
		if err != nil {
			return s, c.Chain, err
		}
		if !ok {
			break
		}
		if c.line(line); !c.OK() {
			return s, c.Chain, nil
		}
	}
	c.end()
	return s, c.Chain, nil
}

// exportCheck is the check of an export.
type exportCheck struct {
	Chain
	session Session
	keys    [][]byte // none: signatures are not looked at
	last    string   // the method of the last step
	// platform is whether any step names a platform, and named whether one names the session's.
	platform, named bool
}

// end checks what the session says of itself against all of its steps.
func (c *exportCheck) end() {
	s := c.session
	broken := func(why string) { c.BrokenAt, c.Why = c.Steps, why }
	switch c.Chain.end(s); {
	case !c.OK():
	case !s.SealedAt.IsZero() && c.last != sessionEnd:
		broken("the session is said to have ended, and its last step is not its end")
	case s.SealedAt.IsZero() && c.last == sessionEnd:
		broken("the session is not said to have ended, and its last step is its end")
	case !fleet.IsPeerID(s.Agent, s.Protocol, s.Platform, s.AgentID):
		broken("the session's agent is not the one that its platform and agent_id make")
	case c.platform && !c.named:
		broken("the session is said to be of a platform that none of its steps names")
	}
}

// sessionEnd is the step that ends a session.
const sessionEnd = "steps/sessionEnd"

func (e exportSession) session() Session {
	s := Session{Protocol: e.Protocol, ID: e.ID, Agent: e.Agent, AgentID: e.AgentID, Platform: e.Platform, Folder: e.Folder, OpenedAt: e.OpenedAt, Steps: e.Steps, Head: e.Head}
	if e.SealedAt != nil {
		s.SealedAt = *e.SealedAt
	}
	return s
}

// line checks one step of an export: that its entry is of its params and of this session, then as any step, and then its
// answer; the signatures too, with the session's key.
func (c *exportCheck) line(line exportStep) {
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
			AgentID   string `json:"agent_id"`
			Platform  string `json:"platform"`
		} `json:"metadata"`
	}
	if json.Unmarshal(line.Entry, &entry) != nil || json.Unmarshal(line.Params, &params) != nil {
		broken("the entry or the params do not have the form of a step's")
		return
	}
	st := Step{
		Seq: line.Seq, Request: entry.EntryID, Method: entry.StepType, SentAt: entry.Timestamp, RequestHash: entry.RequestHash, Hash: line.EntryHash,
		Params: line.Params, Answer: line.Answer,
	}
	if same, err := sameCanonical(line.Entry, st.entry()); err != nil || !same || entry.StepID != entry.EntryID {
		broken("the entry has other members than a step's")
		return
	}
	if params.RequestID != entry.EntryID || params.Timestamp != entry.Timestamp || params.Metadata.SessionID != c.session.ID {
		broken("the entry is not that of the params beside it, or of another session")
		return
	}
	if params.Metadata.AgentID != c.session.AgentID {
		broken("the step is another agent's than the session's")
		return
	}
	if previous := line.PreviousHash; (previous == nil) != (c.Head == "") || (previous != nil && *previous != c.Head) {
		broken("previous_hash is not the hash of the step before")
		return
	}
	c.next(st, line.account(), func() string {
		if line.Answer == nil || len(c.keys) == 0 {
			return ""
		}
		asked := false // whose request is signed with one of the keys
		for _, key := range c.keys {
			request, answered := st.signedBy(key)
			if request && answered {
				c.Signed++
				return ""
			}
			asked = asked || request
		}
		if asked {
			return "the answer's signature is not right: it was not written with this key, or was changed"
		}
		return "the request's signature is not right: it was not written with this key, or was changed; with a new secret a session goes on with another key, so give each"
	})
	c.last = st.Method
	if p := params.Metadata.Platform; p != "" {
		c.platform, c.named = true, c.named || p == c.session.Platform
	}
}

// account is what an export tells of how a step was judged.
func (line exportStep) account() account {
	d := line.Decision
	if d == nil {
		return account{}
	}
	return account{d.Verdict, d.Codes, d.Judge != "" || d.Reason != "" || len(d.Changed) > 0, "", d.Judge, d.Reason, d.Changed}
}
