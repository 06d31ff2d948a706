package desk

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
	"deskbell/backend/transcript"
)

// Pi is the sessions of pi that run now, as the page steers them.
type Pi interface {
	// Current returns a session that runs.
	Current(id string) (PiNow, bool)
	// Then is the session that took that one's place, and runs; "" for none.
	Then(id string) string
	// Begin starts a pi, and returns its session's id.
	Begin(ctx context.Context, s PiStart) (string, error)
	// Files are the sessions that pi itself keeps of a folder.
	Files(folder string) ([]PiFile, error)
	// ReadFile reads one of those without a pi, and returns the id of the session that it is.
	ReadFile(ctx context.Context, folder, file string) (string, error)
	// Send tells a session something and returns its answer, and the id of the session that is there then.
	Send(ctx context.Context, id string, c pirpc.Command) (r pirpc.Result, then string, err error)
	// Forks are the prompts at which a session can be forked; Fork forks it at one of them, or at that row.
	Forks(ctx context.Context, id string) ([]pirpc.Fork, error)
	Fork(ctx context.Context, id, entry string, row int) (r pirpc.Result, then string, err error)
	// Stop stops what a session does now; End ends its process.
	Stop(id string) error
	End(id string) error
}

// PiNow is a session as it stands.
type PiNow struct {
	State pirpc.State
	Info  pirpc.Info
	Asks  []PiAsk
	Quiet time.Duration // how long nothing was heard while it was busy
}

// PiAsk is a dialog that waits for the person: the message in the inbox, and the call that asks; "" for none. Leave says that it
// asks leave for the call.
type PiAsk struct {
	Item, Call, Title string
	Leave             bool
}

// PiFile is a session that pi itself keeps.
type PiFile struct {
	Path    string
	ID      string
	Title   string
	Changed time.Time
}

// PiStart says what to start.
type PiStart struct {
	Folder   string   `json:"folder"`
	Model    string   `json:"model"`
	Thinking string   `json:"thinking"`
	Args     []string `json:"args"`
	Gate     bool     `json:"gate"`
	Resume   string   `json:"resume"`
	File     string   `json:"file"`
}

const (
	piName     = "pi"
	piPage     = 60
	piRowsPage = 200
	// piWait is how long the page waits for pi's answer: some come when a person or a model is done.
	piWait = 8 * time.Second
	// piStartWait is how long the page waits for a pi to come up.
	piStartWait = 70 * time.Second
)

type piView struct {
	ID        string        `json:"id"`
	Agent     string        `json:"agent"`
	Title     []render.Span `json:"title"`
	Folder    []render.Span `json:"folder"`
	State     pirpc.State   `json:"state"`
	Waiting   int           `json:"waiting"`
	Model     []render.Span `json:"model"`
	Origin    string        `json:"origin"`
	Args      []string      `json:"args"`
	OpenedAt  int64         `json:"opened_at"`
	LastSeen  int64         `json:"last_seen"`
	EndedAt   int64         `json:"ended_at,omitempty"`
	Ended     []render.Span `json:"ended,omitempty"`
	Rows      int           `json:"rows"`
	Resumable bool          `json:"resumable"`
	Kept      bool          `json:"kept"`
	Then      string        `json:"then,omitempty"` // the session that took its place, while that runs
}

func (d *Desk) viewPi(s transcript.Session) (piView, pirpc.Info, []PiAsk) {
	v := piView{
		ID: s.ID, Agent: s.Agent, Title: shortSpans(s.Title), Folder: shortSpans(s.Folder), State: pirpc.Exited, Origin: s.Origin, Args: list(s.Args),
		OpenedAt: ms(s.OpenedAt), LastSeen: ms(s.LastSeen), EndedAt: ms(s.EndedAt), Rows: s.Rows, Resumable: s.File != "" && !s.EndedAt.IsZero(), Kept: s.File != "",
	}
	var info pirpc.Info
	_ = json.Unmarshal(s.Info, &info) // the hub's own; without it the page says less
	asks := []PiAsk{}
	if now, ok := d.Pi.Current(s.ID); ok {
		v.State, info, asks = now.State, now.Info, now.Asks
		v.Waiting, v.Resumable = len(asks), false
	} else {
		v.Then = d.Pi.Then(s.ID)
	}
	if s.Ended != "" && !s.EndedAt.IsZero() {
		text, _ := render.Cut(s.Ended, maxPrompt)
		v.Ended = render.VisibleLines(text)
	}
	if info.Model.ID != "" {
		v.Model = shortSpans(info.Model.Provider + "/" + info.Model.ID)
	}
	v.Model = list(v.Model)
	return v, info, asks
}

