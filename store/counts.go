package store

import (
	"context"
	"sync"
	"time"

	"deskbell/backend/inbox"
)

// counter keeps the numbers that are asked for all the time, so that they cost the same however long the queue is.
// They are counted once, when first wanted, and follow every commit after that.
type counter struct {
	mu    sync.Mutex
	boxes map[string]int // nil: not counted yet
	open  map[queue]int  // the room of open items; a queue is there once it was counted
}

// retryWhenFull is what an agent is told whose queue is full: only the person can make room.
const retryWhenFull = 30 * time.Second

// queue is what of an agent waits for one kind of reader. What it has with other agents takes no room from what it asks
// the person (MA2H §8.6).
type queue struct {
	agent     string
	addressed bool
}

func queueOf(it *inbox.Item) queue { return queue{it.Agent, it.Content.To != ""} }

// opened is a change in the room that the open items of a queue take.
type opened struct {
	of queue
	by int
}

const unreadNotices = "unread notices"

func newCounter() *counter { return &counter{open: map[queue]int{}} }

// moved notes, after the commit, that an item went from one place to another; nil is nowhere.
func (t *tx) moved(from, to *inbox.Item) {
	c := t.s.counts
	for it, by := range map[*inbox.Item]int{from: -1, to: 1} {
		if it != nil && !it.Terminal() {
			t.job.opened = append(t.job.opened, opened{queueOf(it), by * inbox.Room(len(it.Original))})
		}
	}
	t.after(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.add(from, -1)
		c.add(to, 1)
	})
}

func (c *counter) add(it *inbox.Item, by int) {
	if it == nil {
		return
	}
	if c.boxes != nil {
		b := it.Box()
		c.boxes[b] += by
		if b == "notices" && !it.Marks.Read {
			c.boxes[unreadNotices] += by
		}
	}
	if n, counted := c.open[queueOf(it)]; counted && !it.Terminal() {
		c.open[queueOf(it)] = n + by*inbox.Room(len(it.Original))
	}
}

// Counts returns how many items each box holds.
func (s *Store) Counts(ctx context.Context) (inbox.Counts, error) {
	c := s.counts
	if counts, counted := c.get(); counted {
		return counts, nil
	}
	// On the writer, so that no commit falls between counting and following.
	if err := s.do(ctx, func(t *tx) error { return t.countBoxes() }); err != nil {
		return inbox.Counts{}, err
	}
	counts, _ := c.get() // once counted they are followed, and never forgotten
	return counts, nil
}

func (c *counter) get() (counts inbox.Counts, counted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boxes
	return inbox.Counts{Needs: b["needs"], Waiting: b["waiting"], Notices: b["notices"], Done: b["done"], Archive: b["archive"], Fleet: b["fleet"], UnreadNotices: b[unreadNotices]}, b != nil
}

func (t *tx) countBoxes() error {
	boxes := map[string]int{}
	// Each count walks one partial index.
	for name, q := range map[string]string{
		"needs":       `SELECT count(*) FROM items WHERE box = 'needs'`,
		"waiting":     `SELECT count(*) FROM items WHERE box <> 'needs' AND box = 'waiting'`,
		"notices":     `SELECT count(*) FROM items WHERE box <> 'needs' AND box = 'notices'`,
		"done":        `SELECT count(*) FROM items WHERE box <> 'needs' AND box = 'done'`,
		"archive":     `SELECT count(*) FROM items WHERE box <> 'needs' AND box = 'archive'`,
		"fleet":       `SELECT count(*) FROM items WHERE box <> 'needs' AND box = 'fleet'`,
		unreadNotices: `SELECT count(*) FROM items WHERE box <> 'needs' AND box = 'notices' AND is_read = 0`,
	} {
		var n int
		if err := t.row(q).Scan(&n); err != nil {
			return err
		}
		boxes[name] = n
	}
	// After the commit the moves of earlier jobs in the group find nothing to add to, and those of later ones add to this.
	t.after(func() {
		t.s.counts.mu.Lock()
		defer t.s.counts.mu.Unlock()
		t.s.counts.boxes = boxes
	})
	return nil
}

// admit refuses an item whose queue takes up max already; 0 is no bound.
func (t *tx) admit(it *inbox.Item, max int) error {
	if max <= 0 {
		return nil
	}
	c := t.s.counts
	c.mu.Lock()
	q := queueOf(it)
	n, counted := c.open[q]
	c.mu.Unlock()
	if !counted {
		if err := t.row(`SELECT coalesce(sum(1 + length(original) / ?), 0) FROM items WHERE state = 'open' AND agent = ? AND (box = 'fleet') = ?`,
			inbox.RoomBytes, q.agent, q.addressed).Scan(&n); err != nil {
			return err
		}
		t.after(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open[q] = n
		})
	}
	if counted {
		n += t.opened[q] // what this group has done and the counter does not know yet
	}
	if n >= max {
		what := "too many open messages of this agent"
		if q.addressed {
			what += " to others"
		}
		return &inbox.LimitError{What: what, RetryAfter: retryWhenFull}
	}
	return nil
}
