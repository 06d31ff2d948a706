package backend

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskbell/backend/config"
	"deskbell/backend/secrets"
	"deskbell/store"
)

// A hub whose folder was taken away accepts nothing more: it would be lost with the hub.
func TestAFolderThatIsGoneIsNoticed(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	bot.submit(bot.ask())
	bot.call("GET", "/readyz", nil).want(http.StatusOK)
	if err := os.Rename(filepath.Join(h.dir, store.DatabaseFile), filepath.Join(h.dir, "elsewhere.db")); err != nil {
		t.Fatal(err)
	}
	bot.call("GET", "/readyz", nil).want(http.StatusServiceUnavailable)
	if r := bot.call("POST", "/v1/messages", bot.ask()); r.status != http.StatusInsufficientStorage || r.code() != "insufficient_storage" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if err := os.Rename(filepath.Join(h.dir, "elsewhere.db"), filepath.Join(h.dir, store.DatabaseFile)); err != nil {
		t.Fatal(err)
	}
	bot.submit(bot.ask())
}

// What is damaged in the folder is said, and nothing is begun anew over it.
func TestADamagedFolderIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, file, content, says string
	}{
		{"an empty database", store.DatabaseFile, "", "is empty"},
		{"a token that nobody can send", TokenFile, strings.Repeat("\x00", 36), "damaged"},
		{"a token that is none", TokenFile, "a", "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := openHouse(t)
			h.stop()
			if err := os.WriteFile(filepath.Join(h.dir, c.file), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			hub, err := open(context.Background(), config.Config{Data: h.dir}, slog.New(slog.DiscardHandler), time.Now, loadSchemas)
			if err == nil {
				hub.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.file) {
				t.Error(err)
			}
		})
	}
}

// Without its signing secret an agent is told what to do about it, and the health names it.
func TestAMissingSecretIsNamed(t *testing.T) {
	h := openHouse(t)
	bot := h.agent("bot")
	h.tell("agent:bot").want(http.StatusCreated)
	h.stop()
	if err := os.Remove(filepath.Join(h.dir, secrets.FileName)); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(h.dir, secrets.FileName+".1.tmp")
	if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	if r := bot.call("GET", "/v1/inbox", nil); r.status != http.StatusInternalServerError || r.code() != "no_signing_secret" || !strings.Contains(string(r.body), "rotate") {
		t.Errorf("%d %s", r.status, r.body)
	}
	var health struct {
		Without []string `json:"without_secret"`
	}
	h.operator().call("GET", "/api/health", nil).want(http.StatusOK).into(&health)
	if len(health.Without) != 1 || health.Without[0] != "bot" {
		t.Errorf("%v", health.Without)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what a write that was cut short left behind is still there")
	}
}

// Who has the folder is named, and nobody else: hub.json may be of one that was killed, or of another process by now.
func TestOnlyWhoHasTheFolderIsNamed(t *testing.T) {
	h := openHouse(t)
	again := func() Info {
		t.Helper()
		_, err := open(context.Background(), config.Config{Data: h.dir}, slog.New(slog.DiscardHandler), time.Now, loadSchemas)
		var other *RunningError
		if !errors.As(err, &other) {
			t.Fatalf("opened twice: %v", err)
		}
		return other.Other
	}
	if got := again(); got.PID != os.Getpid() || got.URL != h.hub.URL() {
		t.Errorf("%+v", got)
	}
	if err := writeInfo(h.dir, Info{URL: "http://127.0.0.1:1", PID: os.Getppid()}); err != nil {
		t.Fatal(err)
	}
	if got := again(); got != (Info{PID: os.Getpid()}) {
		t.Errorf("%+v, want the process that has it and nothing of the other", got)
	}
}

// What a copy from elsewhere let others read, the hub shuts as it starts.
func TestSecretsOfTheFolderAreShut(t *testing.T) {
	h := openHouse(t)
	h.stop()
	open := []string{secrets.FileName, TokenFile, KeyFile, OwnAgentFile}
	for _, name := range open {
		path := filepath.Join(h.dir, name)
		if _, err := os.Stat(path); err != nil && name != OwnAgentFile {
			continue
		}
		if name == OwnAgentFile {
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h.start()
	for _, name := range open {
		info, err := os.Stat(filepath.Join(h.dir, name))
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
}
