package mapv1

import (
	"context"

	"deskbell/backend/mapnet"
)

// maxLate is how many subscriptions of one connection may be behind, those included that have ended meanwhile.
const maxLate = 1024

const observe = "observation.canObserve"

// subscribe answers map/subscribe.
func (c *conn) subscribe(ctx context.Context, q call) error {
	p, err := decode[mapnet.Subscribe](q.params)
	if err != nil {
		return err
	}
	var id string
	behind := false
	err = c.tx(ctx, q, observe, func(tx *mapnet.Tx, s *mapnet.Session) (out map[string]any, err error) {
		if out, behind, err = tx.Subscribe(s, p); err == nil {
			id = out["subscriptionId"].(string)
		}
		return out, err
	})
	if err == nil && behind {
		c.CatchUp(id)
	}
	return err
}

// CatchUp implements mapnet.Peer: what is kept goes to the subscriber page by page, as fast as it reads.
func (c *conn) CatchUp(subscription string) {
	select {
	case c.late <- subscription:
	default: // each is there once, and there are not so many at a time
		c.ws.Close(1013, "too many subscriptions are behind")
	}
}

// Behind implements mapnet.Peer.
func (c *conn) Behind() bool { return c.ws.Behind() }

// follow brings subscriptions that are behind what they missed, until the connection ends.
func (c *conn) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-c.late:
			c.bring(ctx, id)
		}
	}
}

func (c *conn) bring(ctx context.Context, id string) {
	for more := true; more && ctx.Err() == nil; {
		var frames [][]byte
		err := c.b.Net.Do(ctx, func(tx *mapnet.Tx) (err error) {
			if s := tx.SessionOf(c); s != nil {
				frames, more, err = tx.CatchUp(s, id)
			} else {
				more = false
			}
			return err
		})
		if err != nil {
			c.b.Log.Error("past events could not be read", "protocol", Name, "err", err)
			c.ws.Close(1011, "the hub could not read what happened")
			return
		}
		for _, frame := range frames {
			if !c.ws.Deliver(ctx, frame, nil, nil) {
				return
			}
		}
	}
}

// replay answers map/replay.
func (c *conn) replay(ctx context.Context, q call) error {
	p, err := decode[mapnet.Replay](q.params)
	if err != nil {
		return err
	}
	out := &mapnet.Replayed{}
	s := c.session
	for more := true; more; {
		err := c.b.Net.Do(ctx, func(tx *mapnet.Tx) (err error) {
			if err := entitled(tx, s, observe); err != nil {
				return err
			}
			if more, err = tx.Replay(s, &p, out); err == nil && !more {
				tx.Send(c, result(q.id, out.Result()))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// acknowledged notes how far a client has read: the notification map/subscribe.ack.
func (c *conn) acknowledged(ctx context.Context, q call) {
	p, err := decode[struct {
		Subscription string `json:"subscriptionId"`
		UpTo         int64  `json:"upToSequence"`
	}](q.params)
	if err != nil || c.session == nil {
		return // nobody hears of it
	}
	s, behind := c.session, false
	if c.b.do(ctx, func(tx *mapnet.Tx) { behind = tx.Acknowledge(s, p.Subscription, p.UpTo) }) == nil && behind {
		c.CatchUp(p.Subscription)
	}
}
