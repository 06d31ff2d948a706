package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
	"deskbell/backend/supervise"
)

func TestMain(m *testing.M) {
	supervise.Main()
	if os.Getenv(websocatChild) != "" {
		exit(websocat(os.Args[1:]))
	}
	if code, isPi := piChild(); isPi {
		exit(code)
	}
	if code, isChild := child(); isChild {
		exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(exit), goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

func TestFiftyIdenticalSubmitsAreOneMessage(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	m := bot.ask()
	ids := make([]string, 50)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range ids {
		wg.Go(func() {
			<-start
			ids[i] = bot.submit(m)
		})
	}
	close(start)
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("%v", ids)
		}
	}
	if got := bot.call("GET", "/v1/messages", nil).want(200); strings.Count(string(got.body), `"idempotency_key"`) != 1 {
		t.Errorf("%s", got.body)
	}
}

// However many decide at once, and whatever they decide, one does and the others are shown that.
func TestOneEnd(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	for range 5 {
		id := bot.submit(bot.ask())
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := map[string]int{}
		var told []string
		note := func(r reply) {
			mu.Lock()
			defer mu.Unlock()
			if r.status == http.StatusOK {
				won[r.get("status")]++
			}
			told = append(told, r.get("status"))
		}
		start := make(chan struct{})
		for i := range 12 {
			wg.Go(func() {
				<-start
				switch i % 3 {
				case 0:
					note(h.operator().answer(id, yes))
				case 1:
					note(h.operator().answer(id, msg{"resolution": "declined"}))
				case 2:
					note(bot.call("POST", "/v1/messages/"+id+"/cancel", nil))
				}
			})
		}
		close(start)
		wg.Wait()
		final := string(h.item(id).State)
		if len(won) != 1 || won[final] == 0 || (final != "cancelled" && won[final] != 1) {
			t.Fatalf("won %v, is %s", won, final)
		}
		for _, s := range told {
			if s != final {
				t.Fatalf("told %v, is %s", told, final)
			}
		}
	}
}

func TestAWaitingPullWakes(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	ends := map[string]func(id string){
		"answered":  func(id string) { h.operator().answer(id, yes).want(200) },
		"cancelled": func(id string) { bot.call("POST", "/v1/messages/"+id+"/cancel", nil).want(200) },
		"expired":   func(string) {},
	}
	for want, end := range ends {
		m := bot.ask()
		if want == "expired" {
			m = m.with("expires_at", time.Now().Add(2*time.Second).UTC())
		}
		id := bot.submit(m)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				begun := time.Now()
				r := bot.call("GET", "/v1/messages/"+id+"?wait=60", nil)
				if r.want(200); r.get("status") != want || r.get("delivery", "state") != "delivered-to-agent" || time.Since(begun) > 20*time.Second {
					t.Errorf("%s after %v", r.body, time.Since(begun))
				}
			})
		}
		eventually(t, "the agent waits, and the page says so", func() bool {
			return h.item(id).State != inbox.Open || h.operator().call("GET", "/api/items/"+id, nil).get("waiting_now") == "true"
		})
		end(id)
		wg.Wait()
		if h.hub.inbox.WaitingNow(id) {
			t.Error("still said to wait")
		}
	}
}

func TestAPullThatIsGivenUpLeavesNothing(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if r, err := bot.try(ctx, "GET", "/v1/messages/"+id+"?wait=60", nil); err == nil {
			t.Errorf("answered: %s", r.body)
		}
	}()
	eventually(t, "the agent waits", func() bool { return h.hub.inbox.WaitingNow(id) })
	cancel()
	<-ended
	eventually(t, "nobody waits", func() bool { return !h.hub.inbox.WaitingNow(id) })
	h.operator().answer(id, yes).want(200)
	if h.item(id).Track.State != inbox.TrackNone {
		t.Error("delivered to nobody")
	}
}

