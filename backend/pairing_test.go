package backend

import (
	"net/http"
	"strings"
	"testing"
)

// Whether an agent is enrolled is nobody's business who has no credential: both are accepted alike, and the person is
// told before and when they approve.
func TestPairingTellsNobodyWhoIsEnrolled(t *testing.T) {
	h := openHouse(t)
	h.agent("bot")
	asks := func(id string) reply {
		return (&client{h: h}).call("POST", "/v1/pairings", msg{"agent_id": id}).want(http.StatusCreated)
	}
	known, unknown := asks("bot"), asks("toy")
	for _, name := range []string{"state", "expires_at"} {
		if a, b := known.get(name), unknown.get(name); (a == "") != (b == "") || name == "state" && a != b {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	if len(known.body) != len(unknown.body) {
		t.Errorf("%s\n%s", known.body, unknown.body)
	}
	var page struct {
		Pairings []struct {
			Agent    string `json:"agent_id"`
			Enrolled bool
		}
	}
	h.operator().call("GET", "/api/fleet", nil).want(200).into(&page)
	for _, p := range page.Pairings {
		if p.Enrolled != (p.Agent == "bot") {
			t.Errorf("%+v", p)
		}
	}
	if r := h.operator().call("POST", "/api/pairings/"+known.get("id"), msg{"approve": true}); r.status != 409 || r.code() != "agent_exists" {
		t.Errorf("%d %s", r.status, r.body)
	}
	h.operator().call("POST", "/api/pairings/"+known.get("id"), msg{"approve": false}).want(200)
}

// Of several that ask for one id the person lets one in; the others are refused with that.
func TestApprovingOnePairingRefusesTheOthersOfItsID(t *testing.T) {
	h := openHouse(t)
	one, two, other := h.pair("bot"), h.pair("bot"), h.pair("toy")
	one.decide(true).want(200)
	if s, _ := two.poll(); s != "refused" {
		t.Errorf("the second asker: %s", s)
	}
	if s, _ := other.poll(); s != "pending" {
		t.Errorf("another id's: %s", s)
	}
	if r := h.operator().call("GET", "/api/fleet", nil); strings.Contains(r.get("pairings"), two.ID) {
		t.Errorf("%s", r.body)
	}
}

// Whoever asked can take it back while nobody has decided; nobody else can.
func TestWithdrawingAPairing(t *testing.T) {
	h := openHouse(t)
	p := h.pair("bot")
	withdraw := func(p pairing, secret string) reply {
		return p.c.call("DELETE", "/v1/pairings/"+p.ID, nil, "Authorization", "Bearer "+secret)
	}
	p.c.call("DELETE", "/v1/pairings/"+p.ID, nil).want(401)
	withdraw(p, "dbp_wrong").want(404)
	if s, _ := p.poll(); s != "pending" {
		t.Errorf("%s", s)
	}
	withdraw(p, p.Secret).want(204)
	withdraw(p, p.Secret).want(204)
	if s, _ := p.poll(); s != "withdrawn" {
		t.Errorf("%s", s)
	}
	p.decide(true).want(409)
	if r := h.operator().call("GET", "/api/fleet", nil); r.get("pairings") != "[]" || r.get("agents") != "[]" {
		t.Errorf("%s", r.body)
	}
	yes := h.pair("bot")
	yes.decide(true).want(200)
	withdraw(yes, yes.Secret).want(409)
	if _, c := yes.poll(); c == nil || !h.works(*c) {
		t.Error("the withdrawal came too late and took something back")
	}
}

// Anyone on this machine may see where a pairing stands; its code and its credentials are for whoever has its secret, and
// looking without it uses nothing up.
func TestAPairingIsSeenByAnyoneAndFetchedByItsAsker(t *testing.T) {
	h := openHouse(t)
	p := h.pair("bot")
	look := func(header ...string) reply { return (&client{h: h}).call("GET", "/v1/pairings/"+p.ID, nil, header...) }
	for _, state := range []string{"pending", "approved"} {
		r := look().want(200)
		if r.get("state") != state || r.get("id") != p.ID || r.get("expires_at") == "" || r.get("code") != "" || r.get("credentials") != "" || strings.Contains(string(r.body), p.Secret) {
			t.Errorf("%s: %s", state, r.body)
		}
		look("Authorization", "Bearer dbp_wrong").want(404)
		if state == "pending" {
			p.decide(true).want(200)
		}
	}
	if _, c := p.poll(); c == nil || !h.works(*c) {
		t.Error("the asker did not get the credentials")
	}
	look().want(200)
	(&client{h: h}).call("GET", "/v1/pairings/pair_none", nil).want(404)
	if lines := h.refusals(); len(lines) != 2 || lines[0] != "unknown pairing "+p.ID+" not_found" {
		t.Errorf("on record: %q", lines)
	}
}
