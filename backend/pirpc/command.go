package pirpc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deskbell/backend/wire"
)

// Command is something pi is told: its type and its parameters by name. Parameters are strings, bools and []Image.
type Command struct {
	Type   string
	Params map[string]any
}

// Image is a picture that goes with a prompt.
type Image struct {
	Type string `json:"type"`
	Data string `json:"data"` // base64
	Mime string `json:"mimeType"`
}

// kind is what a parameter is.
type kind int

const (
	anyText  kind = iota // any text, the empty one too
	someText             // text that is not blank
	oneOf
	yesNo
	images
)

type param struct {
	name     string
	kind     kind
	required bool
	choices  []string
}

// spec is a command as pi takes it.
type spec struct {
	params []param
	// within is how long its answer may take; 0: as long as it likes, because a person, a model or a shell is part of it.
	within time.Duration
	// replaces says that another session is there when it succeeds.
	replaces bool
}

const (
	quick = time.Minute
	slow  = time.Hour // a model may be at work
)

var (
	message   = param{"message", someText, true, nil}
	pictures  = param{"images", images, false, nil}
	enabled   = param{"enabled", yesNo, true, nil}
	queueMode = param{"mode", oneOf, true, []string{"all", "one-at-a-time"}}
)

// Levels are the levels of thinking there are.
var Levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// specs is every command that is written. Pi checks little itself: some that it takes as they come break the session.
var specs = map[string]spec{
	"prompt":                        {params: []param{message, pictures, {"streamingBehavior", oneOf, false, []string{"steer", "followUp"}}}},
	"steer":                         {params: []param{message, pictures}},
	"follow_up":                     {params: []param{message, pictures}},
	"abort":                         {within: 5 * time.Minute},
	"clear_queue":                   {within: quick},
	"new_session":                   {params: []param{{"parentSession", someText, false, nil}}, replaces: true},
	"get_state":                     {within: quick},
	"get_messages":                  {within: quick},
	"set_model":                     {params: []param{{"provider", someText, true, nil}, {"modelId", someText, true, nil}}, within: quick},
	"cycle_model":                   {within: quick},
	"get_available_models":          {within: quick},
	"set_thinking_level":            {params: []param{{"level", oneOf, true, Levels}}, within: quick},
	"cycle_thinking_level":          {within: quick},
	"get_available_thinking_levels": {within: quick},
	"set_steering_mode":             {params: []param{queueMode}, within: quick},
	"set_follow_up_mode":            {params: []param{queueMode}, within: quick},
	"compact":                       {params: []param{{"customInstructions", someText, false, nil}}, within: slow},
	"set_auto_compaction":           {params: []param{enabled}, within: quick},
	"set_auto_retry":                {params: []param{enabled}, within: quick},
	"abort_retry":                   {within: quick},
	"bash":                          {params: []param{{"command", someText, true, nil}, {"excludeFromContext", yesNo, false, nil}}},
	"abort_bash":                    {within: quick},
	"get_session_stats":             {within: quick},
	"export_html":                   {params: []param{{"outputPath", someText, false, nil}}, within: 5 * time.Minute},
	"switch_session":                {params: []param{{"sessionPath", someText, true, nil}}, replaces: true},
	"fork":                          {params: []param{{"entryId", someText, true, nil}}, replaces: true},
	"clone":                         {replaces: true},
	"branch":                        {params: []param{{"entryId", someText, true, nil}}, replaces: true}, // fork, before 0.43
	"get_branch_messages":           {within: quick},
	"get_fork_messages":             {within: quick},
	"get_entries":                   {params: []param{{"since", someText, false, nil}}, within: quick},
	"get_tree":                      {within: quick},
	"get_last_assistant_text":       {within: quick},
	"set_session_name":              {params: []param{{"name", someText, true, nil}}, within: quick},
	"get_commands":                  {within: quick},
}

// aliases are other names under which pi's commands went, or go elsewhere.
var aliases = map[string]string{
	"queue_message": "follow_up", "branch": "fork", "get_branch_messages": "get_fork_messages", "reset": "new_session",
	"clear_session": "new_session", "rename_session": "set_session_name",
}