// A hub that stops lets what waits go, and does not call that an answer.
func TestStopWithPullsWaiting(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	came := make(chan reply, 1)
	go func() {
		r, err := bot.try(context.Background(), "GET", "/v1/messages/"+id+"?wait=60", nil)
		if err != nil {
			r.status = -1 // cut off: as good
		}
		came <- r
	}()
	eventually(t, "the agent waits", func() bool { return h.hub.inbox.WaitingNow(id) })
	begun := time.Now()
	h.stop()
	if d := time.Since(begun); d > 3*time.Second {
		t.Errorf("stopped after %v", d)
	}
	if r := <-came; r.status != -1 && r.status != http.StatusServiceUnavailable {
		t.Errorf("%d %q", r.status, r.body)
	}
	h.start()
}

func TestHeldDecision(t *testing.T) {
	c := &clock{at: time.Now().UTC().Truncate(time.Millisecond)}
	h := openHouse(t, withClock(c))
	bot := h.agent("bot")
	h.operator().call("PATCH", "/v1/settings", msg{"resolve.hold_seconds": 30}).want(200)
	decide := func(id string, body any) reply { return h.operator().call("POST", "/api/items/"+id+"/resolve", body) }
	status := func(id string) string { return bot.call("GET", "/v1/messages/"+id, nil).want(200).get("status") }

	t.Run("is committed when its time has passed", func(t *testing.T) {
		id := bot.submit(bot.ask())
		if r := decide(id, yes).want(200); r.get("state") != "open" || r.get("held_decision", "resolution") != "answered" {
			t.Errorf("%s", r.body)
		}
		if r := h.operator().call("GET", "/api/items?kept=true", nil).want(200); r.get("total") != "1" || r.get("rows", "0", "id") != id {
			t.Errorf("%s", r.body)
		}
		at := c.now().Add(30 * time.Second)
		c.move(29 * time.Second)
		if s := status(id); s != "open" {
			t.Errorf("%s", s)
		}
		c.move(5 * time.Second)
		r := bot.call("GET", "/v1/messages/"+id, nil).want(200)
		if r.get("status") != "answered" || r.get("response", "response", "resolved_at") != inbox.FormatTime(at) {
			t.Errorf("%s", r.body)
		}
		if r := h.operator().call("GET", "/api/items?kept=true", nil).want(200); r.get("total") != "0" {
			t.Errorf("%s", r.body)
		}
		if r := h.operator().call("POST", "/api/items/"+id+"/undo", nil); r.want(409).code() != "already_terminal" || r.get("item", "state") != "answered" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("can be taken back", func(t *testing.T) {
		id := bot.submit(bot.ask())
		decide(id, yes).want(200)
		if r := h.operator().call("POST", "/api/items/"+id+"/undo", nil).want(200); r.get("held_decision") != "" {
			t.Errorf("%s", r.body)
		}
		c.move(time.Minute)
		if s := status(id); s != "open" {
			t.Errorf("%s", s)
		}
	})
	t.Run("stands until it is taken back", func(t *testing.T) {
		id := bot.submit(bot.ask())
		decide(id, yes).want(200)
		other := msg{"resolution": "declined"}
		for _, path := range []string{"/api/items/", "/v1/messages/"} {
			if r := h.operator().call("POST", path+id+"/resolve", other).want(409); r.code() != "already_decided" {
				t.Errorf("%s", r.body)
			}
		}
		h.operator().call("POST", "/api/items/"+id+"/undo", nil).want(200)
		decide(id, other).want(200)
		c.move(time.Minute)
		if s := status(id); s != "declined" {
			t.Errorf("%s", s)
		}
	})
	t.Run("survives a restart", func(t *testing.T) {
		id := bot.submit(bot.ask())
		decide(id, msg{"resolution": "declined", "comment": "no"}).want(200)
		h.restart()
		if s := status(id); s != "open" {
			t.Errorf("%s", s)
		}
		c.move(31 * time.Second)
		h.restart()
		eventually(t, "committed by the clock", func() bool { return h.item(id).State == inbox.Declined })
	})
	t.Run("is committed at the deadline when that comes first", func(t *testing.T) {
		id := bot.submit(bot.ask().with("expires_at", c.now().Add(10*time.Second)))
		decide(id, yes).want(200)
		c.move(time.Minute)
		if s := status(id); s != "answered" {
			t.Errorf("%s", s)
		}
	})
	t.Run("loses to the submitter's cancel", func(t *testing.T) {
		id := bot.submit(bot.ask())
		decide(id, yes).want(200)
		bot.call("POST", "/v1/messages/"+id+"/cancel", nil).want(200)
		c.move(time.Minute)
		page := h.operator().call("GET", "/api/items/"+id, nil).want(200)
		if page.get("state") != "cancelled" || page.get("history", "1", "action") != "decision dropped" || page.get("history", "1", "actor") != inbox.HubActor || page.get("history", "2", "action") != "cancelled" {
			t.Errorf("%s", page.body)
		}
	})
	t.Run("is judged when it is made", func(t *testing.T) {
		id := bot.submit(bot.ask())
		decide(id, msg{"resolution": "answered", "value": "maybe"}).want(422)
		decide(id, msg{"resolution": "completed"}).want(422)
		decide(id, msg{"resolution": "answered"}).want(422)
		decide("msg_none", yes).want(404)
	})
}

func TestSnooze(t *testing.T) {
	c := &clock{at: time.Now().UTC().Truncate(time.Millisecond)}
	h := openHouse(t, withClock(c))
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	mark := func(m msg) reply { return h.operator().call("POST", "/api/items/"+id+"/marks", m) }
	until := c.now().Add(time.Hour).UnixMilli()
	if r := mark(msg{"read": true, "snoozed_until": until}).want(200); r.get("box") != "waiting" {
		t.Errorf("%s", r.body)
	}
	mark(msg{"snoozed_until": c.now().UnixMilli()}).want(422)
	mark(msg{"snoozed_until": "soon"}).want(422)
	if s := bot.call("GET", "/v1/messages/"+id, nil).get("status"); s != "open" {
		t.Errorf("the agent sees %s", s)
	}
	c.move(time.Hour + time.Second)
	h.restart() // what fell due while nothing ran
	eventually(t, "back, and unread", func() bool { it := h.item(id); return it.Box() == "needs" && !it.Marks.Read })
	mark(msg{"snoozed_until": c.now().Add(time.Hour).UnixMilli()}).want(200)
	if r := mark(msg{"snoozed_until": nil}).want(200); r.get("box") != "needs" {
		t.Errorf("%s", r.body)
	}
}

func TestRetention(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	bot, other := h.agent("bot"), h.agent("other")
	collected, uncollected, open, old := bot.submit(bot.ask()), bot.submit(bot.ask()), bot.submit(bot.ask()), bot.submit(bot.ask().with("ma2h_version", "0.4"))
	read, unread := bot.submit(bot.envelope("notify")), bot.submit(bot.envelope("notify"))
	h.operator().call("POST", "/api/items/"+read+"/marks", msg{"read": true}).want(200)
	for _, id := range []string{collected, uncollected, old} {
		h.operator().answer(id, yes).want(200)
	}
	bot.call("GET", "/v1/messages/"+collected, nil).want(200)
	c.move(30*24*time.Hour - time.Minute)
	h.restart()
	bot.call("GET", "/v1/messages/"+collected, nil).want(200)
	c.move(2 * time.Minute)
	h.restart()
	gone := func(id string) bool { return bot.call("GET", "/v1/messages/"+id, nil).status == http.StatusGone }
	eventually(t, "the collected one is gone", func() bool { return gone(collected) })
	eventually(t, "the uncollected ones cannot be collected any more", func() bool { return gone(uncollected) && gone(old) })
	eventually(t, "the read notice is gone", func() bool { return gone(read) })
	for _, id := range []string{open, unread} {
		bot.call("GET", "/v1/messages/"+id, nil).want(200)
	}
	// The person still sees that the answer was never seen.
	if got := h.operator().call("GET", "/v1/messages/"+uncollected, nil).want(200); got.get("delivery", "state") != "expired" || got.get("delivery", "delivered_at") != "" {
		t.Errorf("%s", got.body)
	}
	if got := h.operator().call("GET", "/v1/messages/"+old, nil).want(200); got.get("delivery") != "" {
		t.Errorf("0.4 does not know an expired delivery: %s", got.body)
	}
	bot.call("POST", "/v1/messages/"+uncollected+"/ack", nil).want(409)
	for _, id := range []string{collected, uncollected, read} {
		if r := other.call("GET", "/v1/messages/"+id, nil); r.status != 404 || r.code() != "not_found" {
			t.Errorf("a stranger learns of %s: %d", id, r.status)
		}
		other.answer(id, yes).want(404)
	}
	bot.answer(collected, yes).want(404)
	bot.call("POST", "/v1/messages/"+collected+"/cancel", nil).want(410)
	c.move(31 * 24 * time.Hour)
	h.restart()
	eventually(t, "the uncollected one is gone for the person too", func() bool {
		return h.operator().call("GET", "/v1/messages/"+uncollected, nil).status != 200
	})
	if !gone(uncollected) {
		t.Error("its submitter is not told that it is gone")
	}
}

func TestSettings(t *testing.T) {
	h := openHouse(t)
	op := h.operator()
	patch := func(m any) reply { return op.call("PATCH", "/v1/settings", m) }
	before := op.call("GET", "/v1/settings", nil).want(200)
	for _, bad := range []string{
		`{"retention_days":7,"no.such":1}`, `{"retention_days":7,"rate_limit.inbox_depth":0}`, `{"retention_days":"7"}`, `{"retention_days":1.5}`, `{"retention_days":null}`,
		`{"retention_days":99999999999999999999}`, `{"retention_days":-1}`, `{"retention_days":0}`, `{"callbacks.allow_loopback":"true"}`, `{"callbacks.allow_loopback":1}`,
		`{"operator.id":""}`, `{"operator.id":"a b"}`, `{"operator.id":"a#b"}`, `{"operator.id":"a/b"}`, `{"operator.id":7}`, `{"resolve.hold_seconds":-1}`,
		`{"inbound.stream_max_hold_seconds":91}`, `{"presence.freshness_seconds":59}`, `{"inbound.stream_max_hold_seconds":20,"presence.freshness_seconds":10}`,
		`{"sessions.min_ttl_seconds":3601}`, `{"sessions.max_ttl_seconds":119}`, `{"inbound.max_batch":0}`,
	} {
		r := patch(bad)
		if r.status != 422 || r.code() != "invalid_field" || !strings.Contains(r.get("error", "details"), `"pointer":"/`) {
			t.Errorf("%s: %d %s", bad, r.status, r.body)
		}
	}
	for _, bad := range []string{`[]`, `{"a":1,"a":2}`, `7`, `{`} {
		patch(bad).want(400)
	}
	if after := op.call("GET", "/v1/settings", nil).want(200); string(after.body) != string(before.body) {
		t.Errorf("a refused change left %s", after.body)
	}
	bot := h.agent("bot")
	bot.call("GET", "/v1/settings", nil).want(403)
	bot.call("PATCH", "/v1/settings", `{"retention_days":7}`).want(403)
	(&client{h: h}).call("GET", "/v1/settings", nil).want(401)

	patch(`{"inbound.stream_max_hold_seconds":1,"presence.freshness_seconds":1,"sessions.min_ttl_seconds":1,"inbound.visibility_timeout_seconds":1,"retention_days":1}`).want(200)
	patch(`{"rate_limit.requests_per_minute":2,"rate_limit.inbox_depth":2}`).want(200)
	capability := bot.call("GET", "/.well-known/ma2h", nil).want(200)
	if capability.get("retention_days") != "1" || capability.get("rate_limit", "requests_per_minute") != "2" || capability.get("rate_limit", "inbox_depth") != "2" {
		t.Errorf("%s", capability.body)
	}
	bot.submit(bot.ask())
	bot.call("POST", "/v1/messages", `not even JSON`).want(400) // counts as well
	if r := bot.call("POST", "/v1/messages", bot.ask()); r.status != 429 || r.code() != "rate_limited" || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	other := h.agent("other") // a budget of its own
	other.submit(other.ask())
	patch(`{"rate_limit.requests_per_minute":1000}`).want(200)
	two := bot.ask()
	bot.submit(two)
	if r := bot.call("POST", "/v1/messages", bot.ask()); r.status != 429 || r.code() != "rate_limited" {
		t.Errorf("a third open one: %d %s", r.status, r.body)
	}
	bot.submit(two)                    // a repeat is no new one
	bot.submit(bot.envelope("notify")) // nor is a notice open
	h.restart()
	if got := op.call("GET", "/v1/settings", nil); got.status == 401 {
		got = h.operator().call("GET", "/v1/settings", nil)
		t.Errorf("the operator's token changed: %s", got.body)
	} else if got.get("rate_limit.inbox_depth") != "2" || got.get("retention_days") != "1" {
		t.Errorf("after a restart: %s", got.body)
	}
}

// The operator's name decides whose the questions are, at once.
func TestOperatorNameReclassifies(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask(msg{"allowed_resolvers": []string{"human:zoe"}}))
	if b := h.item(id).Box(); b != "waiting" {
		t.Errorf("%s", b)
	}
	h.operator().answer(id, yes).want(403)
	h.operator().call("PATCH", "/v1/settings", `{"operator.id":"zoe"}`).want(200)
	if b := h.item(id).Box(); b != "needs" {
		t.Errorf("%s", b)
	}
	if got := bot.call("GET", "/.well-known/ma2h", nil).get("operator"); got != "human:zoe" {
		t.Errorf("%s", got)
	}
	h.operator().answer(id, yes).want(200)
	if got := bot.call("GET", "/v1/messages/"+id, nil).get("response", "response", "actor"); got != "human:zoe" {
		t.Errorf("%s", got)
	}
	// The policy does the same for what names nobody.
	id = bot.submit(bot.ask(msg{"allowed_resolvers": nil}).with("request", msg{"mode": "confirm"}))
	if b := h.item(id).Box(); b != "waiting" {
		t.Errorf("%s", b)
	}
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"operator_resolves_unlisted": true}).want(200)
	if b := h.item(id).Box(); b != "needs" {
		t.Errorf("%s", b)
	}
}

