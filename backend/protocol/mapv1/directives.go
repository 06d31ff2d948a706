package mapv1

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/mailbox"
	"deskbell/backend/mapnet"
	"deskbell/backend/wire"
)

// Presence notes that an agent was connected or lost. It never waits.
func (b *Binding) Presence(agent string, connected bool) {
	b.mu.Lock()
	if connected {
		b.online[agent] = true
	} else {
		delete(b.online, agent)
	}
	b.mu.Unlock()
	b.Fleet.Connected(PeerID(agent), connected)
	nudge(b.presence)
}

// direct has somebody look after the mailbox of every connected agent that the operator did not stop.
func (b *Binding) direct(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	running := map[string]context.CancelFunc{}
	ended := make(chan string)
	for {
		b.mu.Lock()
		online := map[string]bool{}
		for agent := range b.online {
			online[agent] = true
		}
		b.mu.Unlock()
		_ = b.do(ctx, func(tx *mapnet.Tx) { // which says itself what went wrong
			for _, agent := range tx.Deaf(online) {
				delete(online, agent)
			}
		})
		for agent, stop := range running {
			if !online[agent] {
				stop()
			}
		}
		for agent := range online {
			if running[agent] == nil {
				one, stop := context.WithCancel(ctx)
				running[agent] = stop
				all.Go(func() {
					b.attend(one, agent)
					select {
					case ended <- agent:
					case <-ctx.Done():
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return
		case agent := <-ended:
			running[agent]()
			delete(running, agent)
		case <-b.presence:
		}
	}
}

// settle is how long an agent that came has before it gets its directives: see the network's.
const settle = 150 * time.Millisecond

// batch is how many directives are taken at once.
const batch = 16

// attend brings one agent its directives until it is lost or revoked.
func (b *Binding) attend(ctx context.Context, agent string) {
	enrolled, free, err := b.Fleet.WhileEnrolled(ctx, PeerID(agent))
	if err == nil {
		err = b.bring(enrolled, agent)
		free()
	}
	if errors.Is(err, fleet.ErrUnknownToken) {
		b.Presence(agent, false)
		_ = b.do(context.WithoutCancel(ctx), func(tx *mapnet.Tx) { tx.Expel(agent) })
		return
	}
	if err != nil && ctx.Err() == nil { // it is begun again, but not at once
		b.Log.Error("an agent cannot be attended to", "protocol", Name, "err", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// bring brings one agent its directives until ctx ends, and says why it did: fleet.ErrUnknownToken when the agent was
// revoked.
func (b *Binding) bring(ctx context.Context, agent string) error {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	for _, e := range b.take(agent) {
		b.deliver(ctx, agent, e)
	}
	for ctx.Err() == nil {
		entries, err := b.Mailbox.Drain(ctx, PeerID(agent), "", batch, time.Minute)
		for _, e := range entries {
			b.deliver(ctx, agent, e)
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("a mailbox could not be read", "protocol", Name, "err", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
	return context.Cause(ctx)
}

// deliver hands an agent one entry in the protocol's words, and acknowledges what was written to its connection.
func (b *Binding) deliver(ctx context.Context, agent string, e mailbox.Entry) {
	went := make(chan bool, 1)
	took := false
	if b.do(ctx, func(tx *mapnet.Tx) {
		tx.Directive(agent, e.Key, payload(e), priority(e), func(wrote bool) { went <- wrote })
	}) == nil {
		select {
		case took = <-went: // in the time of one write, at most
		case <-ctx.Done(): // it may come twice
		}
	}
	if !took {
		b.mu.Lock()
		b.missed[agent] = append(b.missed[agent], e)
		b.mu.Unlock()
		return
	}
	if _, err := b.Mailbox.Ack(context.WithoutCancel(ctx), PeerID(agent), "", []string{e.Key}, ""); err != nil {
		b.Log.Error("a directive could not be acknowledged", "protocol", Name, "err", err)
	}
}

// take returns the entries that were claimed for an agent as its connection went: it gets them first as it comes back,
// and from its mailbox in any case.
func (b *Binding) take(agent string) []mailbox.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	missed := b.missed[agent]
	delete(b.missed, agent)
	now := b.Now()
	return slices.DeleteFunc(missed, func(e mailbox.Entry) bool { return now.After(e.InvisibleUntil) || now.After(e.DueAt) })
}

// payload is what a directive says, in the form of a message's payload.
func payload(e mailbox.Entry) []byte {
	m := []wire.Member{}
	title, _ := wire.Get(e.Body, "title")
	text, _ := wire.String(title)
	if body, ok := wire.Get(e.Body, "body"); ok {
		if said, ok := wire.String(body); ok && said != "" {
			text += "\n\n" + said
		}
	}
	m = append(m, wire.Member{Name: "text", Value: wire.Quote(text)}, wire.Member{Name: "kind", Value: wire.Quote(string(e.Kind))}, wire.Member{Name: "id", Value: wire.Quote(e.Key)})
	for _, name := range []string{"title", "body", "tags", "context", "expires_at"} {
		if v, ok := wire.Get(e.Body, name); ok {
			m = append(m, wire.Member{Name: name, Value: v})
		}
	}
	return wire.Compose(m)
}

func priority(e mailbox.Entry) string {
	raw, _ := wire.Get(e.Body, "priority")
	text, _ := wire.String(raw)
	return text
}
