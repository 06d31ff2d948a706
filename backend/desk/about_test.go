package desk

import (
	"testing"

	"deskbell/backend/render"
)

// What an agent says that a call is for is shown, each of it under its name; what is no object shows nothing.
func TestWhatACallIsForIsShown(t *testing.T) {
	got := viewAbout([]byte(`{"operation":"write","capability":"","intent":{"goal":"tidy","n":1}}`))
	if len(got) != 2 || got[0].Name != "operation" || text(got[0].Text) != "write" || text(got[1].Text) != "goal: tidy; n: 1" {
		t.Errorf("%+v", got)
	}
	for _, raw := range []string{"", "null", "[1]", `"x"`} {
		if got := viewAbout([]byte(raw)); got != nil {
			t.Errorf("%q: %+v", raw, got)
		}
	}
}

func text(spans []render.Span) (all string) {
	for _, s := range spans {
		all += s.T
	}
	return all
}
