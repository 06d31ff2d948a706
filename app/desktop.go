package app

import "sync"

// Desktop is what the page may ask of the window: window.go.app.Desktop in JavaScript. Wails makes every exported method
// callable, so there is no other.
type Desktop struct {
	open     func(url string)
	setTitle func(string)

	mu   sync.Mutex
	item string // to be opened once the page is there
}

// OpenExternal opens a link in the system's browser (or mail program).
func (d *Desktop) OpenExternal(url string) error {
	safe, err := externalURL(url)
	if err != nil {
		return err
	}
	d.open(safe)
	return nil
}

// OpenItemOnStart is the item that the program was started for, once; then it is empty.
func (d *Desktop) OpenItemOnStart() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	item := d.item
	d.item = ""
	return item
}

// SetBadge shows how many items need the person.
func (d *Desktop) SetBadge(n int) { d.setTitle(title(n)) }
