package fleet

import "time"

// Connected notes that an agent is connected from now on, or is not any more. While it is, it is there, however long it says
// nothing.
func (f *Fleet) Connected(id string, now bool) {
	f.Seen(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !now {
		delete(f.here, id)
		return
	}
	if f.here == nil {
		f.here = map[string]bool{}
	}
	f.here[id] = true
}

// stillHere counts who is connected as seen, so that what is written down stays near the truth if the hub dies.
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
