package acs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"deskbell/backend/brief"
	"deskbell/backend/gate"
	"deskbell/backend/guardian"
	"deskbell/backend/inbox"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// decision is what a step is answered with (ACS §6), without what binds it to its request.
type decision struct {
	Verdict       string          `json:"decision"`
	Reasoning     string          `json:"reasoning,omitempty"`
	Modifications *modifications  `json:"modifications,omitempty"`
	Codes         []string        `json:"reason_codes,omitempty"`
	References    []reference     `json:"policy_references,omitempty"`
	Data          json.RawMessage `json:"policy_data,omitempty"`
}

// modifications are the changes of a MODIFY. Of the two shapes that exist only this one is ever sent, so that no two
// changes can be about the same place (ACS §6.3).
type modifications struct {
	Overrides json.RawMessage `json:"parameter_overrides"` // new values by argument, bare
}

// reference names the rule behind a decision.
type reference struct {
	Policy  string `json:"policy_id"`
	Version string `json:"policy_version"`
	Name    string `json:"policy_name"`
	Rule    string `json:"rule_id"`
}

func allowed() decision { return decision{Verdict: allow} }

func denied(code, reasoning string) decision {
	return decision{Verdict: deny, Reasoning: reasoning, Codes: []string{code}}
}

// verdict is the decision as steps and judgements keep it.
func (d decision) verdict() gate.Verdict { return gate.Verdict(d.Verdict) }

// members writes the decision as members of a result.
func (d decision) members() ([]wire.Member, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return wire.Members(bytes.TrimSpace(buf.Bytes()))
}

// fit makes a decision one that the method and the agent can take (ACS §6.5). What they cannot becomes a DENY, or,
// where there is none because the deed is done, an ALLOW that says so.
func (d decision) fit(m method, edits bool) decision {
	if d.Verdict == modify && m.permits(modify) && !edits {
		by := d
		d = denied(reasonModify, fmt.Sprintf("The answer was to go on with other arguments, which this agent cannot take: %s", brief.Clip(string(d.Modifications.Overrides), 1000)))
		d.References, d.Data = by.References, by.Data
	}
	if m.permits(d.Verdict) {
		return d
	}
	codes := d.Codes
	if !slices.Contains(codes, reasonNotPermitted) {
		codes = append(slices.Clone(codes), reasonNotPermitted)
	}
	if m.permits(deny) {
		return decision{Verdict: deny, Reasoning: "This step cannot be answered with " + d.Verdict + ".", Codes: codes, References: d.References, Data: d.Data}
	}
	return decision{Verdict: allow, Reasoning: d.Reasoning, Codes: codes}
}

// result writes the answer of a step, checked against the schema of answers before it is signed. chain is the hash of
// the step's entry; "" when none was written.
func (b *Binding) result(q *request, d decision, chain string, more ...wire.Member) ([]byte, error) {
	core, err := d.members()
	if err != nil {
		return nil, err
	}
	members := append(append(binding(q), core...), more...)
	if chain != "" {
		members = append(members, wire.Member{Name: "chain_hash", Value: wire.Quote(chain)})
	}
	return b.send(q, "result", members)
}

// binding is what ties a result to its request.
func binding(q *request) []wire.Member {
	return []wire.Member{
		{Name: "type", Value: wire.Quote("final")},
		{Name: "acs_version", Value: wire.Quote(Version)},
		{Name: "request_id", Value: wire.Quote(q.requestID())},
	}
}

// send checks an envelope and signs it if the request was signed.
func (b *Binding) send(q *request, box string, members []wire.Member) ([]byte, error) {
	envelope := envelope(q.id, box, members)
	bad, err := b.Schemas.Validate("acs/response-envelope", envelope)
	if err == nil && len(bad) > 0 {
		err = fmt.Errorf("%s %s", bad[0].Pointer, bad[0].Message)
	}
	if err != nil {
		return nil, fmt.Errorf("an answer that is none: %w", err)
	}
	if !q.signed {
		return envelope, nil
	}
	return signing.SignEnvelope(q.key, q.keyID, envelope, box)
}

