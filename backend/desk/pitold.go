package desk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"deskbell/backend/inbox"
	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/render"
)

// piTold is what the page tells a session: what somebody wrote, or one of pi's commands.
type piTold struct {
	Text     string  `json:"text"`
	Steer    bool    `json:"steer"` // before what it does next, instead of after it
	Images   []image `json:"images"`
	Type     string  `json:"type"`
	Provider string  `json:"provider"`
	Model    string  `json:"model"`
	Level    string  `json:"level"`
	Name     string  `json:"name"`
	Entry    string  `json:"entry"` // of a fork: the prompt, by pi's own id
	Row      int     `json:"row"`   // or by its row
}

type image struct {
	Mime string `json:"mime"`
	Data string `json:"data"`
}

// command is what pi is told, as it may be told it.
func (t piTold) command(known []pirpc.SlashCommand) (pirpc.Command, error) {
	c, err := t.meant(known)
	var wrong *pirpc.ParamError
	if err != nil || !errors.As(c.Check(), &wrong) {
		return c, err
	}
	at := wrong.Param
	switch {
	case t.Type == "" && at != "images":
		at = "text"
	case at == "modelId": // as pi calls it
		at = "model"
	}
	return c, inbox.Invalid("/"+at, "%s", wrong.Problem)
}

// meant is what the page, which offers no more, asks for.
func (t piTold) meant(known []pirpc.SlashCommand) (pirpc.Command, error) {
	params := map[string]any{}
	switch t.Type {
	case "":
		c, err := pirpc.Typed(t.Text, known)
		if err != nil {
			return c, inbox.Invalid("/text", "%s", err)
		}
		if c.Type != "prompt" {
			return c, nil
		}
		how := "followUp"
		if t.Steer {
			how = "steer"
		}
		c.Params["streamingBehavior"] = how
		if len(t.Images) > 0 {
			var all []pirpc.Image
			for _, i := range t.Images {
				all = append(all, pirpc.Image{Type: "image", Data: i.Data, Mime: i.Mime})
			}
			c.Params["images"] = all
		}
		return c, nil
	case "set_model":
		params["provider"], params["modelId"] = t.Provider, t.Model
	case "set_thinking_level":
		params["level"] = t.Level
	case "set_session_name":
		params["name"] = t.Name
	case "compact", "new_session", "clone", "export_html", "clear_queue", "abort_retry", "abort_bash", "cycle_model", "cycle_thinking_level":
	default:
		return pirpc.Command{}, inbox.Invalid("/type", "%q is nothing that can be told from here", t.Type)
	}
	return pirpc.Command{Type: t.Type, Params: params}, nil
}

func (d *Desk) tellPi(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	told, err := decode[piTold](r)
	if err != nil {
		return err
	}
	now, ok := d.Pi.Current(r.PathValue("id"))
	if !ok {
		return protocol.Errorf(http.StatusConflict, "not_running", "this session does not run now")
	}
	id := r.PathValue("id")
	ctx, cancel := context.WithTimeout(r.Context(), piWait)
	defer cancel()
	c := pirpc.Command{Type: "fork"}
	var result pirpc.Result
	var then string
	if told.Type == "fork" {
		result, then, err = d.Pi.Fork(ctx, id, told.Entry, told.Row)
	} else if c, err = told.command(now.Info.Commands); err == nil {
		if c.Type == "prompt" {
			var looked func()
			ctx, looked = d.untilAsked(ctx, id, len(now.Asks))
			defer looked()
		}
		result, then, err = d.Pi.Send(ctx, id, c)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && r.Context().Err() == nil {
		return protocol.WriteJSON(w, http.StatusAccepted, map[string]any{"type": c.Type, "done": false})
	}
	if err != nil {
		return err
	}
	out := map[string]any{"type": c.Type, "done": true}
	if c.Type == "export_html" {
		out["path"] = shortSpans(result.Field("path"))
	}
	if result.Vetoed() {
		out["vetoed"] = true
	}
	if then != id {
		out["session"] = then
	}
	return protocol.WriteJSON(w, http.StatusOK, out)
}

// untilAsked is ctx until the session asks something more than it does: a command of an extension may end only when that is
// answered, and the page goes on meanwhile. What it returns ends the looking.
func (d *Desk) untilAsked(ctx context.Context, id string, asks int) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		look := time.NewTicker(100 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
			if now, ok := d.Pi.Current(id); ok && len(now.Asks) > asks {
				cancel()
			}
		}
	})
	return ctx, func() {
		cancel()
		looking.Wait()
	}
}

// piForks answers with the prompts at which a session can be forked, the newest first.
func (d *Desk) piForks(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx, cancel := context.WithTimeout(r.Context(), piWait)
	defer cancel()
	forks, err := d.Pi.Forks(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for _, f := range slices.Backward(forks) {
		if len(out) == piRowsPage {
			break
		}
		text, _ := render.Cut(strings.Join(strings.Fields(pirpc.Plain(f.Text)), " "), maxPrompt)
		out = append(out, map[string]any{"entry": f.Entry, "text": shortSpans(text)})
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"forks": out})
}
