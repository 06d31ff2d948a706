package mapnet

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Brokered is a secret of the operator's that an agent may ask for. Its value is never part of the network.
type Brokered struct {
	Scope  string // as agents ask for it
	Secret string // the secret's name
	Type   string // bearer_token, api_key, aws_credentials
}

// Grant is what the person decided about an agent's wish for a credential.
type Grant struct {
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Principal string `json:"principal"` // who asked by that name
	Scope     string `json:"scope"`
	Resource  string `json:"resource"`
	Secret    string `json:"secret"` // its name
	Type      string `json:"type"`
	Item      string `json:"item"` // of the person's inbox, by which it was decided
	By        string `json:"by"`
	At        int64  `json:"at"`
	ExpiresAt int64  `json:"expiresAt"`
	Once      bool   `json:"once,omitempty"`
	Refused   bool   `json:"refused,omitempty"` // and not asked again before it ends
	Uses      int    `json:"uses,omitempty"`
	UsedAt    int64  `json:"usedAt,omitempty"`
}

// CredentialQuery is an agent's wish for a credential.
type CredentialQuery struct {
	Scope    string `json:"scope"`
	Resource string `json:"resource"`
	Meta     struct {
		Reason string `json:"reason"`
		WaitMS *int64 `json:"waitMs"`
	} `json:"_meta"`
}

// Wish is such a wish as the person is asked about it.
type Wish struct {
	Brokered
	Resource  string `json:"resource"`
	Reason    string `json:"reason,omitempty"`
	Principal string `json:"principal"`
	Proved    bool   `json:"proved,omitempty"`
}

// How long the person is asked, how long a refusal stands, and how long what they allow holds, by their answer.
const (
	askTime    = time.Hour
	refuseTime = 10 * time.Minute
)

var grantTimes = map[string]time.Duration{"once": time.Hour, "hour": time.Hour, "day": 24 * time.Hour}

func credentialRefused(code int, reason, format string, args ...any) *Error {
	e := refuse(code, format, args...)
	e.Details = map[string]any{"reason": reason}
	return e
}

func (q CredentialQuery) check() error {
	for pointer, text := range map[string]string{"/scope": q.Scope, "/resource": q.Resource, "/_meta/reason": q.Meta.Reason} {
		switch {
		case len(text) > 500:
			return badParam(pointer, "must be at most 500 bytes")
		case strings.ContainsFunc(text, unicode.IsControl):
			return badParam(pointer, "must not contain control characters")
		case strings.TrimSpace(text) == "" && pointer != "/_meta/reason":
			return badParam(pointer, "must not be empty")
		}
	}
	return nil
}

// asker is the agent that a participant asks for credentials as.
func (t *Tx) asker(p *participant) (string, error) {
	if len(t.n.Brokered()) == 0 {
		return "", refuse(CodeNoCredentials, "Credentials are not enabled")
	}
	a := t.st.agents[p.Agent]
	if a == nil {
		return "", denied("credentials are for agents: register one first")
	}
	if a.Agent.State == "stopped" || a.Agent.State == "failed" {
		return "", refuse(CodeTerminated, "Cannot hand a credential to agent in state: %s", a.Agent.State)
	}
	return p.Agent, nil
}

// brokered are the secrets that the agent may ask for.
func (t *Tx) brokered(agent string, who Principal) []Brokered {
	return slices.DeleteFunc(slices.Clone(t.n.Brokered()), func(b Brokered) bool { return !t.n.MayAsk(agent, who, b.Secret) })
}

