package cli

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
	"deskbell/backend/inbox"
)

// ma2hVersion is the version of the protocol that messages from here declare.
const ma2hVersion = "0.6"

// envelope is a message as this command line submits it.
type envelope struct {
	Version   string          `json:"ma2h_version"`
	Type      string          `json:"type"`
	CreatedAt string          `json:"created_at"`
	Key       string          `json:"idempotency_key"`
	Agent     envelopeAgent   `json:"agent"`
	Title     string          `json:"title"`
	Body      string          `json:"body,omitempty"`
	Priority  string          `json:"priority,omitempty"`
	Tags      []string        `json:"tags,omitempty"`
	Context   []part          `json:"context,omitempty"`
	ExpiresAt string          `json:"expires_at,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"`
	State     json.RawMessage `json:"state,omitempty"`
	Request   *request        `json:"request,omitempty"`
	Action    *action         `json:"action,omitempty"`
}

type envelopeAgent struct {
	ID      string `json:"id"`
	RunID   string `json:"run_id"`
	Runtime string `json:"runtime"`
	Project string `json:"project,omitempty"`
}

type part struct {
	Kind     string            `json:"kind"`
	Text     *string           `json:"text,omitempty"`
	Data     json.RawMessage   `json:"data,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

type request struct {
	Mode        string          `json:"mode"`
	Options     []option        `json:"options,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Permissions *permissions    `json:"permissions,omitempty"`
	Default     json.RawMessage `json:"default_on_expire,omitempty"`
	Resolvers   *[]string       `json:"allowed_resolvers,omitempty"`
	Callback    *callback       `json:"callback,omitempty"`
}