// lateStore does something just before a message is written: whatever was looked up before that is stale by then.
type lateStore struct {
	mailbox.Store
	late func()
}

func (l lateStore) Do(ctx context.Context, fn func(mailbox.Tx) error) error {
	l.late()
	return l.Store.Do(ctx, fn)
}

type lateItems struct {
	inbox.Store
	late func()
}

func (l lateItems) Insert(ctx context.Context, n inbox.New) (inbox.Item, []byte, bool, error) {
	l.late()
	return l.Store.Insert(ctx, n)
}

// A policy that changes while a message is being stored holds for that message too, by either way in.
func TestPolicyChangedDuringASubmit(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	like := h.item(bot.submit(bot.envelope("ask").with("request", msg{"mode": "confirm"})))
	allow := func() {
		h.operator().call("PUT", "/v1/agents/bot/policy", msg{"operator_resolves_unlisted": true}).want(200)
	}
	box, in := h.hub.mailbox.Config, h.hub.inbox.Config
	box.Store, in.Store = lateStore{Store: box.Store, late: allow}, lateItems{in.Store, allow}
	for name, submit := range map[string]func(inbox.New) error{
		"mailbox": func(n inbox.New) error {
			_, err := mailbox.New(box).Submit(t.Context(), n, nil, mailbox.Unfit{})
			return err
		},
		"inbox": func(n inbox.New) error { _, _, err := inbox.NewInbox(in).Submit(t.Context(), n); return err },
	} {
		h.operator().call("PUT", "/v1/agents/bot/policy", msg{"operator_resolves_unlisted": false}).want(200)
		it := like
		it.ID = inbox.NewItemID()
		if err := submit(inbox.New{Item: it, Entry: inbox.Entry{At: it.ReceivedAt, Actor: "agent:bot", Action: "submitted"}}); err != nil {
			t.Fatal(err)
		}
		if b := h.item(it.ID).Box(); b != "needs" {
			t.Errorf("%s: %s", name, b)
		}
	}
}

