package delivery

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// Another hub is dialed where a push may go, and nowhere else.
func TestDialWebSocket(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			_ = ws.CloseNow() // that it came is all
		}
	}))
	defer server.Close()
	url := "ws" + strings.TrimPrefix(server.URL, "http")
	ws, err := DialWebSocket(t.Context(), url, true)
	if err != nil {
		t.Fatal(err)
	}
	_ = ws.CloseNow() // it was only dialed
	for _, c := range []struct {
		url      string
		loopback bool
	}{
		{url, false}, {"ws://example.org/map", true}, {"wss://10.0.0.1/map", true}, {"wss://169.254.169.254/", true}, {"https://example.org/", true}, {"wss://me:pw@example.org/", true},
		{"wss://2130706433/", true}, {"", true},
	} {
		if ws, err := DialWebSocket(t.Context(), c.url, c.loopback); !errors.Is(err, ErrForbidden) || ws != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
