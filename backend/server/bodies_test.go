package server

import (
	"sync"
	"testing"
)

func TestLargeBodiesHaveRoomTogether(t *testing.T) {
	var b bodies
	var frees []func()
	for range maxBodiesOf / (4 << 20) {
		free, err := b.take("bot", 4<<20)
		if err != nil {
			t.Fatal(err)
		}
		frees = append(frees, free)
	}
	if _, err := b.take("bot", 4<<20); err == nil {
		t.Error("one caller had more than its part")
	}
	if _, err := b.take("bot", smallBody); err != nil {
		t.Errorf("a small body: %v", err)
	}
	if free, err := b.take("other", 4<<20); err != nil {
		t.Errorf("another caller: %v", err)
	} else {
		free()
	}
	for _, free := range frees {
		free()
	}
	if b.total != 0 || len(b.of) != 0 {
		t.Errorf("left: %d, %v", b.total, b.of)
	}
}

func TestLargeBodiesAreCountedUnderConcurrency(t *testing.T) {
	var b bodies
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 100 {
				if free, err := b.take("bot", 1<<20); err == nil {
					free()
				}
			}
		})
	}
	wg.Wait()
	if b.total != 0 || len(b.of) != 0 {
		t.Errorf("left: %d, %v", b.total, b.of)
	}
}
