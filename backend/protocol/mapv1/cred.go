package mapv1

import (
	"context"
	"time"

	"deskbell/backend/mapnet"
)

// patience is how long a request for a credential waits for the person: published clients give a request 30 s. Who
// asks again is asked about once.
const patience = 25 * time.Second

// credential answers cred/get.
func (c *conn) credential(ctx context.Context, q call) error {
	p, err := decode[mapnet.CredentialQuery](q.params)
	if err != nil {
		return err
	}
	wait := patience
	if ms := p.Meta.WaitMS; ms != nil {
		wait = min(patience, max(0, time.Duration(*ms)*time.Millisecond))
	}
	claim := func(ctx context.Context, s *mapnet.Session, last bool) (decided <-chan struct{}, err error) {
		err = c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
			if err := entitled(tx, s, "credentials.canGet"); err != nil {
				return err
			}
			out, ch, err := tx.Credential(s, p, last)
			if decided = ch; err == nil && ch == nil {
				tx.Send(c, result(q.id, out))
			}
			return err
		})
		return decided, err
	}
	decided, err := claim(ctx, c.session, false)
	if err != nil || decided == nil {
		return err
	}
	return c.aside(ctx, q, func(ctx context.Context, s *mapnet.Session) error {
		clock := time.NewTimer(wait)
		defer clock.Stop()
		select {
		case <-decided:
		case <-clock.C:
		case <-ctx.Done():
			return nil // nobody hears the answer; the grant waits for who asks again
		}
		_, err := claim(ctx, s, true)
		return err
	})
}
