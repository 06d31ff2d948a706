package fleet

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
)

// Anybody can be refused as often as they like: the record takes that many lines at once, and one more in five seconds.
const (
	refusalsAtOnce   = 50
	refusalsASecond  = 0.2
	maxRefusedTarget = 210 // bytes of what was asked for
)

// refusals bounds the audit lines about refused requests. The zero value is ready.
type refusals struct {
	once    sync.Once
	limiter *rate.Limiter
}

func (r *refusals) allow() bool {
	r.once.Do(func() { r.limiter = rate.NewLimiter(refusalsASecond, refusalsAtOnce) })
	return r.limiter.Allow()
}

// Refused leaves an audit line about a request that was refused for who sent it: who that is as far as it was proved,
// what was asked for, and the code of the answer. A few a second at the most, of all protocols together. The line is
// written whether or not its cause stays to hear the answer.
func (f *Fleet) Refused(ctx context.Context, actor, target, code string) {
	if !f.refusals.allow() {
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
