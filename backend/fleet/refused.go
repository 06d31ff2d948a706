package fleet

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

// Anybody can be refused as often as they like: the record takes that many lines of each at once, and one more in five
// seconds; the rest is counted, a line a minute. Beyond so many actors all others count as one.
const (
	refusalsAtOnce   = 50
	refusalsASecond  = 0.2
	refusedActors    = 200
	maxRefusedTarget = 210 // bytes of what was asked for
	otherActors      = "others"
)

// refusals bounds the audit lines about refused requests, so that the refusals of one hide nobody else's. The zero value
// is ready.
type refusals struct {
	mu sync.Mutex
	by map[string]*refused
}

// refused is what one actor was refused: how often a line may be written of it, and how many have none.
type refused struct {
	limit *rate.Limiter
	more  int
}

// allow says whether a refusal of actor has a line of its own; one that has none is counted.
func (r *refusals) allow(actor string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*refused{}
	}
	if r.by[actor] == nil && len(r.by) >= refusedActors {
		actor = otherActors
	}
	of := r.by[actor]
	if of == nil {
		of = &refused{limit: rate.NewLimiter(refusalsASecond, refusalsAtOnce)}
		r.by[actor] = of
	}
	if of.limit.Allow() {
		return true
	}
	of.more++
	return false
}

// uncounted takes how many refusals of each actor have no line yet.
func (r *refusals) uncounted() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for actor, of := range r.by {
		if of.more > 0 {
			n[actor], of.more = of.more, 0
		}
	}
	return n
}

// Refused leaves an audit line about a request that was refused for who sent it: who that is as far as it was proved,
// what was asked for, and the code of the answer. Bounded for each actor, over all protocols together; what goes beyond is
// told by its number (see Run). The line is written whether or not its cause stays to hear the answer.
func (f *Fleet) Refused(ctx context.Context, actor, target, code string) {
	if !f.refusals.allow(actor) {
		return
	}
	if len(target) > maxRefusedTarget {
		target = target[:maxRefusedTarget]
	}
	f.recordRefused(ctx, actor, target, code)
}

// countRefused leaves a line for each actor that was refused more often than has lines of its own.
func (f *Fleet) countRefused(ctx context.Context) {
	for actor, n := range f.refusals.uncounted() {
		f.recordRefused(ctx, actor, fmt.Sprintf("%d more", n), "counted")
	}
}

func (f *Fleet) recordRefused(ctx context.Context, actor, target, code string) {
	line := Audit{At: f.Now(), Actor: actor, Action: RefusedAction, Target: target, Result: code}
	if err := f.Store.Audit(context.WithoutCancel(ctx), line); err != nil {
		f.Log.Error("audit", "err", err)
	}
}