type option struct {
	Value       string `json:"value"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

type permissions struct {
	AllowEdit    *bool `json:"allow_edit,omitempty"`
	AllowRespond *bool `json:"allow_respond,omitempty"`
	AllowIgnore  *bool `json:"allow_ignore,omitempty"`
}

type action struct {
	Instructions string    `json:"instructions"`
	Checklist    []check   `json:"checklist,omitempty"`
	Verification string    `json:"verification,omitempty"`
	Resolvers    *[]string `json:"allowed_resolvers,omitempty"`
	Callback     *callback `json:"callback,omitempty"`
}

type check struct {
	Text string `json:"text"`
	Done bool   `json:"done"`
}

type callback struct {
	Mode string        `json:"mode"`
	URL  string        `json:"url,omitempty"`
	Auth *callbackAuth `json:"auth,omitempty"`
}

type callbackAuth struct {
	Scheme    string `json:"scheme"`
	SecretRef string `json:"secret_ref"`
}

// compose is what the flags of ask, task and notify say.
type compose struct {
	body, priority, project, run, expires, state, key string
	tags, files                                       []string
	sensitive                                         bool

	options      []string
	confirm      bool
	input        string
	allowEdit    bool
	fallback     string
	resolvers    []string
	callbackURL  string
	callbackRef  string
	instructions string
	checks       []string
	verification string
}

func (c *compose) commonFlags(cmd *cobra.Command) {
	c.textFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.project, "project", "", "the `NAME` of the project it concerns")
	f.StringVar(&c.run, "run", "", "the `ID` of the run that asks (default: a new one)")
	f.StringVar(&c.state, "state", "", "a `JSON` object (or @FILE) that comes back with the answer and that nobody else reads")
	f.StringArrayVar(&c.files, "context-file", nil, "show the text of `FILE` with it (.json: as data); may be repeated")
	f.StringVar(&c.key, "key", "", "idempotency `KEY`: the same message sent again under it is the same message (default: a random one)")
}

// textFlags are those of everything that is written to somebody, in either direction.
func (c *compose) textFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.body, "body", "", "more to read, Markdown: `TEXT`, @FILE, or - for standard input")
	f.StringVar(&c.priority, "priority", "", "low, normal, high or urgent (`LEVEL`)")
	f.StringArrayVar(&c.tags, "tag", nil, "a `TAG`; may be repeated")
	f.BoolVar(&c.sensitive, "sensitive", false, "keep its content out of logs, search and exports")
}

func (c *compose) answerFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.expires, "expires", "", "until when it can be answered: a duration (`TIME` is 90s, 2h) or an RFC 3339 time")
	f.StringArrayVar(&c.resolvers, "resolver", nil, "who may answer (`ACTOR` is human:NAME or agent:ID); may be repeated; \"none\" names nobody (default: the hub's operator)")
	f.StringVar(&c.callbackURL, "callback", "", "push the answer to this `URL`")
	f.StringVar(&c.callbackRef, "callback-secret", "", "what signs the push: `REF` is secret:NAME, env:NAME or agent:signing (default: the agent's signing secret)")
}

func (c *compose) askFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&c.options, "option", nil, "an answer to choose: `VALUE[=LABEL]`; may be repeated")
	f.BoolVar(&c.confirm, "confirm", false, "ask for yes or no: the answer is \"approve\" or \"deny\", or one of two --option (this is the default)")
	f.StringVar(&c.input, "input", "", "ask for an object that fits the JSON Schema in `SCHEMA.json` (- for standard input)")
	f.BoolVar(&c.allowEdit, "allow-edit", false, "let the person answer something that is not among the options")
	f.StringVar(&c.fallback, "default", "", "the answer when nobody gives one in time: `VALUE` (with --input: a JSON object or @FILE); needs --expires")
}

func (c *compose) taskFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.instructions, "instructions", "", "what is to be done, Markdown: `TEXT`, @FILE or - (default: the title)")
	f.StringArrayVar(&c.checks, "check", nil, "a line of the checklist: `TEXT`; may be repeated")
	f.StringVar(&c.verification, "verification", "", "how one sees that it is done: `TEXT` or @FILE")
}

// build makes the message. What only the hub knows (the operator's name) is asked for when it is needed.
func (c *compose) build(a *app, kind, title, agent string, now time.Time, operator func() (string, error)) (*envelope, error) {
	e := &envelope{
		Version: ma2hVersion, Type: kind, CreatedAt: inbox.FormatTime(now), Key: c.key, Title: title, Priority: c.priority, Tags: c.tags,
		Agent: envelopeAgent{ID: agent, RunID: c.run, Runtime: "cli", Project: c.project}, Sensitive: c.sensitive,
	}
	if e.Key == "" {
		e.Key = "cli-" + rand.Text()
	}
	if e.Agent.RunID == "" {
		e.Agent.RunID = "cli-" + rand.Text()
	}
	if err := oneOf("--priority", c.priority, "low", "normal", "high", "urgent"); err != nil {
		return nil, err
	}
	var err error
	if e.Body, err = c.texts(a, title); err != nil {
		return nil, err
	}
	if c.state != "" {
		if e.State, err = a.objectOf("--state", c.state); err != nil {
			return nil, err
		}
	}
	for _, file := range c.files {
		p, err := filePart(file)
		if err != nil {
			return nil, err
		}
		e.Context = append(e.Context, p)
	}
	if kind == "notify" {
		return e, nil
	}
	if e.ExpiresAt, err = expiry(c.expires, now); err != nil {
		return nil, err
	}
	cb, err := c.callback()
	if err != nil {
		return nil, err
	}
	resolvers, err := c.allowed(operator)
	if err != nil {
		return nil, err
	}
	if kind == "task" {
		e.Action = &action{Resolvers: resolvers, Callback: cb}
		return e, c.task(a, e)
	}
	e.Request = &request{Resolvers: resolvers, Callback: cb}
	return e, c.ask(a, e.Request)
}

// What a hub takes at most: of a title, in characters (MA2H §7.1, §13.2); of a body, in bytes (§8.6).
const (
	maxTitle = 200
	maxBody  = 64 << 10
)

// texts checks a title and reads the body that goes with it.
func (c *compose) texts(a *app, title string) (body string, err error) {
	switch {
	case !utf8.ValidString(title):
		return "", usagef("the title is not valid UTF-8")
	case strings.TrimSpace(title) == "":
		return "", usagef("the title is empty")
	case utf8.RuneCountInString(title) > maxTitle:
		return "", usagef("the title has more than %d characters", maxTitle)
	}
	if body, err = a.textOf("--body", c.body); err == nil && len(body) > maxBody {
		err = usagef("--body: %d bytes are more than the %d that a body may have", len(body), maxBody)
	}
	return body, err
}

func (c *compose) ask(a *app, q *request) error {
	for _, o := range c.options {
		value, label, _ := strings.Cut(o, "=")
		if label == "" {
			label = value
		}
		if slices.ContainsFunc(q.Options, func(o option) bool { return o.Value == value }) {
			return usagef("--option: %q stands twice", value)
		}
		q.Options = append(q.Options, option{Value: value, Label: label})
	}
	var err error
	switch {
	case c.input != "" && (c.confirm || c.options != nil || c.allowEdit):
		return usagef("--input goes with none of --option, --confirm and --allow-edit")
	case c.input != "":
		q.Mode = "input"
		if q.Schema, err = a.inputSchema(c.input); err != nil {
			return err
		}
	case c.confirm || len(c.options) == 0:
		q.Mode = "confirm"
		if n := len(c.options); n != 0 && n != 2 {
			return usagef("--confirm takes two --option, or none")
		}
	default:
		q.Mode = "select"
	}
	if c.allowEdit {
		q.Permissions = &permissions{AllowEdit: &c.allowEdit}
	}
	if c.fallback == "" {
		return nil
	}
	if c.expires == "" {
		return usagef("--default is the answer when time runs out: say when with --expires")
	}
	if q.Mode == "input" {
		q.Default, err = a.objectOf("--default", c.fallback)
	} else {
		q.Default, err = client.Bytes(c.fallback)
	}
	return err
}

func (c *compose) task(a *app, e *envelope) (err error) {
	if e.Action.Instructions, err = a.textOf("--instructions", c.instructions); err != nil {
		return err
	}
	if e.Action.Instructions == "" {
		e.Action.Instructions = e.Title
	}
	if e.Action.Verification, err = a.textOf("--verification", c.verification); err != nil {
		return err
	}
	for _, text := range c.checks {
		e.Action.Checklist = append(e.Action.Checklist, check{Text: text})
	}
	return nil
}

func (c *compose) callback() (*callback, error) {
	if c.callbackURL == "" {
		if c.callbackRef != "" {
			return nil, usagef("--callback-secret needs --callback URL")
		}
		return nil, nil
	}
	if u, err := url.Parse(c.callbackURL); err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, usagef("--callback: %q is not an http:// or https:// URL", c.callbackURL)
	}
	cb := &callback{Mode: "push", URL: c.callbackURL}
	if c.callbackRef != "" {
		cb.Auth = &callbackAuth{Scheme: "hmac", SecretRef: c.callbackRef}
	}
	return cb, nil
}

func (c *compose) allowed(operator func() (string, error)) (*[]string, error) {
	if len(c.resolvers) == 0 {
		op, err := operator()
		if err != nil {
			return nil, err
		}
		return &[]string{op}, nil
	}
	for _, r := range c.resolvers {
		kind, name, _ := strings.Cut(r, ":")
		switch {
		case r == "none" && len(c.resolvers) == 1:
			return nil, nil
		case name == "" || (kind != "human" && kind != "agent" && kind != "system"):
			return nil, usagef("--resolver: %q is not human:NAME, agent:ID or none", r)
		}
	}
	return &c.resolvers, nil
}

func expiry(s string, now time.Time) (string, error) {
	if s == "" {
		return "", nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		if d <= 0 {
			return "", usagef("--expires: %q is not in the future", s)
		}
		return inbox.FormatTime(now.Add(d)), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return "", usagef("--expires: %q is neither a duration (90s, 2h) nor an RFC 3339 time", s)
	}
	if !t.After(now) {
		return "", usagef("--expires: %s is not in the future", s)
	}
	return inbox.FormatTime(t), nil
}

// textOf is a flag's text: as it stands, from a file (@FILE), or from standard input (-).
func (a *app) textOf(flag, s string) (string, error) {
	raw := []byte(s)
	var err error
	switch name, isFile := strings.CutPrefix(s, "@"); {
	case s == "-":
		raw, err = io.ReadAll(a.in)
	case isFile:
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return "", &exit{code: exitUsage, err: fmt.Errorf("%s: %w", flag, err)}
	}
	if !utf8.Valid(raw) {
		return "", usagef("%s: the text is not UTF-8", flag)
	}
	return string(raw), nil
}

func (a *app) objectOf(flag, s string) (json.RawMessage, error) {
	text, err := a.textOf(flag, s)
	if err != nil {
		return nil, err
	}
	return object(flag, text)
}

func object(what, text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if !json.Valid([]byte(text)) || !strings.HasPrefix(text, "{") {
		return nil, usagef("%s: not a JSON object", what)
	}
	return json.RawMessage(text), nil
}

// inputSchema reads a schema: the name of a file, with or without @, or - for standard input.
func (a *app) inputSchema(s string) (json.RawMessage, error) {
	if s != "-" && !strings.HasPrefix(s, "@") && !strings.HasPrefix(strings.TrimSpace(s), "{") {
		s = "@" + s
	}
	return a.objectOf("--input", s)
}

// filePart is a file to read with the message.
func filePart(file string) (part, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return part{}, &exit{code: exitUsage, err: fmt.Errorf("--context-file: %w", err)}
	}
	meta := map[string]string{"name": filepath.Base(file)}
	if strings.EqualFold(filepath.Ext(file), ".json") {
		if data, err := object("", string(raw)); err == nil {
			return part{Kind: "data", Data: data, Metadata: meta}, nil
		}
	}
	if !utf8.Valid(raw) {
		return part{}, &exit{code: exitUsage, err: errors.New("--context-file: " + file + " is not UTF-8 text")}
	}
	text := string(raw)
	return part{Kind: "text", Text: &text, Metadata: meta}, nil
}
