package backend

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What agents write to each other is found by whom it is for, and by what its acknowledgment said; so is what was asked of
// the person, by what its agent said of the answer. Of something sensitive the words of an acknowledgment are not searched.
func TestMessagesAreFoundByRecipientAndNote(t *testing.T) {
	h, _ := openBox(t)
	a, b, c := h.peer("builder"), h.peer("reviewer"), h.peer("deployer")
	bs := b.register()
	toReviewer := a.send(a.to("ask", "agent:reviewer#"+bs, "").with("title", "Is it good?"))
	toDeployer := a.send(a.to("task", "agent:deployer", "").with("title", "Is it out?"))
	secret := c.send(c.to("notify", "agent:reviewer", "").with("title", "A word").with("sensitive", true))
	asked := a.submit(a.ask())
	found := func(q string) string {
		var ids []string
		list := string(h.operator().call("GET", "/v1/messages?q="+q, nil).want(http.StatusOK).body)
		for name, id := range map[string]string{"toReviewer": toReviewer, "toDeployer": toDeployer, "secret": secret, "asked": asked} {
			if strings.Contains(list, `"id":"`+id+`"`) {
				ids = append(ids, name)
			}
		}
		if len(ids) > 1 {
			return "several"
		}
		return strings.Join(ids, "")
	}
	expect := func(q, want string) {
		t.Helper()
		if got := found(q); got != want {
			t.Errorf("%s finds %q, want %q", q, got, want)
		}
	}
	expect("reviewer", "several")
	expect("reviewer+good", "toReviewer")
	expect("agent:reviewer+good", "toReviewer") // as messages and this hub write it
	expect(url.QueryEscape("agent:reviewer#"+bs), "toReviewer")
	expect(url.QueryEscape(`good "Agent:reviewer"`), "toReviewer")
	expect("reviewer+word", "secret")
	expect(strings.TrimPrefix(bs, "sess_"), "toReviewer")
	expect("deployer+out", "toDeployer")
	expect("looked", "")
	b.drain(bs)
	b.call("POST", "/v1/inbox/ack"+q(bs), msg{"ids": []string{toReviewer}, "note": "looked at it"}).want(http.StatusOK)
	b.call("POST", "/v1/inbox/ack"+q(bs), msg{"ids": []string{secret}, "note": "hushhush"}).want(http.StatusOK)
	expect("looked", "toReviewer")
	expect("hushhush", "")
	h.operator().answer(asked, yes).want(http.StatusOK)
	a.call("GET", "/v1/messages/"+asked, nil).want(http.StatusOK)
	a.call("POST", "/v1/messages/"+asked+"/ack", msg{"note": "wilco"}).want(http.StatusOK)
	expect("wilco", "asked")
}
