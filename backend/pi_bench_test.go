package backend

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// How long a question takes from pi to the inbox, and its answer back to pi.
func BenchmarkPiQuestion(b *testing.B) {
	h := openHouse(b)
	ctx := context.Background()
	conn, _, err := websocket.Dial(ctx, strings.Replace(h.hub.URL(), "http", "ws", 1)+"/pi", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}}})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.CloseNow()
	say := func(s string) {
		if err := conn.Write(ctx, websocket.MessageText, []byte(s)); err != nil {
			b.Fatal(err)
		}
	}
	say(`{"type":"response","command":"get_state","id":"h1","success":true,"data":{"sessionId":"far"}}`)
	feed := h.hub.inbox.Feed(b.Context())
	op := h.operator()
	var asked, answered times
	n := 0
	for b.Loop() {
		n++
		begun := time.Now()
		say(fmt.Sprintf(`{"type":"extension_ui_request","id":"u%d","method":"confirm","title":"Go?","message":""}`, n))
		var id string
		for id == "" {
			c := <-feed
			if it, err := h.hub.inbox.Get(ctx, c.ID); err == nil && !it.Terminal() && h.hub.inbox.WaitingNow(it.ID) {
				id = it.ID
			}
		}
		asked.add(time.Since(begun))
		begun = time.Now()
		op.answer(id, `{"resolution":"answered","value":"approve"}`).want(http.StatusOK)
		for {
			_, raw, err := conn.Read(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if strings.Contains(string(raw), "extension_ui_response") {
				break
			}
		}
		answered.add(time.Since(begun))
	}
	b.ReportMetric(ms(asked.at(0.5)), "p50-asked-ms")
	b.ReportMetric(ms(asked.at(0.99)), "p99-asked-ms")
	answered.report(b)
}
