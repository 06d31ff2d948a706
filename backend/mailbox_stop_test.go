package backend

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/fleet"
	"deskbell/backend/mailbox"
)

// between is a store that lets something else happen just before its nth transaction.
type between struct {
	mailbox.Store
	n   int
	act func()
}

func (b *between) Do(ctx context.Context, fn func(mailbox.Tx) error) error {
	if b.n--; b.n == 0 {
		b.act()
	}
	return b.Store.Do(ctx, fn)
}

// Whether an agent is stopped is read in the transaction that writes its session: wherever between the hub's
// transactions the operator's stop falls, no session lives once both have answered (MA2H §16.4.1).
func TestStopBetweenTheTransactionsOfARegistration(t *testing.T) {
	ctx := t.Context()
	hub, err := open(ctx, config.Config{Addr: "127.0.0.1:0", Data: t.TempDir()}, slog.New(slog.DiscardHandler), (&clock{at: noon}).now, loadSchemas)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := hub.fleet.Add(ctx, "bot", "")
	if err != nil {
		t.Fatal(err)
	}
	real, told := hub.mailbox.Store, map[bool]bool{}
	for n := 1; n <= 5; n++ {
		stop := sync.OnceFunc(func() {
			hub.mailbox.Store = real // what the stop itself does is not interrupted
			if _, err := hub.mailbox.Stop(ctx, "bot"); err != nil {
				t.Error(err)
			}
		})
		hub.mailbox.Store = &between{real, n, stop}
		s, err := hub.mailbox.Register(ctx, fleet.HashToken(c.Token), fleet.SessionAbout{}, time.Hour, nil)
		if err != nil && !errors.Is(err, mailbox.ErrStopped) {
			t.Fatal(err)
		}
		told[err == nil] = true
		stop() // a registration of fewer transactions is stopped after its last
		live, lerr := hub.mailbox.Sessions(ctx, "bot")
		if lerr != nil {
			t.Fatal(lerr)
		}
		for _, x := range live {
			if x.Live(noon) {
				t.Errorf("stopped before transaction %d, and a session lives", n)
			}
			if x.ID == s.ID && !x.ByOperator {
				t.Errorf("stopped before transaction %d: closed by %+v", n, x)
			}
		}
		if err := hub.mailbox.Resume(ctx, "bot"); err != nil {
			t.Fatal(err)
		}
	}
	if !told[true] || !told[false] {
		t.Errorf("the stop came always before, or always after: %v", told)
	}
}
