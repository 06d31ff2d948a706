package socket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// end is how a served socket ended.
type end struct{ err error }

// serve answers sockets with run and says how each ended.
func serve(t *testing.T, ctx context.Context, o Options, handle func(c *Conn, frame []byte) error) (url string, ends chan end) {
	t.Helper()
	ends = make(chan end, 16)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, o)
		if err != nil {
			ends <- end{err}
			return
		}
		ends <- end{c.Run(ctx, func(_ context.Context, frame []byte) error { return handle(c, frame) })}
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http"), ends
}

func dial(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

func echo(c *Conn, frame []byte) error {
	c.Send(append([]byte("re: "), frame...))
	return nil
}

func TestFramesAreHandledAndAnsweredInOrder(t *testing.T) {
	url, ends := serve(t, t.Context(), Options{}, echo)
	ws := dial(t, url)
	for i := range 200 {
		if err := ws.Write(t.Context(), websocket.MessageText, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		_, got, err := ws.Read(t.Context())
		if want := fmt.Sprint("re: ", i); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	if err := ws.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if e := <-ends; e.err != nil {
		t.Error(e.err)
	}
}

// What was sent before the close arrives, and the close says why.
func TestAClosedSocketSaysWhatItStillHad(t *testing.T) {
	url, ends := serve(t, t.Context(), Options{}, func(c *Conn, _ []byte) error {
		for i := range 50 {
			c.Send(fmt.Append(nil, i))
		}
		c.Close(4001, "enough")
		if c.Send([]byte("more")) {
			t.Error("a frame was taken after the end")
		}
		return nil
	})
	ws := dial(t, url)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	n := 0
	var err error
	for ; ; n++ {
		if _, _, err = ws.Read(t.Context()); err != nil {
			break
		}
	}
	var closed websocket.CloseError
	if n != 50 || !errors.As(err, &closed) || closed.Code != 4001 || closed.Reason != "enough" {
		t.Errorf("%d frames, then %v", n, err)
	}
	if e := <-ends; e.err != nil {
		t.Error(e.err)
	}
}

func TestTheEndOfTheHubIsSaid(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, ends := serve(t, ctx, Options{}, echo)
	ws := dial(t, url)
	cancel()
	_, _, err := ws.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Error(err)
	}
	if e := <-ends; e.err != nil {
		t.Error(e.err)
	}
}

func TestWhatIsNoTextOrTooLargeEndsTheSocket(t *testing.T) {
	url, ends := serve(t, t.Context(), Options{MaxFrame: 1000}, echo)
	for _, c := range []struct {
		kind  websocket.MessageType
		frame string
		code  websocket.StatusCode
	}{
		{websocket.MessageBinary, "x", websocket.StatusUnsupportedData},
		{websocket.MessageText, strings.Repeat("x", 2000), websocket.StatusMessageTooBig},
	} {
		ws := dial(t, url)
		if err := ws.Write(t.Context(), c.kind, []byte(c.frame)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != c.code {
			t.Errorf("%v, want %d", err, c.code)
		}
		if e := <-ends; e.err != nil {
			t.Error(e.err)
		}
	}
}

// One who does not read is let go, and nobody waits for them.
func TestAPeerThatDoesNotReadIsLetGo(t *testing.T) {
	frame := make([]byte, 1<<20)
	url, ends := serve(t, t.Context(), Options{Queue: 4, WriteTime: 200 * time.Millisecond}, func(c *Conn, _ []byte) error {
		for c.Send(frame) {
		}
		return nil
	})
	ws := dial(t, url)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	if e := <-ends; e.err != nil {
		t.Error(e.err)
	}
}

func TestAFailingHandlerEndsTheSocket(t *testing.T) {
	broken := errors.New("broken")
	url, ends := serve(t, t.Context(), Options{}, func(*Conn, []byte) error { return broken })
	ws := dial(t, url)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusInternalError {
		t.Error(err)
	}
	if e := <-ends; !errors.Is(e.err, broken) {
		t.Error(e.err)
	}
}

func TestASilentPeerIsLetGo(t *testing.T) {
	url, ends := serve(t, t.Context(), Options{Ping: 20 * time.Millisecond}, echo)
	dial(t, url) // it never reads, so it never answers a ping
	if e := <-ends; e.err != nil {
		t.Error(e.err)
	}
}

// What is delivered goes out in order with everything else, and whoever asked is told when it was written, in that order.
func TestDeliverTellsWhenItWasWritten(t *testing.T) {
	const frames = 50
	begun, wrote := make(chan int, frames), make(chan int, frames)
	url, ends := serve(t, t.Context(), Options{Queue: 4}, func(c *Conn, _ []byte) error {
		go func() {
			for i := range frames { // more than there is room for: it waits
				if !c.Deliver(context.Background(), fmt.Append(nil, i), func() { begun <- i }, func() { wrote <- i }) {
					t.Errorf("%d was not delivered", i)
				}
			}
		}()
		return nil
	})
	ws := dial(t, url)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		if _, got, err := ws.Read(t.Context()); err != nil || string(got) != fmt.Sprint(i) {
			t.Fatalf("%q, %v, want %d", got, err, i)
		}
		if b, n := <-begun, <-wrote; b != i || n != i {
			t.Fatalf("%d was told as begun and %d as written, want %d", b, n, i)
		}
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
	<-ends
}

// What waits to be written is bounded in bytes: those who can wait keep to a part of it, so that an answer finds room, and
// one frame that is larger than all of it passes by itself.
func TestWhatWaitsIsBoundedInBytes(t *testing.T) {
	const size = 1 << 20
	took, answered := make(chan int), make(chan bool, 1)
	url, ends := serve(t, t.Context(), Options{Bytes: 8 * size, WriteTime: time.Minute, Ping: time.Minute}, func(c *Conn, frame []byte) error {
		go func() {
			ctx, cancel := context.WithCancel(context.Background())
			n := 0
			for c.Deliver(ctx, make([]byte, size), nil, nil) {
				if n++; n == 64 { // all that the network may hold of it, and far more than the queue
					break
				}
				c.mu.Lock()
				if c.bytes > 2*size {
					t.Errorf("%d bytes wait", c.bytes)
				}
				full := c.bytes+size > 2*size
				c.mu.Unlock()
				if full {
					time.AfterFunc(100*time.Millisecond, cancel) // it waits for room, unless there is some after all
				}
			}
			cancel()
			if n < 64 && c.Ready(ctx, size) {
				t.Error("there is room for one more, and there was none")
			}
			answered <- c.Send(make([]byte, size))
			took <- n
			c.Close(1000, "")
		}()
		return nil
	})
	ws := dial(t, url)
	ws.SetReadLimit(32 * size)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	if n := <-took; n >= 64 {
		t.Errorf("%d MiB were taken for a peer that does not read", n)
	}
	if !<-answered {
		t.Error("there was no room for an answer")
	}
	for {
		if _, _, err := ws.Read(t.Context()); err != nil {
			break
		}
	}
	<-ends
	url, ends = serve(t, t.Context(), Options{Bytes: size}, func(c *Conn, _ []byte) error {
		c.Send(make([]byte, 4*size))
		return nil
	})
	ws = dial(t, url)
	ws.SetReadLimit(32 * size)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := ws.Read(t.Context()); err != nil || len(got) != 4*size {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_ = ws.CloseNow()
	<-ends
}

// Nobody waits for a socket that has ended, nor beyond their own end.
func TestDeliverEndsWithTheSocket(t *testing.T) {
	ended := make(chan *Conn, 1)
	url, ends := serve(t, t.Context(), Options{}, func(c *Conn, _ []byte) error {
		c.Close(1000, "")
		ended <- c
		return nil
	})
	ws := dial(t, url)
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("go")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("closed with %v", err)
	}
	c := <-ended
	<-ends
	if c.Ready(context.Background(), 1) {
		t.Error("a socket that has ended has room")
	}
	for range 2000 { // more than the queue holds
		if !c.Deliver(context.Background(), []byte("late"), nil, func() { t.Error("it was written") }) {
			return
		}
	}
	t.Error("a socket that has ended takes everything")
}
