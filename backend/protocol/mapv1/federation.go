package mapv1

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"deskbell/backend/fleet"
	"deskbell/backend/mapnet"
	"deskbell/backend/wire"
)

// maxHops is how many hubs a message may pass, whatever it says itself.
const maxHops = 10

// federation is what an envelope says of a message's way.
type federation struct {
	Source      string   `json:"sourceSystem"`
	Target      string   `json:"targetSystem"`
	Hops        int      `json:"hopCount"`
	Max         int      `json:"maxHops,omitempty"`
	Path        []string `json:"path"`
	Origin      int64    `json:"originTimestamp,omitempty"`
	Correlation string   `json:"correlationId,omitempty"`
}

// check refuses what goes round in circles or has come too far.
func (f federation) check(own string) error {
	most := maxHops
	if f.Max > 0 && f.Max < most {
		most = f.Max
	}
	if f.Hops < 0 || f.Hops >= most || len(f.Path) >= maxHops {
		return federationError(mapnet.CodeMaxHops, "max_hops", "Max hops exceeded")
	}
	if slices.Contains(f.Path, own) {
		return federationError(mapnet.CodeLoop, "loop", "Federation loop detected")
	}
	return nil
}

func (b *Binding) peerOf(system string) (Peer, bool) {
	list := b.Peers()
	i := slices.IndexFunc(list, func(p Peer) bool { return p.System == system })
	if i < 0 {
		return Peer{}, false
	}
	return list[i], true
}

// federate answers map/federation/connect: the connection is another hub's from now on, if it holds the credential of that
// name here and the operator lists it. Whatever endpoint it names is not connected to: the operator says where hubs are.
func (c *conn) federate(ctx context.Context, q call) error {
	p, err := decode[struct {
		System string `json:"systemId"`
		Auth   struct {
			Method      string `json:"method"`
			Credentials string `json:"credentials"`
		} `json:"auth"`
	}](q.params)
	if err != nil {
		return err
	}
	if len(c.b.Peers()) == 0 {
		return federationError(mapnet.CodeFederationOff, "not_enabled", "Federation is not enabled")
	}
	who := c.who
	if p.Auth.Credentials != "" {
		who, err = c.b.prove(ctx, credential{Method: p.Auth.Method, Token: p.Auth.Credentials})
		switch {
		case errors.Is(err, errMethod), errors.Is(err, errNothing), errors.Is(err, fleet.ErrUnknownToken):
			who = mapnet.Principal{}
		case err != nil:
			return err
		}
	}
	if !who.Proved {
		c.ws.Send(result(q.id, map[string]any{"connected": false, "systemInfo": c.b.info(),
			"authRequired": map[string]any{"methods": []string{"bearer", "api-key"}, "challenge": "map_chal_" + ulid.Make().String(), "required": true}}))
		return nil
	}
	name, _ := strings.CutPrefix(who.ID, "agent:")
	if _, listed := c.b.peerOf(name); !listed || p.System != name && p.System != c.b.System() { // published gateways name the system that they connect to
		return federationError(mapnet.CodeRouteRejected, "not_listed", "Federation route rejected: the operator does not list this system, or the credential is another one's")
	}
	s := c.session
	return c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		if err := entitled(tx, s, "federation.canFederate"); err != nil {
			return err
		}
		if c.system == "" {
			tx.PeerEvent(name, "connected")
		}
		c.system = name
		tx.Send(c, result(q.id, map[string]any{"connected": true, "sessionId": s.ID(), "principal": map[string]any{"id": who.ID, "issuer": c.b.System(), "claims": map[string]any{}},
			"systemInfo": map[string]any{"name": c.b.System(), "version": c.b.Version}}))
		return nil
	})
}

// routed is what map/federation/route asks.
type routed struct {
	System   string          `json:"systemId"`
	Message  *mapnet.Message `json:"message"`
	Envelope *struct {
		Payload    *mapnet.Message `json:"payload"`
		Federation federation      `json:"federation"`
	} `json:"envelope"`
}

