package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/fstest"
	"time"

	"deskbell/backend/protocol"
)

// serve runs a server of one route until the test ends; stop ends it before.
func serve(t *testing.T, h protocol.Handler) (url string, stop func()) {
	t.Helper()
	s := New(Config{
		Routes: []protocol.Route{{Pattern: "GET /v1/test", Handle: h}},
		Page:   fstest.MapFS{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ln, err := s.Listen("127.0.0.1:0", "", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().(*net.TCPAddr).String() + "/v1/test", cancel
}

func TestBrokenOffAnswerIsNotWhole(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
		_, _ = io.WriteString(w, "a part\n")
		panic(http.ErrAbortHandler)
	})
	resp, err := http.Get(url)
	if err != nil {
		return // broken off before anything came
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("a part was taken for the whole: %q", body)
	}
}

func TestStoppingHubAnswersWhoWaits(t *testing.T) {
	waiting := make(chan struct{})
	url, stop := serve(t, func(_ http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
		close(waiting)
		<-r.Context().Done()
		return r.Context().Err()
	})
	go func() {
		<-waiting
		stop()
	}()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("answered %s, Retry-After %q; want 503 and when to come back", resp.Status, resp.Header.Get("Retry-After"))
	}
}
