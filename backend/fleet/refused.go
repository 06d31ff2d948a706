package fleet

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
)

// Anybody can be refused as often as they like: the record takes that many lines of each at once, and one more in five
// seconds. Beyond so many actors all others count as one.
const (
	refusalsAtOnce   = 50
	refusalsASecond  = 0.2
	refusedActors    = 200
	maxRefusedTarget = 210 // bytes of what was asked for
)

// refusals bounds the audit lines about refused requests, so that the refusals of one hide nobody else's. The zero value
// is ready.
type refusals struct {
	mu sync.Mutex
	by map[string]*rate.Limiter
}

func (r *refusals) allow(actor string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*rate.Limiter{}
	}
	if r.by[actor] == nil && len(r.by) >= refusedActors {
		actor = ""
	}
	if r.by[actor] == nil {
		r.by[actor] = rate.NewLimiter(refusalsASecond, refusalsAtOnce)
	}
	return r.by[actor].Allow()
}

// Refused leaves an audit line about a request that was refused for who sent it: who that is as far as it was proved,
// what was asked for, and the code of the answer. Bounded for each actor, over all protocols together. The line is written
// whether or not its cause stays to hear the answer.
func (f *Fleet) Refused(ctx context.Context, actor, target, code string) {
	if !f.refusals.allow(actor) {
		return
	}
	if len(target) > maxRefusedTarget {
		target = target[:maxRefusedTarget]
	}
	line := Audit{At: f.Now(), Actor: actor, Action: RefusedAction, Target: target, Result: code}
	if err := f.Store.Audit(context.WithoutCancel(ctx), line); err != nil {
		f.Log.Error("audit", "err", err)
	}
}
