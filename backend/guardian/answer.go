package guardian

import (
	"encoding/json"
	"slices"
	"strings"

	"deskbell/backend/gate"
	"deskbell/backend/signing"
	"deskbell/backend/wire"
)

// answer is what a step was answered with, as it was sent and signed. ACS §6
type answer struct {
	ID     json.RawMessage `json:"id"`
	Result struct {
		RequestID     string       `json:"request_id"`
		Decision      gate.Verdict `json:"decision"`
		Chain         string       `json:"chain_hash"`
		Reasoning     string       `json:"reasoning"`
		Codes         []string     `json:"reason_codes"`
		Modifications struct {
			Overrides json.RawMessage `json:"parameter_overrides"`
		} `json:"modifications"`
		Data struct {
			Human struct {
				Approver string `json:"approver"`
			} `json:"human_approval"`
			Rule struct {
				ID string `json:"id"`
			} `json:"rule"`
		} `json:"policy_data"`
	} `json:"result"`
}

// judge is who judged, as judgements name them; "": neither a person nor a rule.
func (a answer) judge() string {
	if id := a.Result.Data.Rule.ID; id != "" {
		return gate.RuleJudge + id
	}
	return a.Result.Data.Human.Approver
}

// account is what is told of how a step was judged, besides its answer.
type account struct {
	verdict gate.Verdict
	codes   []string
	judged  bool         // the rest is told
	as      gate.Verdict // of the judgement; "": not told
	judge   string
	reason  string
	changed json.RawMessage
}

// account is what the hub keeps of how a step was judged.
func (s Step) account() account {
	j := s.Judgement
	return account{s.Verdict, s.Codes, j.Verdict != "", j.Verdict, j.Judge, j.Reason, j.Changed}
}

// contradicts says how an account is not what the answer says; "": it is. st is the step that was answered.
func (a account) contradicts(st Step, raw []byte) string {
	if len(raw) == 0 {
		switch {
		case a.verdict != "" && a.verdict != Unanswered:
			return "there is a decision, and no answer that says it"
		case a.as == gate.Allow || len(a.changed) > 0:
			return "leave was given, and no answer says it"
		}
		return ""
	}
	var is answer
	if json.Unmarshal(raw, &is) != nil {
		return "the answer does not have the form of one"
	}
	r := is.Result
	switch {
	case r.RequestID != st.Request:
		return "the answer is bound to another request"
	case r.Chain != st.Hash:
		return "the answer's chain_hash is not the entry_hash"
	case r.Decision != a.verdict:
		return "the answer says another decision than the one recorded"
	case !slices.Equal(r.Codes, a.codes):
		return "the answer says other reason codes than those recorded"
	case !a.judged:
		return ""
	case a.as != "" && (a.as == gate.Deny) != (r.Decision == gate.Deny):
		return "the answer says another decision than the judgement"
	}
	byOne := strings.HasPrefix(a.judge, gate.RuleJudge) || strings.HasPrefix(a.judge, "human:")
	switch by := is.judge(); {
	case by != "" && by != a.judge, by == "" && byOne:
		return "the answer says that somebody else decided than who is recorded"
	case r.Reasoning != a.reason:
		return "the answer gives another reason than the one recorded"
	}
	if same, err := sameCanonical(orNull(r.Modifications.Overrides), orNull(a.changed)); err != nil || !same {
		return "the answer changes other arguments than those recorded"
	}
	return ""
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

// signedBy says whether a session's key signed a step's request, and its answer. The id of the request is in its answer
// alone, and the signature covers it.
func (s Step) signedBy(key []byte) (request, answered bool) {
	id, _ := wire.Get(s.Answer, "id")
	asked := wire.Compose([]wire.Member{
		{Name: "jsonrpc", Value: wire.Quote("2.0")}, {Name: "id", Value: id}, {Name: "method", Value: wire.Quote(s.Method)}, {Name: "params", Value: s.Params},
	})
	return signing.VerifyEnvelope(key, asked, "params"), signing.VerifyEnvelope(key, s.Answer, "result")
}
