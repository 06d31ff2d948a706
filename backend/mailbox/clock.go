package mailbox

import (
	"context"
	"errors"
	"time"
)

// Settle applies everything that fell due before now, in the order it was due (MA2H §9.5). When nothing did it costs
// nothing.
func (m *Mailbox) Settle(ctx context.Context) error {
	if next := m.Store.NextDue(); next.IsZero() || next.After(m.Now()) {
		return nil
	}
	return m.run(ctx, func(Tx, *effects, time.Time) error { return nil })
}

// most is how many things that fell due are applied in one transaction: others wait for it.
const most = 500

// stuckError: something that fell due could not be applied.
type stuckError struct {
	key string
	err error
}

func (e *stuckError) Error() string { return e.key + ": " + e.err.Error() }

// settle applies what is due, first due first, but for what could not be applied lately: one thing that cannot be ended
// must not hold up all others. more says that there is more than one transaction should do.
func (m *Mailbox) settle(tx Tx, fx *effects, now time.Time) (more bool, err error) {
	except := m.passedOver()
	for range most {
		d, any, err := tx.Due(now, except)
		if err != nil || !any {
			return false, err
		}
		if err := m.apply(tx, fx, d, now); err != nil {
			return false, &stuckError{d.Key, err}
		}
	}
	return true, nil
}

func (m *Mailbox) apply(tx Tx, fx *effects, d Due, now time.Time) error {
	switch {
	case d.Session != "":
		s, err := tx.Session(d.Session)
		if err != nil {
			return err
		}
		return m.endSession(tx, fx, s, s.Lapse())
	case d.Entry != nil:
		return m.endEntry(tx, fx, *d.Entry, d.Entry.Due())
	}
	it, err := tx.Item(d.ItemID)
	if err != nil {
		return err
	}
	ch := m.Inbox.DueChange(it, now)
	if ch == nil {
		return errors.New("it is due and nothing is to be done")
	}
	return m.putItem(tx, fx, it, *ch)
}

// passFor is how long something that could not be applied is left alone.
const passFor = 10 * time.Second

func (m *Mailbox) passOver(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stuck == nil {
		m.stuck = map[string]time.Time{}
	}
	m.stuck[key] = m.Now().Add(passFor)
}

// passedOver are the keys of what is left alone for now.
func (m *Mailbox) passedOver() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for key, until := range m.stuck {
		if m.Now().After(until) {
			delete(m.stuck, key)
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// Wake makes Run look for what is due.
func (m *Mailbox) Wake() {
	select {
	case m.due <- struct{}{}:
	default:
	}
}

// Run applies what falls due as it does, until ctx ends. What fell due while nothing ran is applied first, in order:
// no memory is needed to recover.
func (m *Mailbox) Run(ctx context.Context) error {
	purge := time.NewTicker(time.Minute)
	defer purge.Stop()
	for {
		err := m.Settle(ctx)
		if ctx.Err() != nil {
			return nil
		}
		next := m.Store.NextDue()
		if err != nil {
			m.Log.Error("what fell due", "err", err)
		}
		if err != nil || len(m.passedOver()) > 0 { // what is left alone is still due
			next = m.Now().Add(time.Second)
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(pause(next, m.Now()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.due:
		case <-timer:
		case <-purge.C:
			if err := m.Purge(ctx); err != nil && ctx.Err() == nil {
				m.Log.Error("purge of sessions and mail", "err", err)
			}
		}
	}
}

// Purge forgets sessions, directives, receipts and notices between agents whose retention has ended; asks and tasks
// take their mail with them when the inbox forgets them.
func (m *Mailbox) Purge(ctx context.Context) error {
	now, l := m.Now(), m.Limits()
	if err := m.Store.Do(ctx, func(tx Tx) error { return tx.PurgeSessions(now.Add(-l.TerminalRetention)) }); err != nil {
		return err
	}
	for {
		items, more, err := m.Store.PurgeMail(ctx, now.Add(-l.Retention), 200)
		if err != nil {
			return err
		}
		for _, id := range items {
			m.Inbox.Moved(id)
		}
		if !more {
			return nil
		}
	}
}

// pause is how long to wait for something due at next: never longer than a minute, because a wall clock that jumps
// (sleep, correction) must be noticed.
func pause(next, now time.Time) time.Duration {
	// Bounded before anything is added: the distance to a deadline far away is the largest Duration there is.
	return min(min(max(next.Sub(now), 0), time.Minute)+time.Millisecond, time.Minute)
}
