package backend

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// saw is what one act showed of how an item stands: it began and was answered at these times by one monotonic clock.
type saw struct {
	who      string
	from, to time.Duration
	status   string // of the item; empty: that it has ended, however
	outcome  string // the id of its outcome, where that was shown
	won      bool   // this act was told that it ended the item
}

func (s saw) ended() bool { return s.status != "open" }

// judge says what is wrong with the history of one item that ends once (MA2H §7): whatever is shown of its end is the same
// to everybody, at most one act brought it about, and once anybody was told that it ended, nobody who asks after that is
// shown an open item. Acts that overlap in time may come in any order.
func judge(history []saw) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	byEnd := slices.SortedFunc(slices.Values(history), func(a, b saw) int { return cmp.Compare(a.to, b.to) })
	var first, known, named, winner *saw // the first answer that told of an end, of which, of its outcome, and to its author
	for i := range byEnd {
		s := &byEnd[i]
		if !s.ended() {
			continue
		}
		if first == nil {
			first = s
		}
		switch {
		case s.status == "":
		case known == nil:
			known = s
		case known.status != s.status:
			fault("%s saw %s, and %s saw %s", known.who, known.status, s.who, s.status)
		}
		switch {
		case s.outcome == "":
		case named == nil:
			named = s
		case named.outcome != s.outcome:
			fault("%s saw the outcome %s, and %s saw %s", named.who, named.outcome, s.who, s.outcome)
		}
		if s.won {
			if winner != nil {
				fault("%s and %s both ended it", winner.who, s.who)
			}
			winner = s
		}
	}
	if first == nil {
		return faults
	}
	for _, s := range history {
		if !s.ended() && s.from > first.to {
			fault("%s saw it open, asking %v after %s was told that it had ended", s.who, s.from-first.to, first.who)
		}
	}
	return faults
}

// The judge must be one that finds somebody guilty.
func TestJudgeOfHistories(t *testing.T) {
	open := func(who string, from, to time.Duration) saw { return saw{who: who, from: from, to: to, status: "open"} }
	end := func(who string, from, to time.Duration, status, outcome string, won bool) saw {
		return saw{who: who, from: from, to: to, status: status, outcome: outcome, won: won}
	}
	for name, x := range map[string]struct {
		history []saw
		faults  int
	}{
		"nothing":                  {nil, 0},
		"open":                     {[]saw{open("r", 0, 1), open("r", 2, 3)}, 0},
		"an end and its readers":   {[]saw{open("r", 0, 1), end("w", 2, 5, "answered", "1", true), end("r", 3, 4, "answered", "1", false), end("r", 6, 7, "answered", "", false)}, 0},
		"open while it ends":       {[]saw{end("w", 2, 5, "answered", "1", true), open("r", 3, 6), open("r", 5, 6)}, 0},
		"open after it ended":      {[]saw{end("w", 2, 5, "answered", "1", true), open("r", 6, 7)}, 1},
		"open after it was read":   {[]saw{end("r", 2, 3, "answered", "1", false), open("r", 4, 5), end("w", 1, 9, "answered", "1", true)}, 1},
		"open after its deadline":  {[]saw{end("clock", 2, 3, "", "", false), open("r", 4, 5)}, 1},
		"two ends":                 {[]saw{end("a", 0, 5, "answered", "1", true), end("b", 0, 5, "declined", "2", true)}, 3},
		"two winners of one":       {[]saw{end("a", 0, 5, "answered", "1", true), end("b", 0, 5, "answered", "1", true)}, 1},
		"another outcome later":    {[]saw{end("a", 0, 5, "answered", "1", true), end("r", 6, 7, "answered", "2", false)}, 1},
		"another status, no names": {[]saw{end("a", 0, 5, "answered", "", false), end("r", 6, 7, "expired", "", false)}, 1},
	} {
		if got := judge(x.history); len(got) != x.faults {
			t.Errorf("%s: %q, want %d faults", name, got, x.faults)
		}
	}
}

// race is one ask that many end and look at, at once.
type race struct {
	t     *testing.T
	start time.Time
	id    string
	mu    sync.Mutex
	all   []saw
}

// act does something and notes what it showed; the answer's own words say what that is.
func (r *race) act(who string, do func() (reply, error)) {
	s := saw{who: who, from: time.Since(r.start)}
	got, err := do()
	s.to = time.Since(r.start)
	if err != nil {
		r.t.Errorf("%s: %v", who, err)
		return
	}
	switch {
	case got.status == http.StatusConflict && got.code() == "already_terminal":
		s.status = got.get("resolution")
	case got.status == http.StatusOK || got.status == http.StatusAccepted:
		s.status, s.outcome = got.get("status"), cmp.Or(got.get("resolution_id"), got.get("response", "resolution_id"))
		s.won = got.get("resolution_id") != ""
	default:
		r.t.Errorf("%s: %d %s", who, got.status, got.body)
		return
	}
	r.note(s)
}

