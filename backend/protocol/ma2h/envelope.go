package ma2h

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/wire"
	"deskbell/schemas"
)

// envelope is a submitted message, decoded after it passed the schema.
type envelope struct {
	Version   string    `json:"ma2h_version"`
	Type      string    `json:"type"`
	Agent     agentDesc `json:"agent"`
	To        string    `json:"to"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	Priority  string    `json:"priority"`
	Tags      []string  `json:"tags"`
	Context   []part    `json:"context"`
	Key       *string   `json:"idempotency_key"` // the empty one is one, too
	ExpiresAt string    `json:"expires_at"`
	Sensitive bool      `json:"sensitive"`
	Request   *request  `json:"request"`
	Action    *action   `json:"action"`
}

// list is one of a message's lists that a person has to look at.
type list struct {
	pointer string
	n       int
}

func (e *envelope) lists() []list {
	all := []list{{"/tags", len(e.Tags)}}
	if r := e.Request; r != nil {
		all = append(all, list{"/request/options", len(r.Options)})
		if r.Resolvers != nil {
			all = append(all, list{"/request/allowed_resolvers", len(*r.Resolvers)})
		}
	}
	if a := e.Action; a != nil {
		all = append(all, list{"/action/checklist", len(a.Checklist)})
		if a.Resolvers != nil {
			all = append(all, list{"/action/allowed_resolvers", len(*a.Resolvers)})
		}
	}
	return all
}

// texts calls fn with every text that has no bound of its own in the schema, and what bounds it.
func (e *envelope) texts(fn func(pointer, text string, most int)) {
	for pointer, name := range map[string]string{
		"/agent/project": e.Agent.Project, "/agent/run_id": e.Agent.RunID, "/agent/runtime": e.Agent.Runtime, "/agent/session": e.Agent.Session,
		"/to": e.To,
	} {
		fn(pointer, name, MaxNameBytes)
	}
	if e.Key != nil {
		fn("/idempotency_key", *e.Key, MaxNameBytes)
	}
	for i, tag := range e.Tags {
		fn(fmt.Sprintf("/tags/%d", i), tag, MaxTextBytes)
	}
	if r := e.Request; r != nil {
		for i, o := range r.Options {
			fn(fmt.Sprintf("/request/options/%d/value", i), o.Value, MaxTextBytes)
			fn(fmt.Sprintf("/request/options/%d/label", i), o.Label, MaxTextBytes)
			fn(fmt.Sprintf("/request/options/%d/description", i), o.Description, MaxTextBytes)
		}
		names(fn, "/request/allowed_resolvers", r.Resolvers)
	}
	if a := e.Action; a != nil {
		for i, c := range a.Checklist {
			fn(fmt.Sprintf("/action/checklist/%d/text", i), c.Text, MaxTextBytes)
		}
		names(fn, "/action/allowed_resolvers", a.Resolvers)
		fn("/action/instructions", a.Instructions, MaxBodyBytes)
		fn("/action/verification", a.Verification, MaxBodyBytes)
	}
}

func names(fn func(pointer, text string, most int), pointer string, list *[]string) {
	if list == nil {
		return
	}
	for i, name := range *list {
		fn(fmt.Sprintf("%s/%d", pointer, i), name, MaxNameBytes)
	}
}

type agentDesc struct {
	ID      string `json:"id"`
	RunID   string `json:"run_id"`
	Runtime string `json:"runtime"`
	Project string `json:"project"`
	Session string `json:"session"`
}

type part struct {
	Kind string          `json:"kind"`
	Text *string         `json:"text"`
	Data json.RawMessage `json:"data"`
	File *struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
		Mime string `json:"mime_type"`
	} `json:"file"`
}

type request struct {
	Mode        string          `json:"mode"`
	Options     []option        `json:"options"`
	Schema      json.RawMessage `json:"schema"`
	Permissions struct {
		AllowEdit    *bool `json:"allow_edit"`
		AllowRespond *bool `json:"allow_respond"`
		AllowIgnore  *bool `json:"allow_ignore"`
	} `json:"permissions"`
	Default   json.RawMessage `json:"default_on_expire"`
	Resolvers *[]string       `json:"allowed_resolvers"`
	Callback  *callback       `json:"callback"`
}

type option struct {
	Value       string `json:"value"`
	Label       string `json:"label"`
	Description string `json:"description"`
}

type action struct {
	Instructions string `json:"instructions"`
	Checklist    []struct {
		Text string `json:"text"`
		Done bool   `json:"done"`
	} `json:"checklist"`
	Verification string    `json:"verification"`
	Resolvers    *[]string `json:"allowed_resolvers"`
	Callback     *callback `json:"callback"`
}

type callback struct {
	Mode string `json:"mode"`
	URL  string `json:"url"`
	Auth *struct {
		Scheme    string `json:"scheme"`
		SecretRef string `json:"secret_ref"`
		TokenRef  string `json:"token_ref"`
	} `json:"auth"`
}

// callback is the message's callback, or nil.
func (e *envelope) callback() *callback {
	switch {
	case e.Request != nil:
		return e.Request.Callback
	case e.Action != nil:
		return e.Action.Callback
	}
	return nil
}

var (
	canonicalVersion = regexp.MustCompile(`^[1-9]\d*\.\d+$`)
	zeroVersion      = regexp.MustCompile(`^0\.(0|[1-9]\d*)$`)
)

// minor returns the declared minor of a version of major 0 (MA2H §10). A canonical other major is
// version_not_supported, anything else is malformed.
func minor(version string) (int, *protocol.Error) {
	if canonicalVersion.MatchString(version) {
		return 0, protocol.Errorf(http.StatusBadRequest, "version_not_supported", "this hub speaks MA2H 0.x")
	}
	if !zeroVersion.MatchString(version) {
		return 0, invalidShape("/ma2h_version", `must be "0." and a number without leading zeros`)
	}
	n, err := strconv.Atoi(version[2:])
	if err != nil {
		n = 1 << 30 // a canonical minor larger than an int is newer than all the gates
	}
	return n, nil
}

func invalidShape(pointer, message string) *protocol.Error {
	field := inbox.FieldError{Pointer: pointer, Message: message}
	return &protocol.Error{Status: http.StatusBadRequest, Code: "validation_error", Message: field.String(), Details: []inbox.FieldError{field}}
}

// gates checks what comes before the schema (MA2H §4, §5.2, §10): it reads an envelope of which nothing is known yet
// but that it is strict JSON, and lets pass what only the schema can judge.
func gates(raw []byte, principal string) (minorNumber int, err error) {
	get := func(path ...string) []byte {
		v := raw
		for _, name := range path {
			v, _ = wire.Get(v, name)
		}
		return v
	}
	if len(raw) == 0 || raw[0] != '{' {
		return 0, invalidShape("", "the message must be a JSON object")
	}
	version, ok := wire.String(get("ma2h_version"))
	if !ok {
		return 0, invalidShape("/ma2h_version", "must be present, a string")
	}
	m, verr := minor(version)
	if verr != nil {
		return 0, verr
	}
	for _, block := range []string{"request", "action"} {
		if mode, _ := wire.String(get(block, "callback", "mode")); mode == "push" && m < 3 {
			return 0, protocol.Errorf(http.StatusBadRequest, "version_not_supported", "pushed answers need MA2H 0.3 or later: their signature changed there")
		}
	}
	if id, ok := wire.String(get("agent", "id")); ok && id != principal {
		return 0, protocol.Errorf(http.StatusForbidden, "agent_id_mismatch", "agent.id is not the agent this credential belongs to")
	}
	for _, leg := range [][]string{{"to"}, {"agent", "session"}} {
		if get(leg...) == nil {
			continue
		}
		if strings.Contains(principal, "#") {
			return 0, inbox.Invalid("/agent/id", `an agent whose id contains "#" cannot take part between agents`)
		}
		if pointer := "/" + strings.Join(leg, "/"); m < 5 {
			return 0, inbox.Invalid(pointer, "needs MA2H 0.5 or later; a lower version cannot be delivered as meant")
		}
	}
	if kind, _ := wire.String(get("type")); kind == "ask" {
		if err := checkAsk(get("request")); err != nil {
			return 0, err
		}
	}
	return m, nil
}

// checkAsk applies the rules of an ask that no schema can say, at every minor (MA2H §5.2, §7).
func checkAsk(req []byte) error {
	values, listed, err := optionValues(req)
	if err != nil {
		return err
	}
	mode, ok := member(req, "mode")
	if !ok {
		return nil
	}
	def, hasDefault := wire.Get(req, "default_on_expire")
	hasDefault = hasDefault && string(def) != "null"
	switch inbox.Mode(mode) {
	case inbox.Select, inbox.Confirm:
		if !listed && mode == string(inbox.Confirm) {
			values, listed = []string{approve, deny}, true
		}
		if !hasDefault || !listed {
			return nil
		}
		s, isString := wire.String(def)
		if !isString {
			return inbox.Invalid("/request/default_on_expire", "must be one of the option values")
		}
		for _, v := range values {
			if v == s {
				return nil
			}
		}
		return inbox.Invalid("/request/default_on_expire", "%q is not one of the option values", s)
	case inbox.Input:
		schema, given := wire.Get(req, "schema")
		if !given {
			return inbox.Invalid("/request/schema", "request.schema is required of mode input")
		}
		if err := schemas.Answerable(schema); err != nil {
			return inbox.Invalid("/request/schema", "request.schema: %s", err)
		}
		compiled, err := schemas.CompileAnswer(schema)
		if err != nil {
			return inbox.Invalid("/request/schema", "request.schema: %s", err)
		}
		if !hasDefault {
			return nil
		}
		if def[0] != '{' {
			return inbox.Invalid("/request/default_on_expire", "must be an object that fits request.schema, or null")
		}
		if bad := compiled.Validate(def); len(bad) > 0 {
			return inbox.Invalid("/request/default_on_expire"+bad[0].Pointer, "%s", bad[0].Message)
		}
	}
	return nil
}

func member(obj []byte, name string) (string, bool) {
	v, ok := wire.Get(obj, name)
	if !ok {
		return "", false
	}
	return wire.String(v)
}

// optionValues lists request.options' values and refuses one that stands twice: the answer names nothing else.
func optionValues(req []byte) (values []string, listed bool, err error) {
	raw, ok := wire.Get(req, "options")
	if !ok || len(raw) == 0 || raw[0] != '[' {
		return nil, false, nil
	}
	elements, err := wire.Elements(raw)
	if err != nil {
		return nil, false, nil // not for this check: the schema will say
	}
	seen := map[string]int{}
	for i, e := range elements {
		v, ok := member(e, "value")
		if !ok {
			continue
		}
		if first, twice := seen[v]; twice {
			return nil, false, inbox.Invalid(fmt.Sprintf("/request/options/%d/value", i), "request.options: %q is already the value of option %d; values must differ", v, first)
		}
		seen[v] = i
		values = append(values, v)
	}
	return values, true, nil
}
