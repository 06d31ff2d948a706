package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"deskbell/backend/protocol"
)

// coalesce is how long changes are gathered before the page is told: well under what a person notices, and few enough
// tellings that a storm of changes does not drown the page.
const coalesce = 40 * time.Millisecond

// maxIDs bounds the ids in one event; with more, the page reads what it shows anew.
const maxIDs = 50

// Event says what moved since the one before. Items is empty when too many moved to name them.
type Event struct {
	Rev    int64    `json:"rev"`
	Items  []string `json:"items"`
	Topics []string `json:"topics"`
}

// Topic is what the page shows besides items, and loads again when it moved.
type Topic int

// The topics.
const (
	TopicAgents Topic = iota + 1
	TopicSettings
	TopicRules
	TopicGuardian
	TopicPi
	TopicMap
)

// topics are the names of all that can move, by Topic; the first are the items.
var topics = []string{"items", "agents", "settings", "rules", "guardian", "pi", "map"}

// feed gathers changes and hands them to everyone who follows. The zero value is ready.
type feed struct {
	mu        sync.Mutex
	last      int64
	followers map[chan []byte]struct{}
	topics    map[string]bool
	wake      chan struct{}
}

func (f *feed) rev() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Touch tells the page that one of the topics other than items changed.
func (d *Desk) Touch(topic Topic) {
	f := &d.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.topics == nil {
		f.topics = map[string]bool{}
	}
	f.topics[topics[topic]] = true
	if f.wake != nil {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// Run gathers changes until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	f := &d.feed
	changes := d.Inbox.Feed(ctx)
	f.mu.Lock()
	f.wake = make(chan struct{}, 1)
	f.mu.Unlock()
	for {
		var rev int64
		ids := map[string]bool{}
		items := false
		note := func(id string, r int64) {
			items = true
			rev = max(rev, r)
			if id != "" && len(ids) <= maxIDs {
				ids[id] = true
			}
			if id == "" {
				for len(ids) <= maxIDs { // everything may have moved
					ids[fmt.Sprint("\x00", len(ids))] = true
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case c, ok := <-changes:
			if !ok {
				return nil
			}
			note(c.ID, c.Rev)
		case <-f.wake:
		}
		timer := time.NewTimer(coalesce)
	gather:
		for {
			select {
			case c, ok := <-changes:
				if !ok {
					break gather
				}
				note(c.ID, c.Rev)
			case <-timer.C:
				break gather
			case <-ctx.Done():
				break gather
			}
		}
		timer.Stop()
		e := Event{Items: []string{}, Topics: []string{}}
		if items {
			e.Topics = append(e.Topics, "items")
		}
		if len(ids) <= maxIDs {
			for id := range ids {
				e.Items = append(e.Items, id)
			}
		}
		f.send(e, rev)
	}
}

func (f *feed) send(e Event, rev int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, rev)
	e.Rev = f.last
	for topic := range f.topics {
		e.Topics = append(e.Topics, topic)
	}
	f.topics = nil
	text, err := json.Marshal(e)
	if err != nil {
		return // strings and numbers always marshal
	}
	everything, err := json.Marshal(Event{Rev: f.last, Items: []string{}, Topics: topics})
	if err != nil {
		return
	}
	for ch := range f.followers {
		select {
		case ch <- text:
		default: // it is behind: what it has not read, and this, become one event that says that anything may have moved
			for len(ch) > 0 {
				select {
				case <-ch:
				default:
				}
			}
			ch <- everything // nobody else writes to it
		}
	}
}

// Changes follows the events, as JSON, until ctx ends.
func (d *Desk) Changes(ctx context.Context) <-chan []byte {
	ch := make(chan []byte, 64)
	f := &d.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == nil {
		f.followers = map[chan []byte]struct{}{}
	}
	f.followers[ch] = struct{}{}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, ch)
		close(ch)
	})
	return ch
}

// events answers GET /api/events with a stream of them.
func (d *Desk) events(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead { // there is nothing to wait for
		return nil
	}
	changes := d.Changes(r.Context())
	if _, err := fmt.Fprint(w, "retry: 1000\n\n"); err != nil {
		return nil // the page is gone
	}
	if err := out.Flush(); err != nil {
		return nil
	}
	alive := time.NewTicker(20 * time.Second)
	defer alive.Stop()
	for {
		line := ": still here\n\n"
		select {
		case <-r.Context().Done():
			return nil
		case text, ok := <-changes:
			if !ok {
				return nil
			}
			line = "data: " + string(text) + "\n\n"
		case <-alive.C:
		}
		_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second)) // not every writer has deadlines
		if _, err := fmt.Fprint(w, line); err != nil {
			return nil
		}
		if err := out.Flush(); err != nil {
			return nil
		}
	}
}