// ends notes that the item had ended by the time do was done, in whichever way.
func (r *race) ends(who string, do func()) {
	s := saw{who: who, from: time.Since(r.start)}
	do()
	s.to = time.Since(r.start)
	r.note(s)
}

func (r *race) note(s saw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, s)
}

// Whoever answers, takes back, lets go of its session or runs the clock while others look on by every way there is: the
// first end wins, everybody is told the same one, and no look that began after anybody was told shows an open ask.
func TestFirstEndIsLinearizable(t *testing.T) {
	t.Parallel()
	h, c := openBox(t)
	h.set("rate_limit.requests_per_minute", 1_000_000, "rate_limit.inbox_depth", 100_000, "sessions.max_live_per_agent", 1000)
	a, b := h.peer("a"), h.peer("b")
	var running *race
	var runningMu sync.Mutex
	push := newReceiver(t, func(pushed) signing.Key { return a.key })
	push.now = c.now
	push.answer = func(n int, w http.ResponseWriter, _ *http.Request) {
		p := push.all()[n-1]
		runningMu.Lock()
		r := running
		runningMu.Unlock()
		if r.id == p.id { // its receiver knows of the end from here on
			at, e := time.Since(r.start), reply{t: t, body: p.body}
			r.note(saw{who: "the receiver", from: at, to: at, status: e.get("resolution"), outcome: e.get("resolution_id")})
		}
		w.WriteHeader(http.StatusNoContent)
	}
	h.approve("a", push.host())
	ways := map[string]int{}
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		as, bs := a.register(), b.register()
		deadline := c.now().Add(time.Minute)
		m := a.to("ask", "agent:b#"+bs, as).with("expires_at", stamp(deadline))
		m["request"].(msg)["callback"] = msg{"mode": "push", "url": push.URL + "/cb"}
		r := &race{t: t, start: time.Now(), id: a.send(m)}
		runningMu.Lock()
		running = r
		runningMu.Unlock()
		ctx, path := t.Context(), "/v1/messages/"+r.id
		resolve := func(who *client, session string, body msg) func() {
			return func() {
				r.act("a resolver", func() (reply, error) { return who.try(ctx, "POST", path+"/resolve"+q(session), body) })
			}
		}
		// Who ends it, some of them in each round.
		ends := []func(){
			resolve(b.client, "", msg{"resolution": "answered", "value": "approve"}), resolve(b.client, "", msg{"resolution": "answered", "value": "deny"}),
			resolve(b.client, "", msg{"resolution": "declined"}),
			func() {
				r.act("the submitter", func() (reply, error) { return a.try(ctx, "POST", path+"/cancel", nil) })
			},
			func() {
				r.ends("the session's owner", func() {
					if _, err := b.try(ctx, "DELETE", "/v1/sessions/"+bs, nil); err != nil {
						t.Error(err)
					}
				})
			},
			func() { r.ends("the clock", func() { c.set(deadline.Add(time.Millisecond)) }) },
		}
		rand.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		ends = ends[:2+round%(len(ends)-1)]
		looks := map[string]func(context.Context) (reply, error){
			"the submitter's pull": func(ctx context.Context) (reply, error) { return a.try(ctx, "GET", path, nil) },
			"the person's look":    func(ctx context.Context) (reply, error) { return h.operator().try(ctx, "GET", path, nil) },
			"a retry":              func(ctx context.Context) (reply, error) { return a.try(ctx, "POST", "/v1/messages", m) },
			"the person's list": func(ctx context.Context) (reply, error) {
				got, err := h.operator().try(ctx, "GET", "/v1/messages?limit=1", nil)
				if err == nil {
					got.body = []byte(strings.TrimSuffix(strings.TrimPrefix(got.get("messages"), "["), "]"))
				}
				return got, err
			},
		}
		var all sync.WaitGroup
		begin := make(chan struct{})
		for _, end := range ends {
			wait := time.Duration(rand.IntN(4000)) * time.Microsecond
			all.Go(func() {
				<-begin
				<-time.After(wait)
				end()
			})
		}
		for who, look := range looks {
			all.Go(func() {
				<-begin
				for range 12 {
					r.act(who, func() (reply, error) { return look(ctx) })
				}
			})
		}
		all.Go(func() { // whoever waits is woken by the end
			<-begin
			r.act("a waiting pull", func() (reply, error) { return a.try(ctx, "GET", path+"?wait=5", nil) })
		})
		close(begin)
		all.Wait()
		r.act("the last look", func() (reply, error) { return a.try(ctx, "GET", path, nil) })
		push.next()
		last := r.all[len(r.all)-1]
		for _, f := range judge(r.all) {
			t.Errorf("round %d (%s): %s", round, last.status, f)
		}
		ways[last.status]++
		c.move(time.Hour) // their sessions end
	}
	t.Logf("ended: %v", ways)
	if len(ways) < 3 && !testing.Short() {
		t.Errorf("all %d rounds ended in %v: no race", rounds, ways)
	}
}
