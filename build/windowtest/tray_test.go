//go:build window

package windowtest

import (
	"os"
	"strings"
	"testing"

	bus "github.com/godbus/dbus/v5"
)

// panel is a desktop's place for icons.
type panel struct{ items chan [2]string }

func (p panel) RegisterStatusNotifierItem(sender bus.Sender, item string) *bus.Error {
	p.items <- [2]string{string(sender), item}
	return nil
}

func TestTheTrayBringsItBackAndQuits(t *testing.T) {
	conn, err := bus.Connect(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	icons := panel{make(chan [2]string, 10)}
	if err := conn.Export(icons, "/StatusNotifierWatcher", "org.kde.StatusNotifierWatcher"); err != nil {
		t.Fatal(err)
	}
	if r, err := conn.RequestName("org.kde.StatusNotifierWatcher", bus.NameFlagDoNotQueue); err != nil || r != bus.RequestNameReplyPrimaryOwner {
		t.Fatalf("the bus has a panel already: %v %v", r, err)
	}

	p := start(t, probe, newData(t))
	p.awaitPainted()
	item := <-icons.items
	p.press(p.awaitVisible(true), "alt+F4")
	p.awaitVisible(false)
	if err := conn.Object(item[0], bus.ObjectPath(item[1])).Call("org.kde.StatusNotifierItem.Activate", 0, int32(0), int32(0)).Err; err != nil {
		t.Fatal(err)
	}
	p.awaitVisible(true)

	// The menu, as the panel would read it.
	type layout struct {
		ID       int32
		Props    map[string]bus.Variant
		Children []bus.Variant
	}
	var revision uint32
	var root layout
	menu := conn.Object(item[0], "/StatusNotifierItem/menu")
	if err := menu.Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root); err != nil {
		t.Fatal(err)
	}
	for _, child := range root.Children {
		var entry layout
		if err := bus.Store([]any{child.Value()}, &entry); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(entry.Props["label"].String(), "Quit") {
			if err := menu.Call("com.canonical.dbusmenu.Event", 0, entry.ID, "clicked", bus.MakeVariant(0), uint32(0)).Err; err != nil {
				t.Fatal(err)
			}
		}
	}
	p.awaitExit()
}
