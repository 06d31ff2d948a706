package cli

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// A handler that answers after its caller went away is not stuck in its answer.
func TestInProcessLetsAHandlerGo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrote := make(chan error, 1)
	gone := make(chan struct{})
	p := inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-gone
		_, err := io.WriteString(w, "too late")
		wrote <- err
	})}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://hub/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := p.RoundTrip(r); err == nil {
		resp.Body.Close()
		t.Fatal("answered")
	}
	close(gone)
	select {
	case err := <-wrote:
		if err == nil {
			t.Error("nobody read what was written")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the handler waits for a reader that there is not")
	}
}
