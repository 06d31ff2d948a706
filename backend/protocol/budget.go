package protocol

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Budgets is each agent's rate of one kind of request. The zero value is ready.
type Budgets struct {
	mu      sync.Mutex
	byAgent map[string]*budget
	swept   time.Time
	refused map[string]int // requests that found it used up
}

type budget struct {
	limiter *rate.Limiter
	perMin  int
	used    time.Time
}

// State is what is left of an agent's budget now, and how often it was used up since the hub began.
func (b *Budgets) State(agent string, perMinute int, now time.Time) (left, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left, refused = perMinute, b.refused[agent]
	if x := b.byAgent[agent]; x != nil && x.perMin == perMinute {
		left = min(perMinute, max(0, int(x.limiter.TokensAt(now))))
	}
	return left, refused
}

// Take takes n, or all there ever is if that is less, from the agent's budget and returns 0, or how long until there is
// as much.
func (b *Budgets) Take(agent string, n, perMinute int, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.swept) > time.Minute {
		for id, x := range b.byAgent {
			if now.Sub(x.used) > 2*time.Minute { // full again: the same as none
				delete(b.byAgent, id)
			}
		}
		b.swept = now
	}
	x := b.byAgent[agent]
	if x == nil || x.perMin != perMinute {
		if b.byAgent == nil {
			b.byAgent = map[string]*budget{}
		}
		x = &budget{limiter: rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute), perMin: perMinute}
		b.byAgent[agent] = x
	}
	x.used = now
	r := x.limiter.ReserveN(now, min(n, perMinute))
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		if b.refused == nil {
			b.refused = map[string]int{}
		}
		b.refused[agent]++
		return wait
	}
	return 0
}
