package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"deskbell/backend/config"
	"deskbell/backend/notify"
	"deskbell/frontend"
)

// A hub that only shows its page, until backend.Open takes its place: the folder's lock, the address, the page.

var errLocked = errors.New("another hub runs on this data folder")

type hub struct {
	lock *flock.Flock
	l    net.Listener
	url  string
}

func open(cfg config.Config) (*hub, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(cfg.Data, "hub.lock"))
	if ok, err := lock.TryLock(); err != nil {
		return nil, err
	} else if !ok {
		var other struct {
			PID int
			URL string
		}
		text, _ := os.ReadFile(filepath.Join(cfg.Data, "hub.json"))
		_ = json.Unmarshal(text, &other)
		return nil, fmt.Errorf("%w %s: pid %d, %s", errLocked, cfg.Data, other.PID, other.URL)
	}
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		_ = lock.Unlock()
		return nil, err
	}
	h := &hub{lock: lock, l: l, url: "http://" + l.Addr().String()}
	text, _ := json.Marshal(map[string]any{"pid": os.Getpid(), "url": h.url, "version": config.Version})
	if err := os.WriteFile(filepath.Join(cfg.Data, "hub.json"), text, 0o600); err != nil {
		h.Close()
		return nil, err
	}
	go func() { _ = http.Serve(l, http.NotFoundHandler()) }()
	return h, nil
}

func (h *hub) Close() {
	h.l.Close()
	_ = h.lock.Unlock()
}

func (h *hub) URL() string                                   { return h.url }
func (h *hub) Handler() http.Handler                         { return http.FileServerFS(frontend.Dist()) }
func (h *hub) Changes(context.Context) <-chan []byte         { return nil }
func (h *hub) Attention(context.Context) <-chan notify.Event { return nil }
