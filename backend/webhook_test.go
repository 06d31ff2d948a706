package backend

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// hook is an agent's webhook that answers with status and keeps what came.
func hook(t *testing.T, status int) (address string, got chan []byte, headers chan string) {
	got, headers = make(chan []byte, 16), make(chan string, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fits(t, "ma2h/inbound-message", body)
		headers <- r.Header.Get(signing.HeaderName)
		got <- body
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + u.Host + "/hook", got, headers
}

func directive(h *house, to string) string {
	return h.operator().call("POST", "/v1/directives", msg{"to": to, "title": "Hold all deploys"}).want(http.StatusCreated).get("id")
}

// A webhook is told of a directive, signed; its 2xx proves delivery and consumes nothing.
func TestWebhookDeliversAndTheMailboxStaysTheTruth(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	address, got, headers := hook(t, http.StatusOK)
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"inbound_webhook": address}).want(http.StatusOK)
	id := directive(h, "bot")
	body, header := <-got, <-headers
	s, err := signing.DirectiveOf(body)
	if err != nil || s.ID != id {
		t.Fatalf("%s: %v", body, err)
	}
	if err := s.Verify(hmacKey(bot), header, time.Now()); err != nil {
		t.Error(err)
	}
	delivery := func() string {
		return h.operator().call("GET", "/v1/directives/"+id, nil).want(http.StatusOK).get("delivery", "state")
	}
	eventually(t, "the 2xx to be recorded", func() bool { return delivery() == "delivered" })
	if n := bot.call("GET", "/v1/inbox", nil).want(http.StatusOK).get("messages"); n == "[]" {
		t.Error("the webhook consumed the directive")
	}
	bot.call("POST", "/v1/inbox/ack", msg{"ids": []string{id}}).want(http.StatusOK)
	if d := delivery(); d != "acknowledged" {
		t.Errorf("after the ack: %s", d)
	}
}

// A webhook that refuses is not asked again, and a directive to a session is nobody's webhook's business.
func TestWebhookRefusalIsFinalAndSessionsHaveNone(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	address, got, headers := hook(t, http.StatusTeapot)
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"inbound_webhook": address}).want(http.StatusOK)
	session := bot.call("POST", "/v1/sessions", msg{}).want(http.StatusCreated).get("session", "id")
	directive(h, "agent:bot#"+session)
	if n := h.rows("SELECT count(*) FROM owed"); n != 0 {
		t.Errorf("a directive to a session owes %d pushes", n)
	}
	id := directive(h, "bot")
	body := <-got
	<-headers
	if s, err := signing.DirectiveOf(body); err != nil || s.ID != id {
		t.Fatalf("the webhook got %s", body)
	}
	eventually(t, "the refusal to be recorded", func() bool {
		o, attempts, err := h.hub.store.OwedOfEntry(t.Context(), id)
		return err == nil && o.State == "refused" && len(attempts) == 1
	})
	if d := h.operator().call("GET", "/v1/directives/"+id, nil).get("delivery", "state"); d != "queued" {
		t.Errorf("a refused push says %s", d)
	}
	if len(got) > 0 {
		t.Errorf("and it got %s", <-got)
	}
	h.operator().call("PUT", "/v1/agents/bot/policy", msg{"inbound_webhook": "http://10.0.0.1/x"}).want(http.StatusUnprocessableEntity)
}

// An agent that has no key here cannot be pushed to, and is not said to be.
func TestNoWebhookForAgentsOfOtherProtocols(t *testing.T) {
	h := openHouse(t)
	h.agent("bot").beat()
	r := h.operator().call("PUT", "/v1/agents/acp%2Fbot/policy", msg{"inbound_webhook": "http://127.0.0.1:9/in"}).want(422)
	if !strings.Contains(string(r.body), "/inbound_webhook") {
		t.Errorf("%s", r.body)
	}
	h.operator().call("PUT", "/v1/agents/acp%2Fbot/policy", msg{"inbound_webhook": nil}).want(200)
}
