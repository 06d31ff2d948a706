package app

import (
	"strings"
	"testing"
)

// A link names an item or nothing: whatever it holds, an id that comes out of it is safe to put into a path.
func FuzzParseLink(f *testing.F) {
	for _, link := range []string{"", "deskbell://item/msg_1", "msg_1", "deskbell:item/../x", "deskbell://item/a%2fb"} {
		f.Add(link)
	}
	f.Fuzz(func(t *testing.T, link string) {
		id, err := ParseLink(link)
		if err == nil && (strings.ContainsAny(id, "/\\?#% \n") || strings.Contains(id, "..")) {
			t.Errorf("%q: %q", link, id)
		}
	})
}
