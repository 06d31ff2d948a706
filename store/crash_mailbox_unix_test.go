//go:build unix

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

// echo replies in no protocol at all: the reply names the resolution, is pushed, and goes to the session that asked.
type echo struct{}

func (echo) Reply(it inbox.Item) (inbox.Reply, error) {
	r := inbox.Reply{Body: fmt.Appendf(nil, `{"resolution_id":%q}`, it.Outcome.ID)}
	r.Push = &inbox.Owed{Protocol: "ma2h", Agent: it.Agent, URL: "https://a.example/x", Host: "a.example", State: inbox.OwedPending, Created: noon, NextAt: noon}
	if s := it.Content.Session; s != "" {
		r.Hand = &inbox.Hand{Session: s, To: mailbox.Address(it.Agent, s), Until: it.Outcome.Time().Add(24 * time.Hour)}
	}
	return r, nil
}

// crashBox is the use cases of the mailbox on s at a moment of the script.
type crashBox struct {
	s   *Store
	in  *inbox.Inbox
	box *mailbox.Mailbox
}

func boxAt(s *Store, at time.Time) crashBox {
	b := crashBox{s: s}
	now := func() time.Time { return at }
	op := func() inbox.Actor { return inbox.Actor{Kind: inbox.Human, ID: "alice"} }
	b.in = inbox.NewInbox(inbox.Config{Store: s, Now: now, Repliers: map[string]inbox.Replier{"ma2h": echo{}}, Operator: op,
		Policy: func(context.Context, string) (inbox.Policy, error) { return inbox.Policy{}, nil },
		Hold:   func() time.Duration { return 0 }, Retention: func() time.Duration { return 24 * time.Hour },
		CheckInput: func(_, _ json.RawMessage) []inbox.FieldError { return nil },
		OnOwed:     func() {}, OnHand: func(string) {}, OnDue: func() {}, Log: slog.New(slog.DiscardHandler),
		Settle: func(ctx context.Context) error { return b.box.Settle(ctx) }})
	b.box = mailbox.New(mailbox.Config{Store: s, Inbox: b.in, Now: now, Operator: op, Webhook: webhook, OnChange: func() {}, Log: slog.New(slog.DiscardHandler),
		Receipt: func(f mailbox.ReceiptFacts) []byte { return fmt.Appendf(nil, `{"id":%q}`, f.ID) },
		Limits: func() mailbox.Limits {
			return mailbox.Limits{Visibility: time.Minute, Retention: 24 * time.Hour, Window: 90 * time.Second, MinTTL: time.Minute, MaxTTL: time.Hour, MaxLive: 16,
				TerminalRetention: 24 * time.Hour, MaxBatch: 32, StreamHold: time.Minute, Depth: 100, InterAgent: true}
		},
		Seal: func(context.Context, string) (func(mailbox.Entry) ([]byte, error), error) {
			return func(e mailbox.Entry) ([]byte, error) { return e.Body, nil }, nil
		}})
	return b
}

// webhook is what every directive of the script is owed to.
func webhook(a fleet.Agent, e mailbox.Entry) *inbox.Owed {
	return &inbox.Owed{EntryKey: e.Key, Protocol: "ma2h", Agent: a.ID, URL: "https://b.example/hook", Host: "b.example", State: inbox.OwedPending, Created: noon, NextAt: noon}
}

// labelled is the session that registered under a label; false: there is none.
func labelled(ctx context.Context, s *Store, label string) (fleet.Session, bool, error) {
	all, err := s.Sessions(ctx, "")
	i := slices.IndexFunc(all, func(x fleet.Session) bool { return x.About.Label == label })
	if err != nil || i < 0 {
		return fleet.Session{}, false, err
	}
	return all[i], true, nil
}

func entryAt(ctx context.Context, s *Store, agent, key string) (e mailbox.Entry, found bool, err error) {
	e, err = scanEntry(s.read.QueryRowContext(ctx, `SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.agent = ? AND entries.key = ?`, agent, key))
	if errors.Is(err, mailbox.ErrNotFound) {
		return e, false, nil
	}
	return e, err == nil, err
}

