package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Done remembers which entries were acted on, in a folder, for every process that consumes the mailbox of one agent
// there. An entry is reserved before it is acted on, so that an overlapping delivery is noticed while the work goes
// on; a process that is killed leaves its reservations behind, and they are told from those of living ones by a lock
// that the kernel lifts. It is safe for concurrent use, within a process and between them.
type Done struct {
	dir  string
	run  string // this process's name among the others
	life *flock.Flock
	step *flock.Flock // held while a mark is read and written
	mu   sync.Mutex   // the same, within the process
}

// mark is what is remembered of one entry, in a file of its own.
type mark struct {
	Key   string `json:"key"`
	Run   string `json:"run"` // who reserved it
	Done  bool   `json:"done"`
	Acked bool   `json:"acked"`
	Note  string `json:"note,omitempty"`
}

// standing is how an entry stands when it comes.
type standing int

const (
	fresh       standing = iota // not seen before, or given back: it is reserved now
	busy                        // somebody is acting on it
	interrupted                 // whoever acted on it died before the end
	acted
)

// remembered is how long an entry is known after its acknowledgment: much longer than a signature is fresh, so that
// none can be played again to a consumer that was restarted.
const remembered = 24 * time.Hour

// OpenDone opens the folder, or makes it.
func OpenDone(dir string) (*Done, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &Done{dir: dir, step: flock.New(filepath.Join(dir, "step.lock"), flock.SetPermissions(0o600))}
	return d, d.locked(context.Background(), func() error {
		f, err := os.CreateTemp(dir, "run-*.lock")
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
		d.run, d.life = filepath.Base(f.Name()), flock.New(f.Name())
		if ok, err := d.life.TryLock(); err != nil || !ok {
			return fmt.Errorf("%s cannot be locked: %w", f.Name(), err)
		}
		return d.sweep(time.Now())
	})
}

// Close ends this process's part; what it reserved and did not finish counts as interrupted from here on.
func (d *Done) Close() error {
	return errors.Join(os.Remove(d.life.Path()), d.life.Unlock(), d.step.Close())
}

// locked runs fn while nobody else reads or writes marks.
func (d *Done) locked(ctx context.Context, fn func() error) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.step.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.step.Unlock()) }()
	return fn()
}

func (d *Done) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(d.dir, hex.EncodeToString(sum[:16])+".json")
}

func (d *Done) read(key string) (m mark, known bool, err error) {
	raw, err := os.ReadFile(d.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if json.Unmarshal(raw, &m) != nil {
		return mark{Key: key}, true, nil // damaged, or cut short by an earlier version: begun, by nobody who lives
	}
	return m, true, nil
}

// write replaces a mark.
func (d *Done) write(m mark) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return replace(d.file(m.Key), "mark-*.tmp", append(raw, '\n'))
}

// replace writes a file whole: a crash leaves the old one or the new one, never a part of either.
func replace(path, temporary string, raw []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(raw); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncFolder(dir)
	return nil
}

// syncFolder makes the names in a folder durable, where a file system can.
func syncFolder(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return
	}
	defer dir.Close()
	_ = dir.Sync() // not every file system can sync a folder
}

// alive says whether the process of that run still runs.
func (d *Done) alive(run string) bool {
	path := filepath.Join(d.dir, run)
	if _, err := os.Stat(path); run == "" || run == d.run || err != nil {
		return run == d.run
	}
	l := flock.New(path)
	free, err := l.TryLock()
	if free {
		err = l.Unlock()
	}
	return err != nil || !free
}

// reserve takes an entry before it is acted on, and says how it stood. A reservation that was left behind is taken
// over only if again is set. The note is that of an entry that was acted on.
func (d *Done) reserve(ctx context.Context, key string, again bool) (s standing, note string, err error) {
	err = d.locked(ctx, func() error {
		m, known, err := d.read(key)
		switch {
		case err != nil:
			return err
		case !known:
			return d.write(mark{Key: key, Run: d.run})
		case m.Done:
			s, note = acted, m.Note
			return nil
		case d.alive(m.Run):
			s = busy
			return nil
		}
		s = interrupted
		if again {
			return d.write(mark{Key: key, Run: d.run})
		}
		return nil
	})
	return s, note, err
}

// release gives back what was reserved and not done.
func (d *Done) release(key string) error {
	return d.locked(context.Background(), func() error {
		defer syncFolder(d.dir)
		return os.Remove(d.file(key))
	})
}

// abandon leaves behind what was begun and not done, as the death of this process would.
func (d *Done) abandon(key string) error {
	return d.locked(context.Background(), func() error { return d.write(mark{Key: key}) })
}

// record remembers that an entry was acted on, and with which note.
func (d *Done) record(key, note string, acked bool) error {
	return d.locked(context.Background(), func() error { return d.write(mark{Key: key, Run: d.run, Done: true, Acked: acked, Note: note}) })
}

// sweep forgets what can never come again, and the locks of the dead.
func (d *Done) sweep(now time.Time) error {
	files, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(d.dir, f.Name())
		switch {
		case strings.HasPrefix(f.Name(), "run-"):
			if !d.alive(f.Name()) {
				err = errors.Join(err, os.Remove(path))
			}
		case strings.HasPrefix(f.Name(), "mark-"): // nobody writes one now: whoever began it died
			err = errors.Join(err, os.Remove(path))
		case strings.HasSuffix(f.Name(), ".json"):
			var m mark
			info, ierr := f.Info()
			if ierr != nil || now.Sub(info.ModTime()) < remembered {
				continue
			}
			if raw, rerr := os.ReadFile(path); rerr == nil && json.Unmarshal(raw, &m) == nil && m.Acked {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}
	return err
}