// route answers map/federation/route: of another hub, a message for an agent here or one for a hub further on; of a
// participant, a message of its own for another hub.
func (c *conn) route(ctx context.Context, q call) error {
	p, err := decode[routed](q.params)
	if err != nil {
		return err
	}
	var way federation
	if p.Envelope != nil {
		way = p.Envelope.Federation
		if p.Message == nil {
			p.Message = p.Envelope.Payload
		}
	}
	own := c.b.System()
	if err := way.check(own); err != nil {
		return err
	}
	if p.Message == nil || len(p.Message.To) == 0 {
		return &mapnet.Error{Code: mapnet.CodeInvalidParams, Message: "params/message: must be there, with the address of its recipient", Details: map[string]any{"pointer": "/params/message"}}
	}
	here := p.System == own
	if c.system != "" {
		if err := c.trusted(ctx); err != nil {
			return err
		}
		if err := c.traced(&way); err != nil {
			return err
		}
		if here {
			return c.tx(ctx, q, "federation.canFederate", func(tx *mapnet.Tx, s *mapnet.Session) (map[string]any, error) {
				return tx.Incoming(s, way.Source, *p.Message)
			})
		}
		next, ok := c.b.peerOf(p.System)
		if !ok {
			return federationError(mapnet.CodeSystemNotFound, "unknown_system", "System not found: %s", p.System)
		}
		return c.aside(ctx, q, func(ctx context.Context, s *mapnet.Session) error {
			out, err := c.b.pass(ctx, next, *p.Message, way)
			if err == nil {
				c.ws.Send(result(q.id, out))
			}
			return err
		})
	}
	if here {
		return c.tx(ctx, q, "messaging.canSend", func(tx *mapnet.Tx, s *mapnet.Session) (map[string]any, error) {
			out, _, err := tx.SendMessage(s, mapnet.Send{To: p.Message.To, Payload: p.Message.Payload, Meta: p.Message.Meta})
			if err == nil {
				out = map[string]any{"routed": true, "messageId": out["messageId"]}
			}
			return out, err
		})
	}
	next, ok := c.b.peerOf(p.System)
	if !ok {
		return federationError(mapnet.CodeSystemNotFound, "unknown_system", "System not found: %s", p.System)
	}
	return c.originate(ctx, q, next, mapnet.Remote{System: p.System}, *p.Message, func(msg mapnet.Message) map[string]any {
		return map[string]any{"routed": true, "messageId": msg.ID}
	})
}

// trusted says whether the operator still trusts the hub that this connection is of.
func (c *conn) trusted(ctx context.Context) error {
	a, err := c.b.Fleet.Store.Agent(ctx, c.system)
	if err != nil && !errors.Is(err, fleet.ErrUnknownAgent) {
		return err
	}
	if _, listed := c.b.peerOf(c.system); err != nil || !a.RevokedAt.IsZero() || !listed {
		return federationError(mapnet.CodeRouteRejected, "not_listed", "Federation route rejected: the operator trusts %s no more", c.system)
	}
	return nil
}

// traced holds what another hub says of a message's way against what the operator says: it begins there, or at a hub that
// is reached by the same way.
func (c *conn) traced(way *federation) error {
	if way.Source == "" {
		way.Source = c.system
	}
	if len(way.Path) == 0 {
		way.Path = []string{c.system}
	}
	if way.Path[len(way.Path)-1] != c.system {
		return federationError(mapnet.CodeRouteRejected, "bad_path", "Federation route rejected: the path does not end at the system that routes")
	}
	if way.Source == c.system {
		return nil
	}
	through, ok := c.b.peerOf(c.system)
	source, listed := c.b.peerOf(way.Source)
	if !ok || !listed || source.URL != through.URL || way.Path[0] != way.Source {
		return federationError(mapnet.CodeRouteRejected, "bad_source", "Federation route rejected: %s does not speak for %s", c.system, way.Source)
	}
	return nil
}

// tx does an act for a request and answers it.
func (c *conn) tx(ctx context.Context, q call, needs string, do func(*mapnet.Tx, *mapnet.Session) (map[string]any, error)) error {
	s := c.session
	return c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		if err := entitled(tx, s, needs); err != nil {
			return err
		}
		out, err := do(tx, s)
		if err == nil {
			tx.Send(c, result(q.id, out))
		}
		return err
	})
}

