package inbox

import (
	"context"
	"sync"
)

// Changed says that an item moved and to which revision. Whoever wants to know more reads it.
type Changed struct {
	ID  string
	Rev int64
}

// watchers tells who waits for one item, and the feeds that follow all of them. The zero value is ready.
type watchers struct {
	mu    sync.Mutex
	byID  map[string]*watched
	feeds map[*feed]struct{}
}

// feed is one follower of every change.
type feed struct {
	ch   chan Changed
	lost bool // something did not fit since the last empty Changed
}

type watched struct {
	changed chan struct{} // closed and replaced at each change
	waiting int           // how many of the watching are the agent's own held requests
	refs    int
}

// watch is one watching of an item.
type watch struct {
	w  *watchers
	it *watched
}

// next is closed at the first change after the previous next.
func (c watch) next() <-chan struct{} {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.it.changed
}

func (w *watchers) watch(id string, held bool) (watch, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = map[string]*watched{}
	}
	it := w.byID[id]
	if it == nil {
		it = &watched{changed: make(chan struct{})}
		w.byID[id] = it
	}
	it.refs++
	if held {
		it.waiting++
		if it.waiting == 1 {
			w.feed(Changed{ID: id})
		}
	}
	return watch{w, it}, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if it.refs--; it.refs == 0 {
			delete(w.byID, id)
		}
		if held {
			if it.waiting--; it.waiting == 0 {
				w.feed(Changed{ID: id})
			}
		}
	}
}

func (w *watchers) publish(it Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.byID[it.ID]; x != nil {
		close(x.changed)
		x.changed = make(chan struct{})
	}
	w.feed(Changed{ID: it.ID, Rev: it.Rev})
}

// feed hands c to every feed. One that is full loses it, and is told by an empty Changed, as soon as it has room, that
// anything may have moved.
func (w *watchers) feed(c Changed) {
	for f := range w.feeds {
		if f.lost {
			select {
			case f.ch <- Changed{}:
				f.lost = false
			default:
				continue
			}
		}
		select {
		case f.ch <- c:
		default:
			f.lost = true
		}
	}
}

// WaitingNow says whether the item's agent holds a request open for it at this moment.
func (in *Inbox) WaitingNow(id string) bool {
	in.watchers.mu.Lock()
	defer in.watchers.mu.Unlock()
	x := in.watchers.byID[id]
	return x != nil && x.waiting > 0
}

// Feed follows every change until ctx ends. An empty Changed says that anything may have moved: many items did, or the
// reader fell behind and lost some.
func (in *Inbox) Feed(ctx context.Context) <-chan Changed {
	f := &feed{ch: make(chan Changed, 4096)}
	w := &in.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.feeds == nil {
		w.feeds = map[*feed]struct{}{}
	}
	w.feeds[f] = struct{}{}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.feeds, f)
		close(f.ch)
	})
	return f.ch
}

// Moved tells the feeds that an item moved otherwise than through the inbox (its push did); "" is many.
func (in *Inbox) Moved(id string) { in.watchers.publish(Item{ID: id}) }