// Credential hands an agent the credential that it wishes for, if the person has granted it. If not, it asks them, unless
// last is set; decided is then closed as they answer.
func (t *Tx) Credential(s *Session, q CredentialQuery, last bool) (out map[string]any, decided <-chan struct{}, err error) {
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	agent, err := t.asker(s.p)
	if err != nil {
		return nil, nil, err
	}
	who := s.p.Principal
	all := t.brokered(agent, who)
	i := slices.IndexFunc(all, func(b Brokered) bool { return b.Scope == q.Scope })
	if i < 0 {
		return nil, nil, credentialRefused(CodeScopeDenied, "unknown_scope", "Scope denied: %s", q.Scope)
	}
	wish := Wish{Brokered: all[i], Resource: q.Resource, Reason: q.Meta.Reason, Principal: who.ID, Proved: who.Proved}
	if _, ok := t.n.Secret(wish.Secret); !ok {
		return nil, nil, credentialRefused(CodeNoProvider, "no_secret", "Credential provider unavailable: the operator has not set the secret")
	}
	if g := t.granted(agent, wish); g != nil {
		if g.Refused {
			e := credentialRefused(CodeScopeDenied, "refused", "Scope denied: the person refused it")
			e.RetryAfter = time.Duration(g.ExpiresAt-t.now) * time.Millisecond
			return nil, nil, e
		}
		out, err = t.handOver(g)
		return out, nil, err
	}
	ask := t.wished(agent, wish)
	if ask == nil && last {
		return nil, nil, credentialRefused(CodeCredentialFailed, "unanswered", "Credential request failed: nobody answered in time, or it was granted once and handed over to another request")
	}
	if ask == nil {
		if err := t.admit(s.p, agent, 0, Raw(`{"expectsResponse":true}`)); err != nil {
			return nil, nil, err
		}
		ask = &Pending{ID: "credential-" + t.n.NewID(), Kind: "credential", From: agent, At: t.now, Asks: true, Wish: &wish, ExpiresAt: t.now + askTime.Milliseconds()}
		t.wait(ask)
		t.note("agent:"+t.n.PeerID(agent), "credential asked", wish.target(""))
	}
	if last {
		e := credentialRefused(CodeNoProvider, "waiting_for_person", "Credential provider unavailable: the person has not answered yet")
		e.RetryAfter = 5 * time.Second
		return nil, nil, e
	}
	if t.st.decided[ask.ID] == nil {
		t.st.decided[ask.ID] = make(chan struct{})
	}
	return nil, t.st.decided[ask.ID], nil
}

func (w Wish) target(agent string) string {
	text := w.Scope + " on " + w.Resource + " (secret " + w.Secret + ")"
	if agent != "" {
		text += " for " + agent
	}
	return text
}

func (g *Grant) wish() Wish {
	return Wish{Brokered: Brokered{g.Scope, g.Secret, g.Type}, Resource: g.Resource, Principal: g.Principal}
}

// granted is what the person has decided about a wish, as long as it holds.
func (t *Tx) granted(agent string, w Wish) *Grant {
	var found *Grant
	for _, g := range t.st.grants {
		if g.Agent == agent && g.wish() == (Wish{Brokered: w.Brokered, Resource: w.Resource, Principal: w.Principal}) && g.ExpiresAt > t.now && (found == nil || g.ID > found.ID) {
			found = g
		}
	}
	return found
}

// wished is the question by which the person is asked about a wish already.
func (t *Tx) wished(agent string, w Wish) *Pending {
	same := func(x *Pending) bool {
		return x.Kind == "credential" && x.From == agent && x.Wish.Brokered == w.Brokered && x.Wish.Resource == w.Resource && x.Wish.Principal == w.Principal
	}
	for _, x := range t.st.pending {
		if same(x) {
			return x
		}
	}
	for _, a := range t.st.asked {
		if same(&a.Pending) {
			return &a.Pending
		}
	}
	return nil
}

// handOver makes the answer that has the secret in it, notes that it was handed over, and uses the grant.
func (t *Tx) handOver(g *Grant) (map[string]any, error) {
	value, ok := t.n.Secret(g.Secret)
	if !ok {
		return nil, credentialRefused(CodeNoProvider, "no_secret", "Credential provider unavailable: the operator has not set the secret")
	}
	out := map[string]any{"credentialType": g.Type}
	switch g.Type {
	case "aws_credentials":
		var object map[string]Raw
		if json.Unmarshal([]byte(value), &object) != nil || object == nil {
			return nil, credentialRefused(CodeCredentialFailed, "malformed_secret", "Credential request failed: the operator's secret is no JSON object")
		}
		out["credential"] = object
	case "api_key":
		out["credential"] = map[string]string{"key": value}
	default:
		out["credential"] = map[string]string{"token": value}
	}
	if !g.Once {
		out["expiresAt"] = time.UnixMilli(g.ExpiresAt).UTC().Format(time.RFC3339)
	}
	g.Uses++
	g.UsedAt = t.now
	t.put(kindGrant, g.ID, g)
	if g.Once {
		t.endGrant(g)
	}
	t.note("agent:"+t.n.PeerID(g.Agent), "credential handed over", g.wish().target(""))
	t.emit(Event{Type: "credential.issued", Source: g.Agent}, map[string]any{"agentId": g.Agent, "scope": g.Scope, "resource": g.Resource}, Audience{Names: []string{g.Agent}})
	item := g.Item
	t.after(func() { t.n.OnHanded(item) })
	return out, nil
}

