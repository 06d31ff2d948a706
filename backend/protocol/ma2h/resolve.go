package ma2h

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
)

// verbs are the resolutions a resolver may name (MA2H §8.8).
var verbs = map[string]inbox.Verb{
	"answered": inbox.Answer, "declined": inbox.Decline, "completed": inbox.Complete, "dismissed": inbox.Dismiss,
}

// resolve answers POST /v1/messages/{id}/resolve. Who resolves, when, and whether the answer is edited follow from the
// credential, the clock and the answer; what the body says of them is ignored.
func (b *Binding) resolve(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	raw, err := protocol.ReadBody(r)
	if err != nil {
		return err
	}
	actor := c.Actor(b.Settings.Get().Operator())
	if !c.Operator {
		if actor.Session, err = presented(r.URL.Query()); err != nil {
			return err
		}
		if actor.Session != "" {
			if err := b.Mailbox.Present(r.Context(), c.Agent.ID, actor.Session); err != nil {
				return err
			}
		}
	}
	d, err := b.decision(raw)
	if err != nil {
		return err
	}
	if c.Operator { // what an agent says of an edit is ignored like all else that follows from the answer
		if err := b.onlyKnown(r, raw); err != nil {
			return err
		}
		edited, _ := wire.Get(raw, "edited")
		if d.Arguments, err = protocol.EditedArguments(edited); err != nil {
			return err
		}
		if err := d.CheckSizes(); err != nil {
			return err
		}
	}
	if !c.Operator && strings.Contains(c.Agent.ID, "#") {
		// MA2H §4: it can be no addressee; its own plain messages it may end as ever.
		if own, err := b.Inbox.Peek(r.Context(), r.PathValue("id"), c.Agent.ID); err != nil || own.Content.To != "" {
			return protocol.Refused(inbox.Invalid("/agent/id", `an agent whose id contains "#" resolves nothing but its own messages`))
		}
	}
	it, err := b.Inbox.Resolve(r.Context(), r.PathValue("id"), actor, d)
	if errors.Is(err, inbox.ErrGone) && !c.Operator {
		err = inbox.ErrNotFound
	}
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{
		"id": it.ID, "status": string(it.State), "resolution_id": it.Outcome.ID,
	})
}

// onlyKnown refuses a member that this hub does not know in an answer to what is no message of MA2H: it was meant to say
// something, such as what to change of a call. To those of MA2H a later minor may add some (MA2H §10).
func (b *Binding) onlyKnown(r *http.Request, raw []byte) error {
	it, err := b.Inbox.Get(r.Context(), r.PathValue("id"))
	if err != nil || it.Protocol == Name {
		return nil // what is wrong with the message is said by whoever decides it
	}
	return protocol.OnlyKnown(raw, "resolution", "value", "comment", "checklist", "edited")
}

func (b *Binding) decision(raw []byte) (inbox.Decision, error) {
	if raw == nil {
		return inbox.Decision{}, invalidShape("/resolution", "must be present")
	}
	fields, err := b.Schemas.Validate("ma2h/resolve-request", raw)
	if err != nil {
		return inbox.Decision{}, err
	}
	if len(fields) > 0 {
		return inbox.Decision{}, schemaError(fields)
	}
	var body struct {
		Resolution string          `json:"resolution"`
		Value      json.RawMessage `json:"value"`
		Comment    string          `json:"comment"`
		Checklist  []struct {
			Text string `json:"text"`
			Done bool   `json:"done"`
		} `json:"checklist"`
	}
	if err := protocol.Unmarshal(raw, &body); err != nil {
		return inbox.Decision{}, err
	}
	d := inbox.Decision{Verb: verbs[body.Resolution], Value: body.Value, Comment: body.Comment}
	for _, c := range body.Checklist {
		d.Checklist = append(d.Checklist, inbox.Check{Text: c.Text, Done: c.Done})
	}
	return d, d.CheckSizes()
}

// cancel answers POST /v1/messages/{id}/cancel (MA2H §8.4).
func (b *Binding) cancel(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	var body struct {
		Comment protocol.Text `json:"comment"`
	}
	if err := protocol.Decode(r, &body); err != nil {
		return err
	}
	if len(body.Comment) > inbox.MaxNote {
		return inbox.Invalid("/comment", "is longer than %d bytes", inbox.MaxNote)
	}
	it, err := b.Inbox.Cancel(r.Context(), r.PathValue("id"), c.Agent.ID, string(body.Comment))
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"id": it.ID, "status": string(it.State)})
}

// ack answers POST /v1/messages/{id}/ack (MA2H §8.8, §14): the submitter has the answer.
func (b *Binding) ack(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	var body struct {
		Note protocol.Text `json:"note"`
	}
	if err := protocol.Decode(r, &body); err != nil {
		return err
	}
	if len(body.Note) > inbox.MaxNote {
		return inbox.Invalid("/note", "is longer than %d bytes", inbox.MaxNote)
	}
	it, err := b.Inbox.Acknowledge(r.Context(), r.PathValue("id"), c.Agent.ID, string(body.Note))
	if err != nil {
		return err
	}
	return protocol.WriteRaw(w, http.StatusOK, ackEnvelope(it))
}

// ackEnvelope is the acknowledgment as stored: the hub attests who and which resolution (MA2H §14.1).
func ackEnvelope(it inbox.Item) []byte {
	m := []wire.Member{
		{Name: "ma2h_version", Value: wire.Quote(Version)},
		{Name: "type", Value: wire.Quote("ack")},
		{Name: "in_reply_to", Value: wire.Quote(it.ID)},
		{Name: "by", Value: wire.Quote("agent:" + it.Agent)},
		{Name: "acked_at", Value: wire.Quote(inbox.FormatTime(it.Track.AckedAt))},
		{Name: "resolution_id", Value: wire.Quote(it.Outcome.ID)},
	}
	if it.Track.Note != "" {
		m = append(m, wire.Member{Name: "note", Value: wire.Quote(it.Track.Note)})
	}
	return wire.Compose(m)
}