// errorAnswer writes an error, signed if the request was.
func (b *Binding) errorAnswer(q *request, f *fault) []byte {
	answer, err := b.send(q, "error", f.members())
	if err != nil {
		b.Log.Error("an error could not be signed", "protocol", Name, "err", err)
		return refusal(q.id, f)
	}
	return answer
}

// refusal is an error to somebody who has proved nothing.
func refusal(id []byte, f *fault) []byte { return envelope(id, "error", f.members()) }

func envelope(id []byte, box string, members []wire.Member) []byte {
	return wire.Compose([]wire.Member{
		{Name: "jsonrpc", Value: wire.Quote("2.0")},
		{Name: "id", Value: id}, // nil becomes null
		{Name: box, Value: wire.Compose(members)},
	})
}

// refuse answers a step that cannot be judged with a DENY of the hub's own that entered no chain, or what stands for it
// where the deed is done. An error would be left to the agent's own posture, which may be to go on.
func (b *Binding) refuse(q *request, code, reasoning string) []byte {
	return b.unchained(q, denied(code, reasoning).fit(q.step.method, false))
}

// unchained answers a step that entered no chain.
func (b *Binding) unchained(q *request, d decision) []byte {
	answer, err := b.result(q, d, "")
	if err != nil {
		b.Log.Error("a refusal could not be written", "protocol", Name, "err", err)
		return b.errorAnswer(q, faultf(internalError, reasonBroken, "the hub failed"))
	}
	return answer
}

// broken answers what a panic cut off: as a step it is refused, whatever the fault was. It checks nothing of what it
// writes, so that a fault in the checks cannot stop it.
func (b *Binding) broken(q *request, p any) []byte {
	b.Log.Error("panic in a step", "protocol", Name, "panic", p, "stack", string(debug.Stack()))
	if !q.signed {
		return refusal(q.id, faultf(internalError, reasonBroken, "the hub failed"))
	}
	box, members := "error", faultf(internalError, reasonBroken, "the hub failed").members()
	if m, found, _ := lookup(q.method); found {
		if d, err := denied(reasonBroken, judgeFailed).fit(m, false).members(); err == nil {
			box, members = "result", append(binding(q), d...)
		}
		if q.step != nil && q.step.entry.Hash != "" {
			members = append(members, wire.Member{Name: "chain_hash", Value: wire.Quote(q.step.entry.Hash)})
		}
	}
	answer, err := signing.SignEnvelope(q.key, q.keyID, envelope(q.id, box, members), box)
	if err != nil {
		return refusal(q.id, faultf(internalError, reasonBroken, "the hub failed"))
	}
	if s := q.step; s != nil && s.entry.Hash != "" {
		b.clear(s, answer)
	}
	return answer
}

// clear leaves nothing behind of a step that a panic cut off: its card is closed, since nobody waits for it, and what was
// answered is recorded. The cause of the panic may be in here too.
func (b *Binding) clear(s *step, answer []byte) {
	defer func() {
		if p := recover(); p != nil {
			b.Log.Error("panic after a panic in a step", "protocol", Name, "panic", p)
		}
	}()
	ctx := context.Background()
	if s.item != "" {
		if _, err := b.Inbox.Leave(ctx, s.item, judgeFailed); err != nil && !errors.Is(err, inbox.ErrNotFound) {
			b.Log.Error("a call that nobody waits for could not be closed", "protocol", Name, "err", err)
		}
	}
	d := denied(reasonBroken, judgeFailed).fit(s.method, false)
	a := guardian.Answer{Seq: s.entry.Seq, Verdict: d.verdict(), Codes: d.Codes, At: b.now(), Sent: answer}
	if s.subject.Protocol != "" {
		a.Judgement = &gate.Judgement{Subject: s.subject, Item: s.item, Verdict: gate.Deny, Judge: "system:" + reasonBroken, Reason: judgeFailed, DecidedAt: a.At}
	}
	if err := b.Guardian.Answer(ctx, Name, s.session.ID, a); err != nil {
		b.Log.Error("an answer could not be recorded", "protocol", Name, "method", s.method.name, "err", err)
	}
}

const judgeFailed = "The hub failed while it judged this step."
