package fleet

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPeerIDs(t *testing.T) {
	for _, c := range []struct {
		parts []string
		want  string
	}{
		{[]string{"claude-code", "claude-code:0a1b2c3d"}, "acs/claude-code/claude-code:0a1b2c3d"},
		{[]string{"", ""}, "acs/~/~"},
		{[]string{"~", "%"}, "acs/%7E/%25"},
		{[]string{"a/b", "c"}, "acs/a%2Fb/c"},
		{[]string{"c", "a/b"}, "acs/c/a/b"},
		{[]string{"dev/team"}, "acs/dev/team"},
		{[]string{"größe/x"}, "acs/größe/x"},
		{[]string{"a//b"}, "acs/a%2F%2Fb"},
		{[]string{"../b"}, "acs/..%2Fb"},
		{[]string{"/b"}, "acs/%2Fb"},
		{[]string{"a/%2Fb"}, "acs/a%2F%252Fb"},
		{[]string{"a/~"}, "acs/a%2F%7E"},
		{[]string{"a/b c"}, "acs/a%2Fb%20c"},
		{[]string{"acs/x"}, "acs/acs%2Fx"},
		{[]string{".", ".."}, "acs/%2E/%2E%2E"},
		{[]string{"a b", "x#y"}, "acs/a%20b/x%23y"},
		{[]string{"größe", "р\u0430ypal"}, "acs/größe/%D1%80%D0%B0ypal"}, // Cyrillic that reads as Latin
		{[]string{"ÀⅠ", "ÀⅠ"}, "acs/%C3%80%E2%85%A0/%C3%80%E2%85%A0"},    // which alone is not beside Latin
		{[]string{"a\u200bb", "\xff"}, "acs/a%E2%80%8Bb/%FF"},
	} {
		if got := PeerID("acs", c.parts...); got != c.want {
			t.Errorf("%q: %s, want %s", c.parts, got, c.want)
		}
	}
}

// A part that stands alone has all the room of an id; of several each has as much as of three. Both were 96 bytes.
func TestPeerIDsHaveTheRoomOfAnID(t *testing.T) {
	for _, part := range []string{strings.Repeat("a", 97), strings.Repeat("b", 196), "t/" + strings.Repeat("c", 96)} {
		id := PeerID("acp", part)
		if id != "acp/"+part || len(id) > maxID {
			t.Errorf("%s is %s", part, id)
		}
		if earlier := EarlierPeerID("acp", part); len(earlier) != len("acp/")+96 || !strings.Contains(earlier, "~") || !IsPeerID(earlier, "acp", part) {
			t.Errorf("%s was %s", part, earlier)
		}
	}
	if id := PeerID("acp", strings.Repeat("a", 197)); len(id) != maxID || !strings.Contains(id, "~") {
		t.Errorf("one byte more is %s", id)
	}
	if long := strings.Repeat("a", 97); PeerID("acs", long, "x") != EarlierPeerID("acs", long, "x") {
		t.Error("one of two parts has another id than before")
	}
}

// Whatever a peer calls itself, its id is one that paths and addresses can hold, and it is nobody else's.
func TestPeerIDsAreIDsAndDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("ab/%~2F#.\u200b ")), 0, 12, -1), rapid.StringN(90, 300, -1))
		a, b := [2]string{part.Draw(t, "a1"), part.Draw(t, "a2")}, [2]string{part.Draw(t, "b1"), part.Draw(t, "b2")}
		idA, idB := PeerID("acs", a[:]...), PeerID("acs", b[:]...)
		if err := checkText(idA); err != nil {
			t.Errorf("%q: %v", a, err)
		}
		if (a == b) != (idA == idB) {
			t.Errorf("%q and %q are %s and %s", a, b, idA, idB)
		}
		first := strings.TrimSuffix(PeerID("acs", a[0], ""), "~")
		if last, ok := strings.CutPrefix(idA, first); !ok || strings.Count(first, "/") != 2 || (last != a[1] && strings.Contains(last, "/")) {
			t.Errorf("%q: %s", a, idA)
		}
		if !IsPeerID(idA, "acs", a[:]...) || (a != b && IsPeerID(idA, "acs", b[:]...)) {
			t.Errorf("%s is not told apart for %q and %q", idA, a, b)
		}
		if one, two := PeerID("acp", a[1]), PeerID("acp", b[1]); (a[1] == b[1]) != (one == two) || checkText(one) != nil {
			t.Errorf("%q and %q are %s and %s", a[1], b[1], one, two)
		}
	})
}
