package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"deskbell/backend/signing"
)

// Nonces remembers in a file which signatures were used, for every process that consumes the mailbox of one agent there:
// what was played once stays played when a consumer is started again (MA2H §9.7). The file is a log of what the window
// of each process learned, and holds no more than what is fresh and as much again. It is safe for concurrent use, within
// a process and between them.
type Nonces struct {
	file   string
	mu     sync.Mutex
	step   *flock.Flock // held while the file is read and written
	window *signing.ReplayWindow
	read   int64  // how much of the file the window knows
	last   []byte // the end of that: where it is not there any more, the file is another
	begun  bool   // this process has dropped what it found stale
}

// ErrMemory: what must be remembered cannot be. Nothing may be acted on without it.
var ErrMemory = errors.New("what was seen cannot be remembered")

// mostNonces bounds how many fresh signatures are remembered; more than that are refused until some are stale.
const mostNonces = 1 << 16

// lineLength is one line of the log: the second of the signature, a space, the beginning of the nonce's digest.
const lineLength = 10 + 1 + 32 + 1

// OpenNonces opens the memory in the folder dir, or makes it.
func OpenNonces(dir string) (*Nonces, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	n := &Nonces{file: filepath.Join(dir, "nonces"), step: flock.New(filepath.Join(dir, "nonces.lock"), flock.SetPermissions(0o600)),
		window: signing.NewReplayWindow(mostNonces)}
	return n, nil
}

// Close gives the lock's file back; what is remembered stays.
func (n *Nonces) Close() error { return n.step.Close() }

// Use takes the nonce of a signature that has been verified at now: the errors of a signing.ReplayWindow, and ErrMemory.
func (n *Nonces) Use(h signing.Header, now time.Time) error {
	sum := sha256.Sum256([]byte(h.JTI))
	h.JTI = hex.EncodeToString(sum[:16])
	var verdict error
	err := n.locked(func() error {
		if err := n.catchUp(now); err != nil {
			return err
		}
		if verdict = n.window.Use(h, now); verdict != nil {
			return nil
		}
		if !n.begun || n.read >= 2*mostNonces*lineLength {
			if err := n.shrink(now); err != nil {
				return err
			}
			n.begun = true
		}
		return n.write(fmt.Appendf(nil, "%010d %s\n", h.T, h.JTI))
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return verdict
}

func (n *Nonces) locked(fn func() error) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.step.TryLockContext(context.Background(), 5*time.Millisecond); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.step.Unlock()) }()
	return fn()
}

// catchUp reads what was written since, by this process or another.
func (n *Nonces) catchUp(now time.Time) error {
	f, err := os.Open(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		n.read, n.last = 0, nil
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from := n.read - int64(len(n.last))
	raw, err := io.ReadAll(io.NewSectionReader(f, from, max(info.Size()-from, 0)))
	if err == nil && !bytes.HasPrefix(raw, n.last) { // somebody shrank it; that it has the number of the old one says nothing
		n.read, n.last = 0, nil
		raw, err = io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	}
	if err != nil {
		return err
	}
	raw = raw[len(n.last):]
	for line := range bytes.Lines(raw) {
		if h, ok := parseNonce(line); ok {
			_ = n.window.Use(h, now) // known already, or stale by now
		}
	}
	n.read += int64(len(raw))
	end := append(n.last, raw...)
	n.last = bytes.Clone(end[max(len(end)-lineLength, 0):])
	return nil
}

// parseNonce reads a line; false of what a crash cut short.
func parseNonce(line []byte) (h signing.Header, ok bool) {
	t, jti, ok := strings.Cut(string(line), " ")
	if !ok || len(line) != lineLength {
		return h, false
	}
	seconds, err := strconv.ParseInt(t, 10, 64)
	return signing.Header{T: seconds, JTI: strings.TrimSuffix(jti, "\n")}, err == nil
}

// write adds a line to the log, durably. It ends what a crash left unended.
func (n *Nonces) write(line []byte) (err error) {
	f, err := os.OpenFile(n.file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if last := []byte{'\n'}; info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	if info.Size() == 0 { // the file is new
		syncFolder(filepath.Dir(n.file))
	}
	return f.Sync()
}

// shrink replaces the log by what of it is still fresh.
func (n *Nonces) shrink(now time.Time) error {
	raw, err := os.ReadFile(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var fresh []byte
	for line := range bytes.Lines(raw) {
		if h, ok := parseNonce(line); ok && h.T+int64(signing.Window/time.Second) >= now.Unix() {
			fresh = append(fresh, line...)
		}
	}
	if len(fresh) == len(raw) {
		return nil
	}
	const temporary = "nonces-*.tmp"
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(n.file), temporary)); err == nil { // of whoever died while writing one
		for _, path := range left {
			_ = os.Remove(path) // it lies there and says nothing
		}
	}
	return replace(n.file, temporary, fresh)
}
