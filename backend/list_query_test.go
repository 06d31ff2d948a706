package backend

import (
	"net/http"
	"strings"
	"testing"
)

// A list that is narrowed to something there is no such thing as is a mistake, not an empty list.
func TestListQuery(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	bot.submit(bot.ask())
	for _, who := range []*client{h.operator(), bot} {
		for _, bad := range []string{"status=bogus", "type=bogus", "protocol=bogus", "limit=0", "limit=-1", "limit=x", "limit=1.5", "cursor=bogus", "status=Open", "type=question"} {
			if r := who.call("GET", "/v1/messages?"+bad, nil); r.status != http.StatusBadRequest || r.code() != "validation_error" {
				t.Errorf("%s: %d %s", bad, r.status, r.body)
			}
		}
		for _, good := range []string{"status=open", "type=ask", "protocol=ma2h", "limit=1", "limit=99999999999999999999", "status=&type=&protocol=&limit=&cursor="} {
			if r := who.call("GET", "/v1/messages?"+good, nil).want(200); strings.Contains(string(r.body), `"messages":[]`) {
				t.Errorf("%s: %s", good, r.body)
			}
		}
		for _, none := range []string{"status=bounced", "status=queued", "type=task"} {
			if r := who.call("GET", "/v1/messages?"+none, nil).want(200); !strings.Contains(string(r.body), `"messages":[]`) {
				t.Errorf("%s: %s", none, r.body)
			}
		}
	}
	for _, path := range []string{"/v1/messages?protocol=acs", "/v1/messages?protocol=map", "/v1/messages?protocol=pi", "/v1/messages?protocol=acp"} {
		h.operator().call("GET", path, nil).want(200)
	}
}
