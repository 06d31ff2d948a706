package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Consumer works through a mailbox as a conformant agent does (MA2H §13.4): verify, confirm the addressee, act at most
// once, remember, acknowledge. What it has done survives its restarts.
type Consumer struct {
	Verifier *Verifier
	// Done remembers what was acted on.
	Done *Done
	// Act does what an entry asks for, durably. Its note goes to whoever wrote. When it fails, the entry is not
	// acknowledged and comes again.
	Act func(ctx context.Context, e Entry) (note string, err error)
	// Policy says whose asks and tasks may be acted on. It must be set to take messages of other agents: who may
	// command an agent is a decision that somebody makes, never a default.
	Policy func(from string) bool
	// Refused is told of entries that were not acted on; they are not acknowledged.
	Refused func(r Row, err error)
	Now     func() time.Time
}

// ErrPolicy: the consumer's policy does not let this sender command it.
var ErrPolicy = errors.New("the policy of this agent does not take commands from that sender")

// Handle takes one row through all the duties and says whether it was acted on, now or before.
func (c *Consumer) Handle(ctx context.Context, r Row, session string) (bool, error) {
	e, err := c.Verifier.Verify(r, session, c.Now())
	if err == nil && e.Kind == "message" && (c.Policy == nil || !c.Policy(e.From)) {
		err = ErrPolicy
	}
	if err != nil {
		c.Refused(r, err)
		return false, nil
	}
	note := ""
	switch c.Done.reserve(e.Key) {
	case inFlight:
		return false, nil // an overlapping delivery is being acted on: it will acknowledge
	case free:
		if note, err = c.Act(ctx, e); err != nil {
			c.Done.release(e.Key)
			return false, fmt.Errorf("%s %s: %w", e.Kind, e.Key, err)
		}
		if err := c.Done.record(e.Key); err != nil {
			return true, err
		}
	case done: // acted on in an earlier life that ended before it could say so
	}
	return true, c.Verifier.Client.AckEntries(ctx, session, []string{e.Key}, note)
}

// Done is the keys that were acted on, kept in a file of one key a line. It is safe for concurrent use.
type Done struct {
	mu   sync.Mutex
	file *os.File
	keys map[string]status
}

type status int

const (
	free status = iota
	inFlight
	done
)

// OpenDone reads the file at path, or makes it. An empty path keeps nothing beyond this process.
func OpenDone(path string) (*Done, error) {
	d := &Done{keys: map[string]status{}}
	if path == "" {
		return d, nil
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytesLines(old) {
		var key string
		if json.Unmarshal(line, &key) == nil { // a last line cut short by a crash was not acted on to the end
			d.keys[key] = done
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if d.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		_, err = d.file.Write([]byte("\n"))
	}
	return d, err
}

func bytesLines(b []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		start := 0
		for i, c := range b {
			if c == '\n' {
				if !yield(b[start:i]) {
					return
				}
				start = i + 1
			}
		}
	}
}

func (d *Done) reserve(key string) status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.keys[key]
	if s == free {
		d.keys[key] = inFlight
	}
	return s
}

func (d *Done) release(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, key)
}

func (d *Done) record(key string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[key] = done
	if d.file == nil {
		return nil
	}
	line, err := json.Marshal(key)
	if err != nil {
		return err
	}
	if _, err := d.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return d.file.Sync()
}

// Close closes the file.
func (d *Done) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
