package backend

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/delivery"
	"deskbell/backend/desk"
	"deskbell/backend/fleet"
	"deskbell/backend/mapnet"
	"deskbell/backend/protocol/mapv1"
	"deskbell/backend/settings"
	"deskbell/schemas"

	"github.com/coder/websocket"
)

// newMAP opens the network of MAP agents and what answers for it.
func (h *Hub) newMAP(ctx context.Context, set *schemas.Set, isOperator func(string) bool) (*mapv1.Binding, error) {
	net, err := mapnet.Open(ctx, mapnet.Config{
		Store: h.store.Network(), Now: h.now, NewID: newInOrder().next, Enrol: h.enrolMAP, Unwanted: h.unwantedMAP,
		Room: func(ctx context.Context, agent string) (int, error) {
			open, err := h.store.OpenByAgent(ctx)
			return h.settings.Get().Int(settings.InboxDepth) - open[mapv1.PeerID(agent)], err
		},
		Brokered: func() (out []mapnet.Brokered) {
			for _, x := range h.settings.Get().MAPSecrets() {
				out = append(out, mapnet.Brokered(x))
			}
			return out
		},
		MayAsk:   h.mayAskMAP,
		Secret:   func(name string) (string, bool) { return h.secrets.Get(desk.SecretPrefix + name) },
		SystemID: h.systemID,
		Peers: func() (out []string) {
			for _, p := range h.settings.Get().MAPPeers() {
				out = append(out, p.System)
			}
			return out
		},
		PeerID:     mapv1.PeerID,
		Retention:  func() time.Duration { return h.settings.Get().Retention() },
		OnPerson:   func() { h.mapv1.Nudge() },
		OnHanded:   func(item string) { h.mapv1.Handed(item) },
		OnPresence: func(agent string, connected bool) { h.mapv1.Presence(agent, connected) },
		OnChange:   func() { h.desk.Touch(desk.TopicMap) },
		Log:        h.log, Limits: mapnet.DefaultLimits(),
	})
	if err != nil {
		return nil, err
	}
	return mapv1.New(mapv1.Config{
		Net: net, Inbox: h.inbox, Mailbox: h.mailbox, Fleet: h.fleet, Schemas: set, IsOperator: isOperator,
		RequireCredential: func() bool { return h.settings.Get().Bool(settings.MAPCredential) },
		Workspace: func(agent, principal string) (string, bool) {
			list := h.settings.Get().MAPWorkspaces()
			i := slices.IndexFunc(list, func(w settings.MAPWorkspace) bool { return w.Agent == agent })
			if i < 0 {
				i = slices.IndexFunc(list, func(w settings.MAPWorkspace) bool { return w.Agent == principal })
			}
			if i < 0 {
				return "", false
			}
			return list[i].Dir, true
		},
		System: h.systemID, Peers: h.mapPeers, URL: h.URL,
		Dial: func(ctx context.Context, url string) (*websocket.Conn, error) {
			return delivery.DialWebSocket(ctx, url, h.settings.Get().Bool(settings.AllowLoopback))
		},
		RequestsPerMinute: func() int { return h.settings.Get().Int(settings.RequestsPerMinute) },
		Version:           config.Version, Now: h.now, Log: h.log,
	}), nil
}

// holdMAP tells the network which agents the operator stopped: they are no less so for a crash between that and the telling.
func (h *Hub) holdMAP(ctx context.Context) error {
	stops, err := h.store.Stops(ctx)
	if err != nil {
		return err
	}
	var peers []string
	for _, s := range stops {
		peers = append(peers, s.Agent)
	}
	return h.mapv1.Net.Do(ctx, func(tx *mapnet.Tx) error { tx.StopsAre(peers); return nil })
}

// enrolMAP makes an agent of the network known to the fleet, unless the operator wants nothing of it.
func (h *Hub) enrolMAP(ctx context.Context, agent string) error {
	if _, err := h.fleet.Peer(ctx, mapv1.PeerID(agent), mapv1.Name); err != nil {
		return err
	}
	return h.unwantedMAP(ctx, agent)
}

// unwantedMAP says why the operator wants nothing of somebody in the network, or in that of another hub. What was done to it
// under the id that an earlier version gave it holds.
func (h *Hub) unwantedMAP(ctx context.Context, agent string) error {
	for _, id := range []string{mapv1.PeerID(agent), fleet.EarlierPeerID(mapv1.Name, agent)} {
		if err := h.unwantedPeer(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hub) unwantedPeer(ctx context.Context, id string) error {
	a, err := h.store.Agent(ctx, id)
	switch {
	case errors.Is(err, fleet.ErrUnknownAgent):
		return nil
	case err != nil:
		return err
	case !a.RevokedAt.IsZero():
		return errors.New("the operator revoked this agent")
	}
	stopped, err := h.stopped(ctx, id)
	if err == nil && stopped {
		err = errors.New("the operator stopped this agent")
	}
	return err
}

// systemID is the hub's id among hubs: what the operator set, or one made of its signing key.
func (h *Hub) systemID() string {
	if id := h.settings.Get()[settings.MAPSystem].(string); id != "" {
		return id
	}
	sum := sha256.Sum256(h.signer.Public().(ed25519.PublicKey))
	return "hub-" + hex.EncodeToString(sum[:4])
}

// mapPeers are the hubs that messages are routed to, with what proves us there.
func (h *Hub) mapPeers() (out []mapv1.Peer) {
	for _, p := range h.settings.Get().MAPPeers() {
		x := mapv1.Peer{System: p.System, URL: p.URL}
		if p.Secret != "" {
			var ok bool
			x.Token, ok = h.secrets.Get(desk.SecretPrefix + p.Secret)
			x.Unset = !ok
		}
		out = append(out, x)
	}
	return out
}

// mayAskMAP says whether a secret may be asked for by an agent of the network: unless the operator keeps it for others,
// named as in the fleet or by the credential with which they connect.
func (h *Hub) mayAskMAP(agent string, who mapnet.Principal, secret string) bool {
	agents := desk.SecretAgents(h.secrets, secret)
	credential, _ := strings.CutPrefix(who.ID, "agent:")
	return agents == nil || slices.Contains(agents, mapv1.PeerID(agent)) || who.Proved && slices.Contains(agents, credential)
}
