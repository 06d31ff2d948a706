package desk

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// A page that falls behind is told that anything may have moved: what it missed is named by nothing that comes later.
func TestWhoFallsBehindReadsAnew(t *testing.T) {
	d := &Desk{}
	changes := d.Changes(t.Context())
	d.Touch(TopicRules)
	for i := range cap(changes) + 1 {
		d.feed.send(Event{Items: []string{fmt.Sprint(i)}, Topics: []string{"items"}}, int64(i))
	}
	var e Event
	if err := json.Unmarshal(<-changes, &e); err != nil {
		t.Fatal(err)
	}
	if len(e.Items) > 0 || !slices.Equal(e.Topics, topics) || e.Rev != int64(cap(changes)) || len(changes) > 0 {
		t.Errorf("%+v, and %d more", e, len(changes))
	}
	d.feed.send(Event{Items: []string{"x"}, Topics: []string{"items"}}, 100)
	if err := json.Unmarshal(<-changes, &e); err != nil || !slices.Equal(e.Items, []string{"x"}) {
		t.Errorf("%+v, %v", e, err)
	}
}
