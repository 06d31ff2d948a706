//go:build window && desktop

// Command probe is the window around a hub of a few lines, so that the window can be tested by itself. What a test wants
// to happen in the hub it posts to the address that probe prints.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"deskbell/app"
	"deskbell/backend/notify"
)

var started = time.Now()

const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>probe</title>
<script src="/probe.js" type="module"></script><script>document.documentElement.dataset.inline = 'ran'</script>
</head><body><h1>probe</h1><p id="item"></p><p id="changed"></p><p id="theme"></p></body></html>`

const script = `
const set = (id, v) => { document.getElementById(id).textContent = v };
window.runtime.EventsOn('open-item', id => set('item', id));
window.runtime.EventsOn('changed', c => set('changed', JSON.stringify(c)));
set('item', await window.go.app.Desktop.OpenItemOnStart());
set('theme', matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
document.addEventListener('keydown', e => { if (e.ctrlKey && e.key === 'q') window.runtime.EventsEmit('quit') });
for (const e of ['focus', 'blur']) window.addEventListener(e, () => window.runtime.EventsEmit('focus', document.hasFocus()));
requestAnimationFrame(() => requestAnimationFrame(() => window.runtime.EventsEmit('painted')));
`

type hub struct {
	url     string
	changes chan []byte
	events  chan notify.Event
}

func (h *hub) URL() string                                       { return h.url }
func (h *hub) Changes(ctx context.Context) <-chan []byte         { return until(ctx, h.changes) }
func (h *hub) Attention(ctx context.Context) <-chan notify.Event { return until(ctx, h.events) }

// until passes on what comes until ctx ends.
func until[T any](ctx context.Context, in <-chan T) <-chan T {
	out := make(chan T)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case v := <-in:
				select {
				case out <- v:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// Handler is what the window's page gets.
func (h *hub) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src *") // to be overruled
		_, _ = io.WriteString(w, page)
	})
	mux.HandleFunc("GET /probe.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, script)
	})
	mux.HandleFunc("/api/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "type": r.Header.Get("Content-Type"), "body": string(body), "query": r.URL.RawQuery, "path": r.URL.EscapedPath(),
		})
	})
	return mux
}

// control is what a test gets.
func (h *hub) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /change", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.changes <- body
	})
	mux.HandleFunc("POST /event", func(w http.ResponseWriter, r *http.Request) {
		var e notify.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.events <- e
	})
	return mux
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run() error {
	data := flag.String("data", "", "the data folder")
	hidden := flag.Bool("hidden", false, "start hidden")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	lock := flock.New(filepath.Join(*data, "hub.lock"))
	if ok, err := lock.TryLock(); err != nil {
		return err
	} else if !ok {
		return app.HandOver(ctx, *data, flag.Arg(0))
	}
	defer func() { _ = lock.Unlock() }()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := &hub{url: "http://" + l.Addr().String(), changes: make(chan []byte), events: make(chan notify.Event)}
	srv := &http.Server{Handler: h.control()}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "probe:", err)
		}
	}()
	defer srv.Close()
	fmt.Printf("deskbell ready url=%s data=%s pid=%d\n", h.url, *data, os.Getpid())

	err = app.Run(ctx, h, app.Options{
		Data: *data, Link: flag.Arg(0), Hidden: *hidden, Started: started,
		Notifications: func(ok bool, reason string) { fmt.Printf("notifications %v %s\n", ok, reason) },
	})
	fmt.Println("window gone")
	return err
}
