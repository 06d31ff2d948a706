//go:build unix

package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

// The crash test runs this same binary as a child that works through a fixed script and kills itself with SIGKILL just
// before or just after its nth commit. The parent then looks at what is on disk.
const (
	crashDir    = "DESKBELL_CRASH_DIR"
	crashPoint  = "DESKBELL_CRASH_POINT" // n for just before the nth commit, -n for just after it
	crashScript = "DESKBELL_CRASH_SCRIPT"
)

var scripts = map[string]func() []step{"items": script, "mailbox": mailboxScript}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if err := crashChild(dir, os.Getenv(crashPoint)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// step is one line of the script: what the child does, and how the parent sees that it was done.
type step struct {
	name string
	do   func(context.Context, *Store) error
	done func(context.Context, *Store) (bool, error)
}

func script() []step {
	ended := func(id string, s *Store, ctx context.Context) (bool, error) {
		it, err := s.Item(ctx, id)
		if errors.Is(err, inbox.ErrNotFound) {
			return false, nil
		}
		if err != nil || !it.Terminal() {
			return false, err
		}
		// What one transaction wrote is there as a whole or not at all.
		h, err := s.History(ctx, id)
		if err != nil {
			return false, err
		}
		o, _, err := s.OwedOf(ctx, id)
		if err != nil {
			return false, fmt.Errorf("%s ended and owes nothing: %w", id, err)
		}
		if it.Outcome == nil || len(it.Response) == 0 || len(h) < 2 || o.ItemID != id {
			return false, fmt.Errorf("%s ended by half: %+v, %d lines of history, owed %+v", id, it.Outcome, len(h), o)
		}
		return true, nil
	}
	var all []step
	for i := range 6 {
		n := newItem(i)
		id := n.Item.ID
		all = append(all,
			step{"submit " + id,
				func(ctx context.Context, s *Store) error { _, _, _, err := s.Insert(ctx, n); return err },
				func(ctx context.Context, s *Store) (bool, error) {
					_, err := s.Item(ctx, id)
					if errors.Is(err, inbox.ErrNotFound) {
						return false, nil
					}
					h, herr := s.History(ctx, id)
					if herr == nil && len(h) == 0 {
						herr = errors.New("an item without its first line of history")
					}
					return true, errors.Join(err, herr)
				}},
			step{"answer " + id,
				func(ctx context.Context, s *Store) error {
					_, err := s.Apply(ctx, id, answer("res_"+id))
					var terminal *inbox.TerminalError
					if errors.As(err, &terminal) { // an earlier life did it and did not live to say so
						return nil
					}
					return err
				},
				func(ctx context.Context, s *Store) (bool, error) { return ended(id, s, ctx) }},
			step{"push " + id,
				func(ctx context.Context, s *Store) error {
					o, _, err := s.OwedOf(ctx, id)
					if err != nil {
						return err
					}
					o.State, o.Attempts = inbox.OwedDone, 1
					return s.Attempted(ctx, o, inbox.Attempt{N: 1, At: noon, Took: time.Second, Status: 200})
				},
				func(ctx context.Context, s *Store) (bool, error) {
					o, attempts, err := s.OwedOf(ctx, id)
					if errors.Is(err, inbox.ErrNotFound) || (err == nil && o.State != inbox.OwedDone) {
						return false, nil
					}
					if err == nil && len(attempts) == 0 {
						err = errors.New("delivered without an attempt")
					}
					return true, err
				}})
	}
	return all
}

func crashChild(dir, point string) error {
	n, err := strconv.Atoi(point)
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	commits := 0
	s.onCommit = func(before bool) {
		if before {
			commits++
		}
		if (before && commits == n) || (!before && commits == -n) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // dying
		}
	}
	for _, st := range scripts[os.Getenv(crashScript)]() {
		if err := st.do(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
		fmt.Println(st.name) // told to the outside: from here on it must never be lost
	}
	return s.Close()
}

// Killed at any commit point, nothing that was told is lost, nothing is there by half, and going on from there ends
// where it would have ended without.
func TestKilledAtEveryCommitPoint(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	steps := script()
	points := []int{}
	for n := 1; n <= len(steps); n++ {
		points = append(points, n, -n)
	}
	if testing.Short() {
		points = points[:6]
	}
	for _, point := range points {
		t.Run(strconv.Itoa(point), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			told, killed := runChild(t, exe, "items", dir, point)
			if !killed {
				t.Fatal("the child was not killed")
			}
			inspect(t, dir, point, steps, told)
			// The next life goes on from there and is not killed.
			if told, killed = runChild(t, exe, "items", dir, len(steps)*10); killed || len(told) != len(steps) {
				t.Fatalf("the next life told %d of %d steps", len(told), len(steps))
			}
			inspect(t, dir, point, steps, told)
		})
	}
}

func runChild(t *testing.T, exe, script, dir string, point int) (told map[string]bool, killed bool) {
	t.Helper()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashScript+"="+script, fmt.Sprintf("%s=%d", crashPoint, point))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told = map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		told[strings.TrimSpace(lines.Text())] = true
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return told, true
		}
	}
	if err != nil {
		t.Fatalf("point %d: %v", point, err)
	}
	return told, false
}

func inspect(t *testing.T, dir string, point int, steps []step, told map[string]bool) {
	t.Helper()
	s, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("point %d: %v", point, err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("point %d: %v, %v", point, problems, err)
	}
	untold := 0
	for _, st := range steps {
		done, err := st.done(t.Context(), s)
		if err != nil {
			t.Fatalf("point %d, %s: %v", point, st.name, err)
		}
		if told[st.name] && !done {
			t.Fatalf("point %d: %s was told and is lost", point, st.name)
		}
		if done && !told[st.name] {
			untold++
		}
	}
	if untold > 1 {
		t.Fatalf("point %d: %d steps are there that nobody was told of", point, untold)
	}
}