// canonical is a command's name as pi has it now.
func canonical(name string) string {
	name = snake(name)
	if n, ok := aliases[name]; ok {
		return n
	}
	return name
}

// The bounds of a command.
const (
	MaxMessage = 1 << 20  // of a text parameter, in bytes
	MaxImages  = 20 << 20 // of all images together, as base64
)

// ParamError: a command is not one that pi may be sent.
type ParamError struct{ Command, Param, Problem string }

func (e *ParamError) Error() string {
	if e.Param == "" {
		return fmt.Sprintf("%q %s", e.Command, e.Problem)
	}
	return fmt.Sprintf("%s of %q %s", e.Param, e.Command, e.Problem)
}

// Check refuses what pi may not be sent. Errors: *ParamError.
func (c Command) Check() error {
	s, ok := specs[c.Type]
	if !ok {
		return &ParamError{c.Type, "", "is no command of pi's"}
	}
	for name := range c.Params {
		if !slices.ContainsFunc(s.params, func(p param) bool { return p.name == name }) {
			return &ParamError{c.Type, name, "is no parameter of it"}
		}
	}
	for _, p := range s.params {
		v, ok := c.Params[p.name]
		if !ok && !p.required {
			continue
		}
		if problem := p.check(v); problem != "" {
			return &ParamError{c.Type, p.name, problem}
		}
	}
	return nil
}

func (p param) check(v any) string {
	switch p.kind {
	case yesNo:
		if _, ok := v.(bool); !ok {
			return "must be true or false"
		}
		return ""
	case images:
		return checkImages(v)
	}
	s, ok := v.(string)
	switch {
	case !ok:
		return "must be text"
	case len(s) > MaxMessage:
		return "is longer than " + strconv.Itoa(MaxMessage) + " bytes"
	case !utf8.ValidString(s):
		return "is not Unicode text"
	case p.kind == someText && strings.TrimSpace(s) == "":
		return "must not be blank"
	case p.kind == oneOf && !slices.Contains(p.choices, s):
		return "must be one of " + strings.Join(p.choices, ", ")
	}
	return ""
}

func checkImages(v any) string {
	all, ok := v.([]Image)
	if !ok {
		return "must be images"
	}
	size := 0
	for _, i := range all {
		size += len(i.Data)
		if i.Type != "image" || !strings.HasPrefix(i.Mime, "image/") || len(i.Mime) > 100 {
			return "must be images, each with its type"
		}
		if _, err := base64.StdEncoding.DecodeString(i.Data); err != nil || i.Data == "" {
			return "must be base64"
		}
	}
	if size > MaxImages {
		return "are larger than " + strconv.Itoa(MaxImages) + " bytes together"
	}
	return ""
}

// encode is the record of a checked command: as pi takes it, or in the form that other tools' schemas draft.
func (c Command) encode(id int, seed bool) []byte {
	var params []member
	for _, p := range specs[c.Type].params {
		if v, ok := c.Params[p.name]; ok {
			params = append(params, member{p.name, v})
		}
	}
	if seed {
		m := []member{{"type", "command"}, {"id", id}, {"command", c.Type}}
		if params != nil {
			m = append(m, member{"params", compose(params)})
		}
		return compose(m)
	}
	return compose(append([]member{{"id", nativeID(id)}, {"type", c.Type}}, params...))
}

func nativeID(id int) string { return "h" + strconv.Itoa(id) }

type member struct {
	name  string
	value any
}

// compose writes an object on one line, its members in order.
func compose(members []member) json.RawMessage {
	var b bytes.Buffer
	for i, m := range members {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(m.name))
		b.WriteByte(':')
		if raw, ok := m.value.(json.RawMessage); ok {
			var flat bytes.Buffer
			if json.Compact(&flat, raw) == nil {
				b.Write(flat.Bytes())
			} else {
				b.WriteString("null")
			}
			continue
		}
		v, err := wire.Marshal(m.value)
		if err != nil { // strings, numbers, bools and images always marshal
			v = []byte("null")
		}
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes()
}
