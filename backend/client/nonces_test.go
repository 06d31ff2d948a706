package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskbell/backend/client"
	"deskbell/backend/signing"
)

func openNonces(t testing.TB, dir string) *client.Nonces {
	t.Helper()
	n, err := client.OpenNonces(dir)
	must(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func jti(n int, at time.Time) signing.Header {
	return signing.Header{T: at.Unix(), JTI: fmt.Sprint("jti_", n)}
}

// What was used is used for every process, also one that begins later, as long as its signature is fresh.
func TestNoncesAreRememberedAcrossProcesses(t *testing.T) {
	dir := t.TempDir()
	one, two := openNonces(t, dir), openNonces(t, dir)
	must(t, one.Use(jti(1, now), now))
	must(t, two.Use(jti(2, now), now))
	for name, n := range map[string]*client.Nonces{"the first": one, "another": two, "a later one": openNonces(t, dir)} {
		for i := range 2 {
			if err := n.Use(jti(i+1, now), now.Add(120*time.Second)); !errors.Is(err, signing.ErrReplayed) {
				t.Errorf("%s, %d: %v", name, i+1, err)
			}
		}
		if err := n.Use(jti(1, now), now.Add(121*time.Second)); !errors.Is(err, signing.ErrStale) {
			t.Errorf("%s, stale: %v", name, err)
		}
	}
}

func TestEachNonceOnceAmongMany(t *testing.T) {
	dir := t.TempDir()
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		n := openNonces(t, dir)
		wg.Go(func() {
			for i := range 10 {
				switch err := n.Use(jti(i, now), now); {
				case err == nil:
					taken.Add(1)
				case !errors.Is(err, signing.ErrReplayed):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 10 {
		t.Errorf("10 nonces were taken %d times", taken.Load())
	}
}

// A crash may cut the last line short; what comes after it is remembered all the same. What is stale is not kept.
func TestTheFileOfNoncesIsMendedAndBounded(t *testing.T) {
	dir, today := t.TempDir(), time.Now()
	file := filepath.Join(dir, "nonces")
	n := openNonces(t, dir)
	must(t, n.Use(jti(1, today), today))
	whole, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append(whole, whole[:20]...), 0o600))
	must(t, n.Use(jti(2, today), today))
	n = openNonces(t, dir)
	for i := range 2 {
		if err := n.Use(jti(i+1, today), today); !errors.Is(err, signing.ErrReplayed) {
			t.Errorf("after a line cut short, %d: %v", i+1, err)
		}
	}

	stale := fmt.Sprintf("%010d %s\n", today.Add(-time.Hour).Unix(), strings.Repeat("0", 32))
	fresh, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, append([]byte(strings.Repeat(stale, 1000)), fresh...), 0o600))
	n = openNonces(t, dir)
	must(t, n.Use(jti(3, today), today))
	if info, err := os.Stat(file); err != nil || info.Size() != int64(3*len(whole)) {
		t.Errorf("%d bytes are left, want %d (%v)", info.Size(), 3*len(whole), err)
	}

	// One that runs for long keeps its file bounded too, and forgets nothing that matters meanwhile.
	must(t, os.WriteFile(file, append([]byte(strings.Repeat(stale, 2<<16)), fresh...), 0o600))
	must(t, n.Use(jti(4, today), today))
	if info, err := os.Stat(file); err != nil || info.Size() != int64(3*len(whole)) {
		t.Errorf("%d bytes are left, want %d (%v)", info.Size(), 3*len(whole), err)
	}
	for i := range 4 {
		if err := n.Use(jti(i+1, today), today); !errors.Is(err, signing.ErrReplayed) {
			t.Errorf("%d: %v", i+1, err)
		}
	}
}

// Whoever finds another file in the place of the one it read reads that whole, also where it is as long, and has the
// number of the old one.
func TestAnotherFileOfNoncesIsReadWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "nonces")
	one, two := openNonces(t, dir), openNonces(t, dir)
	must(t, one.Use(jti(1, now), now))
	must(t, two.Use(jti(2, now), now))
	must(t, two.Use(jti(3, now), now))
	raw, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, raw[len(raw)/3:], 0o600)) // the first line was dropped, in the same file
	must(t, two.Use(jti(4, now), now))
	for i := range 4 {
		if err := one.Use(jti(i+1, now), now); !errors.Is(err, signing.ErrReplayed) {
			t.Errorf("%d: %v", i+1, err)
		}
	}
}

// A delivery is taken once, also by consumers that come one after the other; a failed act does not make it good again.
func TestADeliveryIsTakenOnceByAllRuns(t *testing.T) {
	dir, acts := t.TempDir(), 0
	row := signed(t, right, "directive", directive, "")
	run := func() *desk {
		d := newDesk(t, dir, func(context.Context, client.Entry) (string, error) {
			acts++
			return "", errors.New("not today")
		})
		d.Verifier.Replay = openNonces(t, dir)
		return d
	}
	for _, want := range []client.What{client.EventFailed, client.EventRefused} {
		d := run()
		must(t, d.Handle(t.Context(), row, ""))
		d.want(t, "", want)
	}
	if acts != 1 {
		t.Errorf("acted %d times", acts)
	}
	d := run()
	d.handle(t, "directive", directive, "") // delivered again
	d.want(t, "", client.EventFailed)
}

// Without a memory nothing is acted on.
func TestNothingIsDoneWithoutAMemory(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t, t.TempDir(), func(context.Context, client.Entry) (string, error) {
		t.Error("acted")
		return "", nil
	})
	d.Verifier.Replay = openNonces(t, dir)
	must(t, os.Mkdir(filepath.Join(dir, "nonces"), 0o700)) // no file can be there
	if err := d.Handle(t.Context(), signed(t, right, "directive", directive, ""), ""); !errors.Is(err, client.ErrMemory) {
		t.Error(err)
	}
	d.want(t, "")
}