// owedAt is the push of a directive; false: there is none.
func owedAt(ctx context.Context, s *Store, key string) ([]inbox.Attempt, bool, error) {
	o, attempts, err := s.OwedOfEntry(ctx, key)
	if errors.Is(err, inbox.ErrNotFound) {
		return nil, false, nil
	}
	if err == nil && (o.Attempts != len(attempts) || (o.State != inbox.OwedPending && o.State != inbox.OwedDone)) {
		err = fmt.Errorf("the push of %s is %+v after %d attempts", key, o, len(attempts))
	}
	return attempts, err == nil, err
}

// attempted records an attempt at a directive's webhook.
func (b crashBox) attempted(ctx context.Context, key string, state inbox.OwedState, status int) error {
	o, _, err := b.s.OwedOfEntry(ctx, key)
	if err != nil {
		return err
	}
	o.State, o.Attempts = state, o.Attempts+1
	return b.s.Attempted(ctx, o, inbox.Attempt{N: o.Attempts, At: noon, Status: status})
}

// mailOf are the entries about an item in a mailbox, by kind.
func mailOf(ctx context.Context, s *Store, agent, item string) (map[mailbox.Kind]mailbox.Entry, error) {
	all, err := scanEntries(s.query(ctx, `SELECT `+entryColumns+` FROM `+entryTables+` WHERE entries.agent = ? AND items.id = ?`, agent, item))
	kinds := map[mailbox.Kind]mailbox.Entry{}
	for _, e := range all {
		if _, twice := kinds[e.Kind]; twice {
			err = errors.Join(err, fmt.Errorf("two entries of kind %s about %s", e.Kind, item))
		}
		kinds[e.Kind] = e
	}
	return kinds, err
}

// half is a transaction of which a part is there.
func half(what string, parts ...bool) (bool, error) {
	all, any := true, false
	for _, p := range parts {
		all, any = all && p, any || p
	}
	if all != any {
		return false, fmt.Errorf("%s is there by half: %v", what, parts)
	}
	return all, nil
}

