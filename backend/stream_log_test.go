package backend

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"deskbell/backend/mailbox"
)

// blindStore cannot say what comes next.
type blindStore struct{ mailbox.Store }

func (blindStore) NextVisible(context.Context, string, string) (time.Time, error) {
	return time.Time{}, errors.New("the disk is gone")
}

// A hold that ends because something failed here says so; one that ends because its session did, says nothing.
func TestAStreamThatFailsIsLogged(t *testing.T) {
	h, _ := openBox(t)
	b := h.peer("b")
	s := b.register()
	var log bytes.Buffer
	c := h.hub.mailbox.Config
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	stream := func(c mailbox.Config, ready func(_, _ time.Duration)) {
		t.Helper()
		err := mailbox.New(c).Stream(t.Context(), "b", s, ready, func(mailbox.Entry) error { return nil }, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	stream(c, func(_, _ time.Duration) { b.call("DELETE", "/v1/sessions/"+s, nil).want(200) })
	if log.Len() > 0 {
		t.Errorf("%s", log.String())
	}
	s = b.register()
	c.Store = blindStore{c.Store}
	stream(c, func(_, _ time.Duration) {})
	if !strings.Contains(log.String(), "the disk is gone") {
		t.Errorf("%q", log.String())
	}
}
