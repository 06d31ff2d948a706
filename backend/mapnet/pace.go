package mapnet

import "time"

// window counts within a minute.
type window struct {
	since int64
	n     int
}

// pace is how often a participant did something within a minute, and all of its principal: new connections do not make more of it.
type pace struct {
	own, all *window
	most     int // of one's own; five times as many of all
	now      int64
}

func (t *Tx) pace(p *participant, act string, most int) pace {
	counting := func(who string) *window {
		key := act + " " + who
		w := t.st.paces[key]
		if w == nil || t.now-w.since > time.Minute.Milliseconds() {
			w = &window{since: t.now}
			t.st.paces[key] = w
		}
		return w
	}
	return pace{counting(p.name()), counting("principal " + p.Principal.ID), most, t.now}
}

// check refuses n more if that is too many.
func (p pace) check(n int, what string) error {
	w := p.own
	if w.n+n <= p.most {
		w = p.all
		if w.n+n <= 5*p.most {
			return nil
		}
	}
	e := refuse(CodeRateLimited, "Too many %s", what)
	e.RetryAfter = time.Duration(w.since+time.Minute.Milliseconds()-p.now) * time.Millisecond
	return e
}

func (p pace) count(n int) {
	p.own.n += n
	p.all.n += n
}