// piSessions answers with sessions, the one seen last first.
func (d *Desk) piSessions(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	before, err := wholeNumber(r.URL.Query().Get("before"), "before", 1, 0)
	if err != nil {
		return err
	}
	var until time.Time
	if before > 0 {
		until = time.UnixMilli(int64(before))
	}
	page, err := d.Transcripts.List(r.Context(), piName, until, piPage)
	if err != nil {
		return err
	}
	views := []piView{}
	for _, s := range page {
		v, _, _ := d.viewPi(s)
		views = append(views, v)
	}
	out := map[string]any{"sessions": views}
	if len(page) == piPage {
		out["next_before"] = ms(page[len(page)-1].LastSeen)
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// piSession answers with one session and what it is doing.
func (d *Desk) piSession(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	s, err := d.Transcripts.Get(r.Context(), piName, r.PathValue("id"))
	if err != nil {
		return err
	}
	v, info, asks := d.viewPi(s)
	now, _ := d.Pi.Current(s.ID)
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"session": v, "info": viewPiInfo(info), "asks": viewPiAsks(asks), "quiet_ms": now.Quiet.Milliseconds()})
}

func viewPiAsks(asks []PiAsk) []map[string]any {
	out := []map[string]any{}
	for _, a := range asks {
		out = append(out, map[string]any{"item": a.Item, "call": a.Call, "title": shortSpans(a.Title), "leave": a.Leave})
	}
	return out
}

func spansOf(texts []string) [][]render.Span {
	out := [][]render.Span{}
	for _, t := range texts {
		out = append(out, shortSpans(pirpc.Plain(t)))
	}
	return out
}

func viewPiInfo(i pirpc.Info) map[string]any {
	statuses, widgets, commands := []map[string]any{}, []map[string]any{}, []map[string]any{}
	for _, s := range i.Statuses {
		statuses = append(statuses, map[string]any{"key": render.Terminal(s.Key), "text": shortSpans(pirpc.Plain(s.Text))})
	}
	for _, w := range i.Widgets {
		widgets = append(widgets, map[string]any{"lines": spansOf(w.Lines), "below": w.Below})
	}
	for _, c := range i.Commands {
		commands = append(commands, map[string]any{"name": render.Terminal(c.Name), "description": shortSpans(c.Description), "source": render.Terminal(c.Source)})
	}
	out := map[string]any{
		"thinking": i.Thinking, "steering": spansOf(i.Steering), "follow_up": spansOf(i.FollowUp), "statuses": statuses, "widgets": widgets, "commands": commands, "models": viewPiModels(i.Models), "levels": list(i.Levels),
		"provider": i.Model.Provider, "model": i.Model.ID, "reasoning": i.Model.Reasoning,
		"images": i.Model.Images, "prefill": pirpc.Plain(i.Prefill), "retry": nil, "context": i.Context, "total": i.Total,
	}
	if i.Retry != nil {
		out["retry"] = map[string]any{"attempt": i.Retry.Attempt, "most": i.Retry.Most, "delay_ms": i.Retry.DelayMs, "error": shortSpans(pirpc.Plain(i.Retry.Error))}
	}
	return out
}

func viewPiModels(models []pirpc.Model) []map[string]any {
	out := []map[string]any{}
	for _, m := range models {
		out = append(out, map[string]any{"provider": m.Provider, "id": m.ID, "name": render.Terminal(m.Name), "images": m.Images, "reasoning": m.Reasoning})
	}
	return out
}

// piFiles answers with the sessions that pi itself keeps of a folder.
func (d *Desk) piFiles(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	files, err := d.Pi.Files(r.URL.Query().Get("folder"))
	if err != nil {
		return inbox.Invalid("/folder", "pi's sessions of this folder cannot be read")
	}
	out := []map[string]any{}
	for _, f := range files {
		out = append(out, map[string]any{"path": f.Path, "id": f.ID, "title": shortSpans(f.Title), "changed": ms(f.Changed)})
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"files": out})
}

// readPiFile takes what pi itself keeps of a session over, to be read.
func (d *Desk) readPiFile(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	f, err := decode[struct {
		Folder string `json:"folder"`
		File   string `json:"file"`
	}](r)
	if err != nil {
		return err
	}
	id, err := d.Pi.ReadFile(r.Context(), f.Folder, f.File)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusCreated, map[string]any{"id": id})
}

func (d *Desk) startPi(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	s, err := decode[PiStart](r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), piStartWait)
	defer cancel()
	id, err := d.Pi.Begin(ctx, s)
	if err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusCreated, map[string]any{"id": id})
}

// piModels answers with the models that the pi that was seen last can use.
func (d *Desk) piModels(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	page, err := d.Transcripts.List(r.Context(), piName, time.Time{}, piPage)
	if err != nil {
		return err
	}
	for _, s := range page {
		if _, info, _ := d.viewPi(s); len(info.Models) > 0 {
			return protocol.WriteJSON(w, http.StatusOK, map[string]any{"models": viewPiModels(info.Models)})
		}
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"models": []any{}})
}

func (d *Desk) stopPi(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if err := d.Pi.Stop(r.PathValue("id")); err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"id": r.PathValue("id")})
}

func (d *Desk) endPi(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	if err := d.Pi.End(r.PathValue("id")); err != nil {
		return err
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"id": r.PathValue("id")})
}
