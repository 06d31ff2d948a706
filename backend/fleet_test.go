package backend

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/signing"
)

// pairing is an agent that asks for a credential.
type pairing struct {
	c       *client
	ID      string
	Code    string
	Secret  string
	PollURL string `json:"poll_url"`
	State   string
}

func (h *house) pair(id string) pairing {
	h.t.Helper()
	p := pairing{c: &client{h: h}}
	p.c.call("POST", "/v1/pairings", msg{"agent_id": id, "note": "it is me"}).want(http.StatusCreated).into(&p)
	return p
}

func (p pairing) poll() (state string, c *fleet.Credentials) {
	p.c.h.t.Helper()
	var got struct {
		State       string
		Credentials *fleet.Credentials
	}
	p.c.call("GET", "/v1/pairings/"+p.ID, nil, "Authorization", "Bearer "+p.Secret).want(http.StatusOK).into(&got)
	return got.State, got.Credentials
}

func (p pairing) decide(approve bool) reply {
	p.c.h.t.Helper()
	return p.c.h.operator().call("POST", "/api/pairings/"+p.ID, msg{"approve": approve})
}

func (h *house) works(c fleet.Credentials) bool {
	h.t.Helper()
	bot := &client{h: h, token: c.Token}
	return bot.call("GET", "/v1/messages", nil).status == http.StatusOK
}

// signs says whether what is pushed to an agent is signed with the secret its credentials gave.
func (h *house) signs(c fleet.Credentials) bool {
	h.t.Helper()
	k, err := h.hub.agentKey(context.Background(), c.AgentID)
	if err != nil {
		h.t.Fatal(err)
	}
	x := signing.AckContext{Version: "0.6", InReplyTo: "x", By: "y", AckedAt: "z"}
	sig, err := x.Sign(k, time.Now().Unix(), "jti")
	if err != nil {
		h.t.Fatal(err)
	}
	return x.Verify(signing.HMACKey([]byte(c.SigningSecret)), sig, time.Now()) == nil
}

func TestPairing(t *testing.T) {
	h := openHouse(t)
	p := h.pair("team/new")
	if len(p.Code) != 7 || p.Secret == "" {
		t.Fatalf("%+v", p)
	}
	if s, c := p.poll(); s != "pending" || c != nil {
		t.Errorf("%s %v", s, c)
	}
	if r := p.c.call("GET", "/v1/pairings/"+p.ID, nil).want(http.StatusOK); r.get("credentials") != "" {
		t.Errorf("%s", r.body)
	}
	p.c.call("GET", "/v1/pairings/"+p.ID, nil, "Authorization", "Bearer wrong").want(http.StatusNotFound)
	p.c.call("GET", "/v1/pairings/pair_none", nil, "Authorization", "Bearer "+p.Secret).want(http.StatusNotFound)
	p.c.call("POST", "/api/pairings/"+p.ID, msg{"approve": true}).want(http.StatusUnauthorized)
	p.decide(true).want(http.StatusOK)
	p.decide(true).want(http.StatusConflict)
	p.decide(false).want(http.StatusConflict)
	s, c := p.poll()
	if c == nil || c.AgentID != "team/new" || !h.works(*c) || !h.signs(*c) {
		t.Fatalf("%s %+v", s, c)
	}
	if s, again := p.poll(); s != "done" || again != nil {
		t.Errorf("a second time: %s %v", s, again)
	}
	for _, id := range []string{"", "a#b", "a b", "pi/x", "acs/x", "a\u202eb"} {
		p.c.call("POST", "/v1/pairings", msg{"agent_id": id}).want(http.StatusUnprocessableEntity)
	}
	no := h.pair("refused")
	no.decide(false).want(http.StatusOK)
	if s, c := no.poll(); s != "refused" || c != nil {
		t.Errorf("%s %v", s, c)
	}
}

func TestPairingExpiresAndIsLimited(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	p := h.pair("late")
	c.move(fleet.PairingTime + time.Second)
	if s, _ := p.poll(); s != "expired" {
		t.Errorf("%s", s)
	}
	p.decide(true).want(http.StatusConflict)
	for range 8 {
		h.pair(unique("many-"))
	}
	r := (&client{h: h}).call("POST", "/v1/pairings", msg{"agent_id": "one-more"})
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Errorf("%d %v", r.status, r.header)
	}
}

func TestPairingApprovedBeforeARestart(t *testing.T) {
	h := openHouse(t)
	p := h.pair("bot")
	p.decide(true).want(http.StatusOK)
	h.restart()
	s, c := p.poll()
	if c == nil || !h.works(*c) || !h.signs(*c) {
		t.Fatalf("%s %+v", s, c)
	}
	if s, again := p.poll(); s != "done" || again != nil {
		t.Errorf("%s %v", s, again)
	}
}

// Two askers for one id: the person can let one in, and the other gets nothing, whatever happens later.
func TestTwoPairingsOfOneID(t *testing.T) {
	h := openHouse(t)
	one, two := h.pair("bot"), h.pair("bot")
	one.decide(true).want(http.StatusOK)
	_, c := one.poll()
	two.decide(true).want(http.StatusConflict)
	if s, c := two.poll(); c != nil {
		t.Fatalf("the second asker got credentials: %s", s)
	}
	h.restart()
	if s, c := two.poll(); c != nil {
		t.Fatalf("the second asker got credentials after a restart: %s", s)
	}
	if !h.works(*c) || !h.signs(*c) {
		t.Error("the first asker's credentials do not work any more")
	}
}