func mailboxScript() []step {
	var steps []step
	add := func(name string, act func(context.Context, crashBox) error, done func(context.Context, *Store) (bool, error)) {
		at := noon.Add(time.Duration(len(steps)) * time.Second)
		steps = append(steps, step{name, func(ctx context.Context, s *Store) error {
			if ok, err := done(ctx, s); ok || err != nil {
				return err
			}
			return act(ctx, boxAt(s, at))
		}, done})
	}
	token := func(agent string) []byte { return fleet.HashToken("token of " + agent) }
	for _, agent := range []string{"a", "b"} {
		add("enrol "+agent, func(ctx context.Context, b crashBox) error {
			return b.s.AddAgent(ctx, fleet.Agent{ID: agent, Protocol: "ma2h", CreatedAt: noon}, token(agent), fleet.Audit{At: noon})
		}, func(ctx context.Context, s *Store) (bool, error) {
			_, err := s.Agent(ctx, agent)
			_, perr := s.Authenticate(ctx, token(agent), noon)
			return half("enrolment", err == nil, perr == nil)
		})
	}
	register := func(agent, label string, ttl time.Duration) { // T6
		add("register "+label, func(ctx context.Context, b crashBox) error {
			_, err := b.box.Register(ctx, token(agent), fleet.SessionAbout{Label: label}, ttl, nil)
			return err
		}, func(ctx context.Context, s *Store) (bool, error) {
			_, found, err := labelled(ctx, s, label)
			return found, err
		})
	}
	register("a", "a1", time.Hour)
	register("b", "b1", time.Hour)
	register("b", "b2", 10*time.Minute)
	submit := func(n int, kind inbox.Kind, to, toLabel string) { // T1
		item := newItem(n).Item
		add("submit "+item.ID, func(ctx context.Context, b crashBox) error {
			a1, _, err := labelled(ctx, b.s, "a1")
			if err != nil {
				return err
			}
			x := newItem(n)
			x.Item.Agent, x.Item.Kind, x.Item.Content.Session = "a", kind, a1.ID
			if to == "" {
				_, err = b.box.Submit(ctx, x, nil, mailbox.Unfit{})
				return err
			}
			dest, _, err := labelled(ctx, b.s, toLabel)
			if err != nil {
				return err
			}
			x.Item.Content.To, x.Item.Content.ToAgent = mailbox.Address(to, dest.ID), to
			x.Item.Mailbox = &inbox.Mailbox{State: "queued"}
			if kind == inbox.Notice {
				x.Item.State = inbox.Queued
			}
			_, err = b.box.Submit(ctx, x, &mailbox.Entry{Key: item.ID, From: mailbox.Address("a", a1.ID), To: x.Item.Content.To, Body: []byte(`{}`)}, mailbox.Unfit{})
			return err
		}, func(ctx context.Context, s *Store) (bool, error) {
			_, ierr := s.Item(ctx, item.ID)
			if ierr != nil && !errors.Is(ierr, inbox.ErrNotFound) {
				return false, ierr
			}
			if to == "" {
				return ierr == nil, nil
			}
			_, found, err := entryAt(ctx, s, to, item.ID)
			if err != nil {
				return false, err
			}
			ok, err := half(item.ID, ierr == nil, found)
			if ok && err == nil {
				var d []byte
				if err := s.read.QueryRowContext(ctx, `SELECT digest FROM items WHERE protocol = 'ma2h' AND agent = 'a' AND idem_key = ?`, fmt.Sprintf("key-%d", n)).Scan(&d); err != nil && !errors.Is(err, sql.ErrNoRows) {
					return false, err
				}
				ok, err = half(item.ID, ok, d != nil)
			}
			return ok, err
		})
	}
	submit(1, inbox.Question, "b", "b1") // delivered, then bounced
	submit(2, inbox.Notice, "b", "")     // acknowledged
	submit(3, inbox.Question, "", "")    // answered by the person
	submit(4, inbox.Task, "b", "b2")     // never seen; its session lapses
	author := func(key string) {
		add("directive "+key, func(ctx context.Context, b crashBox) error {
			_, err := b.box.Author(ctx, mailbox.Entry{Key: key, From: "human:alice", To: "agent:b", Body: []byte(`{}`)})
			return err
		}, func(ctx context.Context, s *Store) (bool, error) {
			_, found, err := entryAt(ctx, s, "b", key)
			_, owed, oerr := owedAt(ctx, s, key)
			if err := errors.Join(err, oerr); err != nil {
				return false, err
			}
			return half("the directive "+key+" and its push", found, owed)
		})
	}
	author("dir_1")
	id := func(n int) string { return newItem(n).Item.ID }
	add("drain b1", func(ctx context.Context, b crashBox) error { // T4: three entries, two messages, one session
		b1, _, err := labelled(ctx, b.s, "b1")
		if err != nil {
			return err
		}
		got, err := b.box.Drain(ctx, "b", b1.ID, 32, 0)
		if err == nil && len(got) != 3 {
			err = fmt.Errorf("drained %d", len(got))
		}
		return err
	}, func(ctx context.Context, s *Store) (bool, error) {
		var parts []bool
		for _, key := range []string{id(1), id(2), "dir_1"} {
			e, _, err := entryAt(ctx, s, "b", key)
			if err != nil {
				return false, err
			}
			parts = append(parts, !e.DeliveredAt.IsZero(), e.Presented, e.ClaimedBy != "")
			if key != "dir_1" {
				it, err := s.Item(ctx, key)
				if err != nil && !errors.Is(err, inbox.ErrNotFound) {
					return false, err
				}
				parts = append(parts, it.Mailbox != nil && !it.Mailbox.DeliveredAt.IsZero())
			}
		}
		return half("the drain", parts...)
	})
	add("ack", func(ctx context.Context, b crashBox) error { // T5
		n, err := b.box.Ack(ctx, "b", "", []string{id(2), "dir_1"}, "noted")
		if err == nil && n != 2 {
			err = fmt.Errorf("acknowledged %d", n)
		}
		return err
	}, func(ctx context.Context, s *Store) (bool, error) {
		m, _, err := entryAt(ctx, s, "b", id(2))
		d, _, derr := entryAt(ctx, s, "b", "dir_1")
		it, ierr := s.Item(ctx, id(2))
		if errors.Is(ierr, inbox.ErrNotFound) {
			ierr = nil
		}
		if err := errors.Join(err, derr, ierr); err != nil {
			return false, err
		}
		return half("the acknowledgment", m.State == mailbox.Acknowledged, d.State == mailbox.Acknowledged, it.State == inbox.Acknowledged, m.Note == "noted" && !m.Live)
	})
	author("dir_2")
	add("failed push of dir_2", func(ctx context.Context, b crashBox) error {
		return b.attempted(ctx, "dir_2", inbox.OwedPending, 503)
	}, func(ctx context.Context, s *Store) (bool, error) {
		attempts, owed, err := owedAt(ctx, s, "dir_2")
		return owed && len(attempts) > 0, err
	})
	add("push of dir_2", func(ctx context.Context, b crashBox) error { // first that it was received, then that nothing more is owed
		if _, err := b.box.Handed(ctx, "b", "dir_2"); err != nil {
			return err
		}
		return b.attempted(ctx, "dir_2", inbox.OwedDone, 200)
	}, func(ctx context.Context, s *Store) (bool, error) {
		e, _, err := entryAt(ctx, s, "b", "dir_2")
		attempts, owed, oerr := owedAt(ctx, s, "dir_2")
		if err := errors.Join(err, oerr); err != nil || !owed {
			return false, err
		}
		if len(attempts) == 0 || attempts[len(attempts)-1].Status != 200 {
			return false, nil
		}
		if e.State != mailbox.Delivered || e.DeliveredAt.IsZero() || !e.Presented || !e.Live {
			return false, fmt.Errorf("nothing is owed for dir_2, and its entry is %+v", e)
		}
		return true, nil
	})
	ended := func(n int, actor string) func(context.Context, *Store) (bool, error) {
		return func(ctx context.Context, s *Store) (bool, error) {
			it, err := s.Item(ctx, id(n))
			if errors.Is(err, inbox.ErrNotFound) {
				return false, nil
			}
			mail, merr := mailOf(ctx, s, "a", id(n))
			_, _, oerr := s.OwedOf(ctx, id(n))
			if oerr != nil && !errors.Is(oerr, inbox.ErrNotFound) {
				return false, oerr
			}
			if err := errors.Join(err, merr); err != nil {
				return false, err
			}
			r, handed := mail[mailbox.Response]
			if it.Outcome != nil && (it.Outcome.Actor != actor || r.Key != it.Outcome.ID) {
				return false, fmt.Errorf("ended by %s, handed %q", it.Outcome.Actor, r.Key)
			}
			return half("the end of "+id(n), it.Terminal(), it.Outcome != nil, len(it.Response) > 0, handed, oerr == nil)
		}
	}
	add("answer", func(ctx context.Context, b crashBox) error { // T2
		_, err := b.in.Resolve(ctx, id(3), inbox.Actor{Kind: inbox.Agent, ID: "a"}, inbox.Decision{Verb: inbox.Answer, Value: json.RawMessage(`"a"`)})
		return err
	}, ended(3, "agent:a"))
	add("collect the answer", func(ctx context.Context, b crashBox) error { // T4 and T5 of an answer
		a1, _, err := labelled(ctx, b.s, "a1")
		if err != nil {
			return err
		}
		it, err := b.s.Item(ctx, id(3))
		if err != nil {
			return err
		}
		if _, err = b.box.Drain(ctx, "a", a1.ID, 32, 0); err != nil {
			return err
		}
		_, err = b.box.Ack(ctx, "a", a1.ID, []string{it.Outcome.ID}, "")
		return err
	}, func(ctx context.Context, s *Store) (bool, error) {
		it, err := s.Item(ctx, id(3))
		if errors.Is(err, inbox.ErrNotFound) {
			return false, nil
		}
		mail, merr := mailOf(ctx, s, "a", id(3))
		if err := errors.Join(err, merr); err != nil {
			return false, err
		}
		r := mail[mailbox.Response]
		if (r.State == mailbox.Delivered) != (it.Track.State == inbox.TrackDelivered) {
			return false, fmt.Errorf("entry %s, track %s", r.State, it.Track.State)
		}
		return half("the acknowledged answer", r.State == mailbox.Acknowledged, it.Track.State == inbox.TrackAcknowledged)
	})
	bounced := func(n int, label string, prior mailbox.State, byOperator bool) func(context.Context, *Store) (bool, error) {
		return func(ctx context.Context, s *Store) (bool, error) {
			session, _, err := labelled(ctx, s, label)
			e, _, eerr := entryAt(ctx, s, "b", id(n))
			it, ierr := s.Item(ctx, id(n))
			if errors.Is(ierr, inbox.ErrNotFound) {
				ierr = nil
			}
			mail, merr := mailOf(ctx, s, "a", id(n))
			stops, serr := s.Stops(ctx)
			over, oerr := ended(n, "system:undeliverable")(ctx, s)
			if err := errors.Join(err, eerr, ierr, merr, serr, oerr); err != nil {
				return false, err
			}
			_, receipt := mail[mailbox.Receipt]
			parts := []bool{session.State == fleet.SessionClosed || session.State == fleet.SessionExpired, e.State == mailbox.Bounced && e.Prior == prior && !e.Live,
				it.Mailbox != nil && it.Mailbox.State == "bounced" && it.Mailbox.Prior == inbox.MailboxState(prior), receipt, over}
			if byOperator {
				parts = append(parts, session.ByOperator, len(stops) == 1)
			}
			return half("the bounce of "+id(n), parts...)
		}
	}
	add("kill b1", func(ctx context.Context, b crashBox) error { // T3: marker, stop, bounce, end, answer, receipt
		b1, _, err := labelled(ctx, b.s, "b1")
		if err != nil {
			return err
		}
		_, err = b.box.Kill(ctx, b1.ID)
		return err
	}, bounced(1, "b1", mailbox.Delivered, true))
	add("lapse of b2", func(ctx context.Context, b crashBox) error { // T3 by the clock
		return boxAt(b.s, noon.Add(15*time.Minute)).box.Settle(ctx)
	}, bounced(4, "b2", mailbox.Queued, false))
	add("end of a1", func(ctx context.Context, b crashBox) error {
		a1, _, err := labelled(ctx, b.s, "a1")
		if err != nil {
			return err
		}
		_, err = boxAt(b.s, noon.Add(16*time.Minute)).box.Close(ctx, "a", a1.ID)
		return err
	}, func(ctx context.Context, s *Store) (bool, error) {
		a1, found, err := labelled(ctx, s, "a1")
		if err != nil || !found {
			return false, err
		}
		var live int
		err = s.read.QueryRowContext(ctx, `SELECT count(*) FROM entries WHERE agent = 'a' AND live = 1`).Scan(&live)
		if a1.State != fleet.SessionActive && live > 0 {
			err = errors.Join(err, fmt.Errorf("%d entries outlive their session", live))
		}
		return a1.State != fleet.SessionActive, err
	})
	return steps
}

// The same for sessions and mail: killed before and after every commit of a life of drains, acknowledgments, bounces,
// a stop and a lapse, nothing that was told is lost and nothing is there by half.
func TestMailboxKilledAtEveryCommitPoint(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	steps := mailboxScript()
	last := len(steps) + 6 // some steps commit more than once
	if testing.Short() {
		last = 4
	}
	var killed atomic.Int64
	t.Run("points", func(t *testing.T) {
		for n := range last {
			for _, point := range []int{n + 1, -(n + 1)} {
				t.Run(fmt.Sprint(point), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					told, dead := runChild(t, exe, "mailbox", dir, point)
					inspect(t, dir, point, steps, told)
					if !dead || point < 0 { // the life after a death behind a commit is the one before the next commit
						return
					}
					killed.Add(1)
					if told, dead = runChild(t, exe, "mailbox", dir, 1_000_000); dead || len(told) != len(steps) {
						t.Fatalf("the next life told %d of %d steps", len(told), len(steps))
					}
					inspect(t, dir, point, steps, told)
				})
			}
		}
	})
	if n := int(killed.Load()); n < min(last, len(steps)) || (!testing.Short() && n == last) {
		t.Errorf("%d commits were tried of %d steps: not every one there is", n, len(steps))
	}
}
