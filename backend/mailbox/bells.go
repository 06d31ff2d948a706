package mailbox

import "sync"

// bells wake whoever waits for an agent's mailbox. The zero value is ready.
type bells struct {
	mu sync.Mutex
	at map[string]*bell
}

type bell struct {
	rung    chan struct{} // closed and replaced at each ring
	waiting int
}

// wait returns a function that gives the channel closed at the next ring, and one to stop waiting.
func (b *bells) wait(agent string) (next func() <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = map[string]*bell{}
	}
	x := b.at[agent]
	if x == nil {
		x = &bell{rung: make(chan struct{})}
		b.at[agent] = x
	}
	x.waiting++
	return func() <-chan struct{} {
			b.mu.Lock()
			defer b.mu.Unlock()
			return x.rung
		}, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if x.waiting--; x.waiting == 0 {
				delete(b.at, agent)
			}
		}
}

func (b *bells) ring(agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x := b.at[agent]; x != nil {
		close(x.rung)
		x.rung = make(chan struct{})
	}
}
