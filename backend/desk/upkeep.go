package desk

import (
	"bytes"
	"errors"
	"net/http"
	"path/filepath"

	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
)

func (d *Desk) auditLines(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	lines, err := d.Store.AuditLines(r.Context(), 500)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	for _, l := range lines {
		out = append(out, map[string]any{"at": ms(l.At), "actor": l.Actor, "action": l.Action, "target": l.Target, "result": l.Result})
	}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"lines": out})
}

// health is what `deskbell doctor` asks of a hub that runs.
func (d *Desk) health(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	ctx := r.Context()
	// A damaged database must not keep the hub from saying so: what cannot be read is a problem found, not a failure.
	problems, err := d.Store.Check(ctx)
	note := func(what string, err error) {
		if err != nil {
			problems = append(problems, what+": "+err.Error())
		}
	}
	note("check", err)
	schema, err := d.Store.Schema(ctx)
	note("schema", err)
	owed, err := d.Store.OwedCounts(ctx)
	note("pushes", err)
	counts, err := d.Store.Counts(ctx)
	note("messages", err)
	hosts, err := d.Store.HostsAwaiting(ctx)
	note("hosts", err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	unsigned, err := d.Fleet.WithoutSecret(ctx)
	note("signing secrets", err)
	available, reason := d.Notifications()
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{
		"without_secret": append([]string{}, unsigned...),
		"version":        d.Version, "data": d.DataDir, "url": d.URL(), "dev": d.Dev, "now": ms(d.Now()),
		"database": map[string]any{"schema": schema, "problems": append([]string{}, problems...)},
		"pushes":   owed, "hosts_awaiting_approval": hosts,
		"items":         map[string]int{"needs": counts.Needs, "waiting": counts.Waiting, "notices": counts.Notices, "done": counts.Done},
		"notifications": map[string]any{"available": available, "reason": reason},
		"secrets":       d.Secrets.Names(SecretPrefix),
		"broken_chains": d.Guardian.Broken(),
	})
}

func (d *Desk) backup(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	body, err := decode[struct {
		Path string `json:"path"`
	}](r)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(body.Path) {
		return inbox.Invalid("/path", "must be an absolute path")
	}
	if err := d.Store.Backup(r.Context(), body.Path); err != nil {
		return &protocol.Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: err.Error(),
			Details: []inbox.FieldError{{Pointer: "/path", Message: err.Error()}}}
	}
	return protocol.WriteJSON(w, http.StatusCreated, map[string]string{"path": body.Path})
}

// export streams every message with its history, a line each.
func (d *Desk) export(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	w.Header().Set("Content-Type", "application/jsonl")
	err := d.Store.Each(r.Context(), func(it inbox.Item, history []inbox.Entry) error {
		line, err := d.Export(it, history)
		if err != nil {
			return err
		}
		_, err = w.Write(append(bytes.ReplaceAll(line, []byte("\n"), nil), '\n'))
		return err
	})
	if err != nil && !errors.Is(err, r.Context().Err()) {
		// The status is sent: all that is left is to break off, so that a part is not taken for the whole.
		panic(http.ErrAbortHandler)
	}
	return nil
}
