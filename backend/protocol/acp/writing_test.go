package acp

import "testing"

func TestAPrincipalLeavesFewLargeAnswersUnread(t *testing.T) {
	var w writing
	var unread []*room
	for range maxWriting {
		r := newRoom(w.of("bot"))
		if !r.takes(largeAnswer) || !r.takes(largeAnswer+1) || !r.takes(maxAnswer) {
			t.Fatalf("after %d large answers there is no room", len(unread))
		}
		unread = append(unread, r)
	}
	one := newRoom(w.of("bot"))
	if one.takes(largeAnswer + 1) {
		t.Error("there is room for one too many")
	}
	if !one.takes(largeAnswer) {
		t.Error("there is no room for a small one")
	}
	one.bytes -= largeAnswer
	if one.takes(1) {
		t.Error("small ones may become a large one together")
	}
	if !newRoom(w.of("other")).takes(maxAnswer) || !newRoom(nil).takes(maxAnswer) {
		t.Error("others have no room")
	}
	one.close()
	unread[0].close()
	if !newRoom(w.of("bot")).takes(maxAnswer) {
		t.Error("there is no room once one was read")
	}
}