// A revocation between approval and fetching stands.
func TestRevokedBeforeItWasFetched(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := openHouse(t)
		p := h.pair("bot")
		p.decide(true).want(http.StatusOK)
		h.operator().call("DELETE", "/v1/agents/bot", nil).want(http.StatusNoContent)
		if restart {
			h.restart()
		}
		if s, c := p.poll(); c != nil || s != "refused" {
			t.Errorf("restart %v: %s %+v", restart, s, c)
		}
		if a, err := h.hub.store.Agent(context.Background(), "bot"); err != nil || a.RevokedAt.IsZero() {
			t.Errorf("restart %v: the agent is enrolled again: %+v %v", restart, a, err)
		}
	}
}

func TestOneAskerManyTimesAtOnce(t *testing.T) {
	h := openHouse(t)
	p := h.pair("bot")
	p.decide(true).want(http.StatusOK)
	h.restart()
	var mu sync.Mutex
	var got []fleet.Credentials
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, c := p.poll(); c != nil {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, *c)
			}
		})
	}
	wg.Wait()
	if len(got) != 1 || !h.works(got[0]) || !h.signs(got[0]) {
		t.Errorf("%d credentials", len(got))
	}
}

// Whoever wins a race for an id has a token and the secret that goes with it.
func TestAddingOneAgentManyTimesAtOnce(t *testing.T) {
	h := openHouse(t)
	for range 5 {
		id := unique("bot-")
		var mu sync.Mutex
		var got []fleet.Credentials
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				r := h.operator().call("POST", "/v1/agents", msg{"agent_id": id})
				if r.status == http.StatusCreated {
					var c fleet.Credentials
					r.into(&c)
					mu.Lock()
					defer mu.Unlock()
					got = append(got, c)
				}
			})
		}
		wg.Wait()
		if len(got) != 1 || !h.works(got[0]) || !h.signs(got[0]) {
			t.Fatalf("%d credentials, and the secret fits: %v", len(got), len(got) == 1 && h.signs(got[0]))
		}
	}
}

// brokenStore fails where it is told to.
type brokenStore struct{ fleet.Store }

func (brokenStore) Rotate(context.Context, string, []byte, time.Time, time.Time, fleet.Audit) error {
	return context.DeadlineExceeded
}

// A rotation that fails leaves the agent what it had, its signing secret too.
func TestFailedRotationChangesNothing(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	f := &fleet.Fleet{Store: brokenStore{h.hub.store}, Secrets: h.hub.secrets, Now: time.Now, Operator: h.hub.operator, OnChange: func(string, bool) {}}
	if _, err := f.Rotate(context.Background(), "bot"); err == nil {
		t.Fatal("it did not fail")
	}
	if !h.works(bot.Credentials) || !h.signs(bot.Credentials) {
		t.Error("the old credentials do not work any more")
	}
}

func TestRotation(t *testing.T) {
	c := &clock{at: time.Now()}
	h := openHouse(t, withClock(c))
	bot := h.agent("team/bot")
	var next, last fleet.Credentials
	h.operator().call("POST", "/api/agents/team%2Fbot/rotate", nil).want(http.StatusOK).into(&next)
	if next.Token == bot.Token || !h.works(bot.Credentials) || !h.works(next) || !h.signs(next) {
		t.Error("within the overlap both work")
	}
	c.move(5 * time.Minute)
	h.operator().call("POST", "/api/agents/team%2Fbot/rotate", nil).want(http.StatusOK).into(&last)
	c.move(5*time.Minute + time.Second)
	if h.works(bot.Credentials) || !h.works(next) || !h.works(last) {
		t.Error("the first ends ten minutes after the first rotation")
	}
	c.move(5 * time.Minute)
	if h.works(next) || !h.works(last) || !h.signs(last) {
		t.Error("the second ends ten minutes after the second rotation")
	}
	h.operator().call("POST", "/api/agents/nobody/rotate", nil).want(http.StatusNotFound)
}

func TestRevocationEndsWhatWaits(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	id := bot.submit(bot.ask())
	came := make(chan reply, 1)
	go func() {
		r, err := bot.try(context.Background(), "GET", "/v1/messages/"+id+"?wait=60", nil)
		if err != nil {
			t.Error(err)
		}
		came <- r
	}()
	eventually(t, "the agent waits", func() bool { return h.hub.inbox.WaitingNow(id) })
	h.operator().call("DELETE", "/v1/agents/bot", nil).want(http.StatusNoContent)
	select {
	case r := <-came:
		if r.status != http.StatusUnauthorized || r.code() != "unauthenticated" {
			t.Errorf("%d %s", r.status, r.body)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits")
	}
	bot.call("GET", "/v1/messages/"+id, nil).want(http.StatusUnauthorized)
	if h.item(id).Track.State != inbox.TrackNone {
		t.Error("delivered to a revoked agent")
	}
	// Enrolled anew, the id has new credentials, and what it asked before is still its own.
	again := h.agent("bot")
	again.call("GET", "/v1/messages/"+id, nil).want(http.StatusOK)
	if h.works(bot.Credentials) {
		t.Error("the old token works again")
	}
}
