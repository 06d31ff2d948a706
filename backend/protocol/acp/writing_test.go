package acp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// unread is a client that does not read until it is let.
type unread struct {
	*httptest.ResponseRecorder
	began chan<- struct{}
	read  <-chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	u.began <- struct{}{}
	<-u.read
	return len(p), nil
}

func TestAPrincipalLeavesFewLargeAnswersUnread(t *testing.T) {
	b := New(Config{})
	out := []byte(`{"result":"` + strings.Repeat("x", largeAnswer) + `"}`)
	body := []byte(`{"jsonrpc":"2.0","id":7,"method":"heartbeat"}`)
	began, read := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range maxWriting {
		all.Go(func() {
			if err := b.write(unread{httptest.NewRecorder(), began, read}, Who{principal: "bot"}, body, out); err != nil {
				t.Error(err)
			}
		})
		<-began
	}
	ask := func(principal string, out []byte) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		if err := b.write(w, Who{principal: principal}, body, out); err != nil {
			t.Error(err)
		}
		return w
	}
	if w := ask("bot", out); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), `"retryAfterMs"`) || !strings.Contains(w.Body.String(), `"id":7`) {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	if w := ask("bot", []byte(`{}`)); w.Code != http.StatusOK {
		t.Errorf("a small one: %d %s", w.Code, w.Body)
	}
	if w := ask("other", out); w.Code != http.StatusOK {
		t.Errorf("another principal: %d", w.Code)
	}
	close(read)
	all.Wait()
	if w := ask("bot", out); w.Code != http.StatusOK {
		t.Errorf("once they were read: %d", w.Code)
	}
}
