package desk

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/settings"
)

func (d *Desk) getSettings(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
	return protocol.WriteJSON(w, http.StatusOK, d.Settings.Get())
}

func (d *Desk) patchSettings(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	patch, err := decode[map[string]json.RawMessage](r)
	if err != nil {
		return err
	}
	before := d.Settings.Get().Operator()
	if err := d.Settings.Patch(r.Context(), patch); err != nil {
		return err
	}
	if d.Settings.Get().Operator() != before {
		if err := d.Inbox.Reclassify(r.Context(), ""); err != nil {
			return err
		}
	}
	if _, retention := patch[settings.RetentionDays]; retention {
		if err := d.Inbox.Retain(r.Context()); err != nil {
			return err
		}
	}
	if _, loopback := patch[settings.AllowLoopback]; loopback {
		d.Queue.Wake()
	}
	if _, credential := patch[settings.MAPCredential]; credential {
		d.OnCredential()
	}
	d.Touch(TopicSettings)
	return d.getSettings(w, r, protocol.Caller{})
}

// Where the operator's named secrets are kept among all, and which agents each is for.
const (
	SecretPrefix      = "secret:"
	secretAgentPrefix = "secret-for:"
)

// SecretAgents returns the agents that a named secret is kept for; nil: for all of them.
func SecretAgents(s interface{ Get(string) (string, bool) }, name string) []string {
	list, ok := s.Get(secretAgentPrefix + name)
	if !ok {
		return nil
	}
	return strings.Split(list, "\n")
}

var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (d *Desk) listSecrets(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{"names": d.Secrets.Names(SecretPrefix)})
}

func (d *Desk) setSecret(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	name := r.PathValue("name")
	if !secretName.MatchString(name) {
		return inbox.Invalid("/name", "must be 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit")
	}
	body, err := decode[struct {
		Value  string    `json:"value"`
		Agents *[]string `json:"agents"` // empty: any agent's callback may name it; absent: as before
	}](r)
	if err != nil {
		return err
	}
	var agents []string
	if body.Agents != nil {
		agents = *body.Agents
	}
	for _, id := range agents {
		if err := fleet.CheckID(id); err != nil {
			return inbox.Invalid("/agents", "%q is not an agent id", id)
		}
	}
	switch {
	case body.Value == "":
		return inbox.Invalid("/value", "must not be empty")
	case len(body.Value) > 4096 || strings.ContainsAny(body.Value, "\r\n\x00"):
		return inbox.Invalid("/value", "must be one line of at most 4096 bytes")
	}
	// In the order in which no value is ever open to more agents than it should be.
	if len(agents) > 0 {
		if err = d.Secrets.Set(secretAgentPrefix+name, strings.Join(agents, "\n")); err == nil {
			err = d.Secrets.Set(SecretPrefix+name, body.Value)
		}
	} else if err = d.Secrets.Set(SecretPrefix+name, body.Value); err == nil && body.Agents != nil {
		err = d.Secrets.Delete(secretAgentPrefix + name)
	}
	if err != nil {
		return err
	}
	if err := d.Fleet.Note(r.Context(), "secret set", name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Desk) removeSecret(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	name := r.PathValue("name")
	if !slices.Contains(d.Secrets.Names(SecretPrefix), name) {
		return protocol.Errorf(http.StatusNotFound, "not_found", "there is no secret of that name")
	}
	if err := errors.Join(d.Secrets.Delete(SecretPrefix+name), d.Secrets.Delete(secretAgentPrefix+name)); err != nil {
		return err
	}
	if err := d.Fleet.Note(r.Context(), "secret removed", name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
