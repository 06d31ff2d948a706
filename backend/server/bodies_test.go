package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"deskbell/backend/protocol"
)

// zeros is a body of n bytes.
func zeros(n int64) io.Reader { return bytes.NewReader(make([]byte, n)) }

func TestLargeBodiesHaveRoomTogether(t *testing.T) {
	var b bodies
	var all []*body
	read := func(caller string, n int64) error {
		c := b.count(caller, zeros(n))
		_, err := io.Copy(io.Discard, c)
		all = append(all, c)
		return err
	}
	for range maxBodiesOf / (4 << 20) {
		if err := read("bot", 4<<20); err != nil {
			t.Fatal(err)
		}
	}
	var full *protocol.Error
	if err := read("bot", 4<<20); !errors.As(err, &full) || full.Status != http.StatusServiceUnavailable {
		t.Errorf("one caller had more than its part: %v", err)
	}
	if err := read("bot", smallBody); err != nil {
		t.Errorf("a small body: %v", err)
	}
	if err := read("other", 4<<20); err != nil {
		t.Errorf("another caller: %v", err)
	}
	for _, c := range all {
		c.close()
	}
	if b.total != 0 || len(b.of) != 0 {
		t.Errorf("left: %d, %v", b.total, b.of)
	}
}

// A body that is only announced takes no room: what has come of it is one byte.
func TestAnnouncedBodiesTakeNoRoom(t *testing.T) {
	var b bodies
	for range 1000 {
		if _, err := b.count("", io.MultiReader(strings.NewReader("{"), zeros(1<<20))).Read(make([]byte, 512)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(io.Discard, b.count("", zeros(1<<20))); err != nil {
		t.Errorf("a large body behind many that are announced: %v", err)
	}
}

func TestLargeBodiesAreCountedUnderConcurrency(t *testing.T) {
	var b bodies
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				c := b.count("bot", zeros(1<<20))
				_, _ = io.Copy(io.Discard, c) // there is room or there is none
				c.close()
			}
		})
	}
	wg.Wait()
	if b.total != 0 || len(b.of) != 0 {
		t.Errorf("left: %d, %v", b.total, b.of)
	}
}
