package backend

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// After a rotation the old secret signs until the agent shows its new token, so that an agent that is being updated
// can verify whatever reaches it.
func TestTheOldSecretSignsUntilTheNewTokenIsShown(t *testing.T) {
	c := &clock{at: noon}
	h := openHouse(t, withClock(c))
	old := h.agent("bot")
	directive(h, "bot")
	signedWith := func(who *client, key signing.Key) {
		t.Helper()
		c.move(2 * time.Minute) // past the visibility time-out
		var out struct {
			Messages []struct {
				Directive json.RawMessage
				Signature string
			}
		}
		who.call("GET", "/v1/inbox", nil).want(http.StatusOK).into(&out)
		if len(out.Messages) != 1 {
			t.Fatalf("%d entries", len(out.Messages))
		}
		s, err := signing.DirectiveOf(out.Messages[0].Directive)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(key, out.Messages[0].Signature, c.now()); err != nil {
			t.Error(err)
		}
	}
	signedWith(old, hmacKey(old))
	fresh := &client{h: h}
	h.operator().call("POST", "/api/agents/bot/rotate", nil).want(http.StatusOK).into(&fresh.Credentials)
	fresh.token = fresh.Credentials.Token
	signedWith(old, hmacKey(old))
	h.restart()
	signedWith(old, hmacKey(old))
	signedWith(fresh, hmacKey(fresh))
	signedWith(old, hmacKey(fresh)) // shown once, it is over for whichever token asks
	h.operator().call("POST", "/api/agents/bot/rotate", nil).want(http.StatusOK).into(&old.Credentials)
	c.move(11 * time.Minute)
	key, err := h.hub.agentKey(t.Context(), "bot")
	if err != nil || key.Alg() != signing.AlgHMAC {
		t.Fatal(err)
	}
	s := signing.DirectiveContext{Version: "0.6", ID: "dir_x", From: "human:a", To: "agent:bot", Directive: json.RawMessage(`{"title":"x"}`)}
	header, err := s.Sign(key, c.now().Unix(), "jti_1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(hmacKey(old), header, c.now()); err != nil {
		t.Errorf("after the overlap: %v", err)
	}
	if err := s.Verify(hmacKey(fresh), header, c.now()); !errors.Is(err, signing.ErrMismatch) {
		t.Errorf("the secret before it still signs: %v", err)
	}
}