// decide keeps the person's answer to a wish; value is "once", "hour", "day", or a refusal, "" that nobody answered.
func (t *Tx) decide(item string, x Pending, payload Raw) {
	t.answeredWish(x.ID)
	if payload == nil {
		t.note(System, "credential not granted", x.Wish.target(t.n.PeerID(x.From)))
		return
	}
	var said struct {
		Value string `json:"value"`
		By    string `json:"by"`
	}
	_ = json.Unmarshal(payload, &said) // a declined question has no value
	g := &Grant{ID: "grant-" + t.n.NewID(), Agent: x.From, Principal: x.Wish.Principal, Scope: x.Wish.Scope, Resource: x.Wish.Resource, Secret: x.Wish.Secret, Type: x.Wish.Type,
		Item: item, By: said.By, At: t.now}
	if keep, ok := grantTimes[said.Value]; ok {
		g.ExpiresAt, g.Once = t.now+keep.Milliseconds(), said.Value == "once"
		t.note(said.By, "credential granted: "+said.Value, x.Wish.target(t.n.PeerID(x.From)))
	} else {
		g.ExpiresAt, g.Refused = t.now+refuseTime.Milliseconds(), true
		t.note(said.By, "credential refused", x.Wish.target(t.n.PeerID(x.From)))
		t.emit(Event{Type: "credential.denied", Source: x.From}, map[string]any{"agentId": x.From, "scope": g.Scope, "resource": g.Resource}, Audience{Names: []string{x.From}})
	}
	t.st.grants[g.ID] = g
	t.put(kindGrant, g.ID, g)
}

// answeredWish lets those go on who wait for an answer to a wish.
func (t *Tx) answeredWish(id string) {
	if c := t.st.decided[id]; c != nil {
		delete(t.st.decided, id)
		t.after(func() { close(c) })
	}
}

func (t *Tx) endGrant(g *Grant) {
	delete(t.st.grants, g.ID)
	t.drop(kindGrant, g.ID)
}

// endGrants ends all grants that are so.
func (t *Tx) endGrants(so func(*Grant) bool, why string) {
	for _, g := range t.st.grants {
		if so(g) {
			t.endGrant(g)
			if !g.Refused {
				t.note(System, "credential grant ended: "+why, g.wish().target(t.n.PeerID(g.Agent)))
			}
		}
	}
}

// dueGrants ends the grants whose time is over.
func (t *Tx) dueGrants() {
	t.endGrants(func(g *Grant) bool { return g.ExpiresAt <= t.now }, "expired")
}

// Grants are the grants that hold, oldest first.
func (t *Tx) Grants() []Grant {
	out := []Grant{}
	for _, g := range t.st.grants {
		if !g.Refused && g.ExpiresAt > t.now {
			out = append(out, *g)
		}
	}
	slices.SortFunc(out, func(a, b Grant) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// RevokeGrant ends a grant because the operator says so, and says whether there was one.
func (t *Tx) RevokeGrant(id, by string) bool {
	g := t.st.grants[id]
	if g == nil || g.Refused {
		return false
	}
	t.endGrant(g)
	t.note(by, "credential grant revoked", g.wish().target(t.n.PeerID(g.Agent)))
	return true
}

// ListCredentials answers cred/list.
func (t *Tx) ListCredentials(s *Session) (map[string]any, error) {
	agent, err := t.asker(s.p)
	if err != nil {
		return nil, err
	}
	scopes, grants := []string{}, []map[string]any{}
	for _, b := range t.brokered(agent, s.p.Principal) {
		scopes = append(scopes, b.Scope)
	}
	for _, g := range t.Grants() {
		if g.Agent == agent && g.Principal == s.p.Principal.ID {
			grants = append(grants, map[string]any{"scope": g.Scope, "resource": g.Resource, "once": g.Once, "expiresAt": time.UnixMilli(g.ExpiresAt).UTC().Format(time.RFC3339)})
		}
	}
	return map[string]any{"agentId": agent, "scopes": scopes, "constraints": map[string]any{"approval": "person", "grants": grants}}, nil
}

// CredentialStatus answers cred/status.
func (t *Tx) CredentialStatus() (map[string]any, error) {
	if len(t.n.Brokered()) == 0 {
		return nil, refuse(CodeNoCredentials, "Credentials are not enabled")
	}
	return map[string]any{"providers": []string{"deskbell"}}, nil
}
