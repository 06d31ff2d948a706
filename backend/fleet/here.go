package fleet

import (
	"maps"
	"time"
)

// Connected notes that an agent is connected from now on, or is not any more. While it is, it is there, however long it says
// nothing; once it is not, it is gone until it shows itself again, however lately it was there.
func (f *Fleet) Connected(id string, now bool) {
	f.Seen(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !now {
		delete(f.here, id)
		if f.lost == nil {
			f.lost = map[string]bool{}
		}
		f.lost[id] = true
		return
	}
	if f.here == nil {
		f.here = map[string]bool{}
	}
	f.here[id] = true
}

// Lost are the agents whose connection ended, and that have not shown themselves since.
func (f *Fleet) Lost() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.lost)
}

// stillHere counts who is connected as seen. It is done now and then, so that what is written down stays near the truth if the
// hub dies, and not as often as what was seen is written down, since each time is a write for each of them.
func (f *Fleet) stillHere() {
	now := f.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[string]time.Time{}
	}
	for id := range f.here {
		f.seen[id] = now
	}
}