func TestHeadOfTheEventsEnds(t *testing.T) {
	h := openHouse(t)
	h.operator().call("HEAD", "/api/events", nil).want(200)
}

// An agent whose name reads like somebody else's is not that.
func TestNamesThatReadLikeOthers(t *testing.T) {
	h := openHouse(t)
	h.operator().call("PATCH", "/v1/settings", `{"operator.id":"alice"}`).want(200)
	h.operator().call("POST", "/v1/agents", msg{"agent_id": "human:alice"}).want(422)
	mallory := h.agentOfOld("human:alice") // from before such ids were kept for the person
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	mallory.answer(id, yes).want(404)
	mallory.call("GET", "/v1/settings", nil).want(403)
	own := mallory.submit(mallory.ask(msg{"allowed_resolvers": []string{"agent:human:alice"}}))
	mallory.answer(own, yes).want(200)
	if got := mallory.call("GET", "/v1/messages/"+own, nil).get("response", "response", "actor"); got != "agent:human:alice" {
		t.Errorf("%s", got)
	}
}

func TestSearchIsNoLanguage(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	bot.submit(bot.ask().with("title", `Ship "release" AND (NOT rollback) café`))
	for q, found := range map[string]bool{
		"release": true, "relea": true, "RELEASE": true, "cafe": true, "café": true, "ship rollback": true, `"`: false, `""`: false, "AND": true, "NOT rollback": true,
		"NEAR(ship, release)": false, "title:ship": false, "ship*": true, "*": false, "(": false, "x' OR 1=1 --": false, "\x00": false, "ship\x00release": true, "\u0301": false, "-ship": true, "^ship": true, "absent": false,
	} {
		r := h.operator().call("GET", "/v1/messages?q="+url.QueryEscape(q), nil).want(200)
		var got struct{ Messages []json.RawMessage }
		r.into(&got)
		if strings.TrimSpace(q) != "" && (len(got.Messages) == 1) != found {
			t.Errorf("%q: %d found", q, len(got.Messages))
		}
	}
	for _, c := range []string{"x", "!!!", "MS4yLjM", "LTE", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5"} {
		if r := h.operator().call("GET", "/v1/messages?cursor="+c, nil); r.status != 200 && r.status != 400 {
			t.Errorf("cursor %s: %d", c, r.status)
		}
	}
	h.operator().call("GET", "/v1/messages?limit=0", nil).want(400)
	h.operator().call("GET", "/v1/messages?type=poll", nil).want(400)
}

func TestPagesAreWhole(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	want := map[string]bool{}
	for i := range 25 {
		m := bot.ask().with("priority", []string{"low", "normal", "high", "urgent"}[i%4])
		id := bot.submit(m)
		want[id] = true
		if i%3 == 0 {
			h.operator().answer(id, yes).want(200)
		}
	}
	for _, query := range []string{"", "&status=open", "&type=ask", "&agent=bot&protocol=ma2h"} {
		seen, cursor := map[string]bool{}, ""
		for {
			var got struct {
				Messages []struct{ ID, Status string }
				Next     *string `json:"next_cursor"`
			}
			h.operator().call("GET", "/v1/messages?limit=4"+query+"&cursor="+url.QueryEscape(cursor), nil).want(200).into(&got)
			for _, m := range got.Messages {
				if seen[m.ID] {
					t.Fatalf("%s: %s twice", query, m.ID)
				}
				seen[m.ID] = true
			}
			if got.Next == nil {
				break
			}
			cursor = *got.Next
		}
		n := 25
		if query == "&status=open" {
			n = 16
		}
		if len(seen) != n {
			t.Errorf("%q: %d of %d", query, len(seen), n)
		}
	}
}