// originate sends a participant's own message to another hub and answers when that hub has it. to.Agent is empty where the
// message has an address of its own.
func (c *conn) originate(ctx context.Context, q call, next Peer, to mapnet.Remote, m mapnet.Message, answer func(mapnet.Message) map[string]any) error {
	return c.aside(ctx, q, func(ctx context.Context, s *mapnet.Session) error {
		var msg mapnet.Message
		err := c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
			if err := entitled(tx, s, "messaging.canSend"); err != nil {
				return err
			}
			msg = tx.Outgoing(s, to, m.Payload, m.Meta)
			if to.Agent == "" {
				msg.To = m.To
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, failed := c.b.pass(ctx, next, msg, federation{Source: c.b.System(), Origin: msg.Timestamp})
		why := ""
		if failed != nil {
			why = failed.Error()
		}
		if to.Agent == "" {
			id, _ := wire.String(msg.To)
			if raw, ok := wire.Get(msg.To, "agent"); ok {
				id, _ = wire.String(raw)
			}
			to.Agent = id
		}
		return c.b.Net.Do(context.WithoutCancel(ctx), func(tx *mapnet.Tx) error {
			tx.Routed(msg, to, why)
			if failed == nil {
				tx.Send(c, result(q.id, answer(msg)))
			} else {
				tx.Send(c, failure(q.id, c.refusal(q, failed)))
			}
			return nil
		})
	})
}

// pass hands a message to the next hub on its way. Errors: *mapnet.Error.
func (b *Binding) pass(ctx context.Context, next Peer, msg mapnet.Message, way federation) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, routeTime)
	defer cancel()
	way.Target = next.System
	way.Hops++
	way.Path = append(slices.Clone(way.Path), b.System())
	l, err := b.link(ctx, next)
	if err != nil {
		return nil, err
	}
	msg.Timestamp = 0
	wireMsg := map[string]any{"id": msg.ID, "from": msg.From, "to": msg.To, "payload": msg.Payload, "meta": msg.Meta}
	for name, v := range map[string]mapnet.Raw{"payload": msg.Payload, "meta": msg.Meta} {
		if len(v) == 0 {
			delete(wireMsg, name)
		}
	}
	out, err := l.ask(ctx, next, "map/federation/route", map[string]any{"systemId": next.System, "message": wireMsg, "envelope": map[string]any{"payload": wireMsg, "federation": way}})
	if err != nil {
		return nil, err
	}
	if ok, _ := wire.Get(out, "routed"); string(ok) != "true" {
		return nil, federationError(mapnet.CodeRouteRejected, "not_routed", "Federation route rejected: %s did not take the message", next.System)
	}
	result := map[string]any{"routed": true}
	if raw, ok := wire.Get(out, "messageId"); ok {
		if id, ok := wire.String(raw); ok {
			result["messageId"] = id
		}
	}
	return result, nil
}

// send answers map/send: here, or in another hub.
func (c *conn) send(ctx context.Context, q call) error {
	p, err := decode[mapnet.Send](q.params)
	if err != nil {
		return err
	}
	var to mapnet.Remote
	away := false
	s := c.session
	err = c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		if err := entitled(tx, s, "messaging.canSend"); err != nil {
			return err
		}
		if to, away = tx.Elsewhere(s, p.To); away {
			return nil
		}
		out, receipt, err := tx.SendMessage(s, p)
		if err == nil {
			receipt.Then(tx, func(tx *mapnet.Tx) { tx.Send(c, result(q.id, out)) })
		}
		return err
	})
	if !away {
		return err
	}
	next, ok := c.b.peerOf(to.System)
	if !ok {
		return federationError(mapnet.CodeSystemNotFound, "unknown_system", "System not found: %s", to.System)
	}
	return c.originate(ctx, q, next, to, mapnet.Message{Payload: p.Payload, Meta: p.Meta}, func(msg mapnet.Message) map[string]any {
		return map[string]any{"messageId": msg.ID, "delivered": []string{to.Agent + "@" + to.System}}
	})
}

// forward brings the person's answers to other hubs, again and again until they took them or the answers' time is over. One
// that is refused does not hold up the others, and is tried again less and less often.
func (b *Binding) forward(ctx context.Context) {
	again := time.NewTicker(5 * time.Second)
	defer again.Stop()
	refused := map[string]refusal{} // by message
	for {
		var waiting []mapnet.Outbound
		_ = b.do(ctx, func(tx *mapnet.Tx) { waiting = tx.Outbound() }) // it is looked at again
		down := map[string]bool{}
		still := map[string]refusal{}
		for _, o := range waiting {
			id := o.Message.ID
			was, before := refused[id]
			if before {
				still[id] = was
			}
			next, ok := b.peerOf(o.To.System)
			if !ok || down[next.URL] || before && b.Now().Before(was.until) {
				continue
			}
			_, err := b.pass(ctx, next, o.Message, federation{Source: b.System(), Origin: o.Message.Timestamp})
			if err == nil {
				_ = b.do(ctx, func(tx *mapnet.Tx) { tx.Brought(o) }) // else it comes twice
				continue
			}
			if e := (*mapnet.Error)(nil); errors.As(err, &e) && (e.Code == mapnet.CodeFederationOff || e.Code == mapnet.CodeFederationAuth) {
				down[next.URL] = true // none of them would get there
			} else {
				was.wait = min(max(2*was.wait, 30*time.Second), time.Hour)
				was.until = b.Now().Add(was.wait)
				still[id] = was
			}
			if ctx.Err() == nil {
				b.Log.Warn("an answer could not be brought to another hub", "protocol", Name, "system", o.To.System, "err", err)
			}
		}
		refused = still
		select {
		case <-ctx.Done():
			return
		case <-b.outbound:
		case <-again.C:
		}
	}
}

// refusal is when an answer that another hub refused is tried again.
type refusal struct {
	wait  time.Duration
	until time.Time
}

// leave tells that another hub's connection went.
func (c *conn) leave() {
	if c.system != "" {
		_ = c.b.do(context.Background(), func(tx *mapnet.Tx) { tx.PeerEvent(c.system, "disconnected") })
	}
}
