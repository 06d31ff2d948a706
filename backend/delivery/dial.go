package delivery

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// DialWebSocket opens a WebSocket to an address that the operator set, by the rules that pushes follow: wss, or ws to this
// machine; the address is judged as it is dialed; loopback only if it is allowed. Errors: ErrForbidden and the network's.
func DialWebSocket(ctx context.Context, url string, loopback bool) (*websocket.Conn, error) {
	rest, ok := strings.CutPrefix(url, "ws")
	if !ok {
		return nil, fmt.Errorf("%w: it is no WebSocket", ErrForbidden)
	}
	if _, err := CheckURL("http" + rest); err != nil {
		return nil, fmt.Errorf("%w: it %w", ErrForbidden, err)
	}
	local := isLocalURL("http" + rest)
	if local && !loopback {
		return nil, fmt.Errorf("%w: this machine is off limits at present", ErrForbidden)
	}
	c := client(local)
	if t, ok := c.Transport.(*http.Transport); ok {
		t.ForceAttemptHTTP2 = false // a WebSocket begins as HTTP/1.1
		t.DisableKeepAlives = false // and its connection is kept
	}
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: c, CompressionMode: websocket.CompressionDisabled})
	return ws, err
}
