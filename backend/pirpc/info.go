package pirpc

import "slices"

// The bounds of what extensions may keep on the page.
const (
	maxKeys        = 50
	maxWidgetLines = 200
	maxQueue       = 200
	maxList        = 1000
)

// Info is what is known of a session besides its rows. Text in it is pi's and its extensions'.
type Info struct {
	SessionID   string `json:"session_id"`
	SessionFile string `json:"session_file"`
	Name        string `json:"name"`  // as the person named it
	Title       string `json:"title"` // as an extension did
	FirstPrompt string `json:"first_prompt"`
	LastPrompt  string `json:"-"`

	Model          Model  `json:"model"`
	Thinking       string `json:"thinking"`
	SteeringMode   string `json:"steering_mode"`
	FollowUpMode   string `json:"follow_up_mode"`
	AutoCompaction bool   `json:"auto_compaction"`

	Steering []string `json:"steering"` // told while it worked, and not yet handed over
	FollowUp []string `json:"follow_up"`

	Retry   *Retry   `json:"retry,omitempty"`
	Context *Context `json:"context,omitempty"`
	Total   *Usage   `json:"total,omitempty"`

	Statuses []Keyed        `json:"statuses"`
	Widgets  []Widget       `json:"widgets"`
	Prefill  string         `json:"prefill"` // offered for the composer, never put over what somebody writes
	Commands []SlashCommand `json:"commands"`
	Models   []Model        `json:"models"`
	Levels   []string       `json:"levels"`
}

// Clone is a copy that nothing changes any more.
func (i Info) Clone() Info {
	i.Steering, i.FollowUp, i.Statuses, i.Widgets = slices.Clone(i.Steering), slices.Clone(i.FollowUp), slices.Clone(i.Statuses), slices.Clone(i.Widgets)
	i.Commands, i.Models, i.Levels = slices.Clone(i.Commands), slices.Clone(i.Models), slices.Clone(i.Levels)
	return i
}

// Model is one that pi can use.
type Model struct {
	Provider  string `json:"provider"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Reasoning bool   `json:"reasoning"`
	Images    bool   `json:"images"`
	Window    int    `json:"window"` // tokens
}

// Retry is an attempt that waits for its time.
type Retry struct {
	Attempt int    `json:"attempt"`
	Most    int    `json:"most"`
	DelayMs int    `json:"delay_ms"`
	Error   string `json:"error"`
}

// Context is how full the model's context is. Tokens and Percent are -1 where pi does not know.
type Context struct {
	Tokens  int     `json:"tokens"`
	Window  int     `json:"window"`
	Percent float64 `json:"percent"`
}

// Keyed is a line of status.
type Keyed struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Widget is lines that an extension shows beside the composer.
type Widget struct {
	Key   string   `json:"key"`
	Lines []string `json:"lines"`
	Below bool     `json:"below,omitempty"`
}

// SlashCommand is one that pi takes in a prompt.
type SlashCommand struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"` // extension, prompt, skill
}

// state takes over what get_state says.
func (i *Info) state(f fields) {
	if f == nil {
		return
	}
	i.SessionID, i.SessionFile, i.Name = clip(f.text("sessionId", "session_id"), maxLabel), clip(f.text("sessionFile", "session_file"), maxLabel), clip(f.text("sessionName", "session_name"), maxLabel)
	if m := f.object("model"); m != nil {
		i.Model = model(m)
	}
	i.Thinking, i.SteeringMode, i.FollowUpMode = clip(f.text("thinkingLevel"), 100), clip(f.text("steeringMode"), 100), clip(f.text("followUpMode"), 100)
	i.AutoCompaction = f.bool("autoCompactionEnabled")
}

// stats takes over what get_session_stats says.
func (i *Info) stats(f fields) {
	if t := f.object("tokens"); t != nil {
		if u := usage(t); u != nil {
			u.Cost = f.num("cost")
			i.Total = u
		}
	}
	if c := f.object("contextUsage"); c != nil {
		i.Context = &Context{-1, c.int("contextWindow"), -1}
		if c.has("tokens") {
			i.Context.Tokens = c.int("tokens")
		}
		if c.has("percent") {
			i.Context.Percent = c.num("percent")
		}
	}
}

// model reads a model. Where it is reached, and with what headers, may be private and is not read.
func model(f fields) Model {
	m := Model{Provider: clip(f.text("provider"), 200), ID: clip(f.text("id"), 200), Name: clip(f.text("name"), 200), Reasoning: f.bool("reasoning"), Window: f.int("contextWindow")}
	for _, in := range f.array("input") {
		m.Images = m.Images || str(in) == "image"
	}
	return m
}

func models(f fields) []Model {
	out := []Model{}
	for _, raw := range f.array("models") {
		if len(out) == maxList {
			break
		}
		if m := object(raw); m != nil {
			out = append(out, model(m))
		}
	}
	return out
}

func slashCommands(f fields) []SlashCommand {
	out := []SlashCommand{}
	for _, raw := range f.array("commands") {
		if len(out) == maxList {
			break
		}
		c := object(raw)
		if name := c.text("name"); name != "" {
			out = append(out, SlashCommand{clip(name, 200), clip(c.text("description"), maxLabel), clip(c.text("source"), 100)})
		}
	}
	return out
}

// setStatus sets or clears one status.
func (i *Info) setStatus(key, text string, set bool) {
	for n := range i.Statuses {
		if i.Statuses[n].Key == key {
			if set {
				i.Statuses[n].Text = text
			} else {
				i.Statuses = append(i.Statuses[:n:n], i.Statuses[n+1:]...)
			}
			return
		}
	}
	if set && len(i.Statuses) < maxKeys {
		i.Statuses = append(i.Statuses, Keyed{key, text})
	}
}

// setWidget sets or removes one widget.
func (i *Info) setWidget(w Widget) {
	size := 0
	for n, l := range w.Lines {
		if size += len(l); n == maxWidgetLines || size > maxText/4 {
			w.Lines = w.Lines[:n]
			break
		}
	}
	for n := range i.Widgets {
		if i.Widgets[n].Key == w.Key {
			if w.Lines != nil {
				i.Widgets[n] = w
			} else {
				i.Widgets = append(i.Widgets[:n:n], i.Widgets[n+1:]...)
			}
			return
		}
	}
	if w.Lines != nil && len(i.Widgets) < maxKeys {
		i.Widgets = append(i.Widgets, w)
	}
}
