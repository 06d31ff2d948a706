package inbox

import "testing"

// A search says why it found an item where the title and the agent do not: the field that holds most of the words that they
// lack, and the text around the first of them.
func TestFoundSaysWhy(t *testing.T) {
	it := Item{Title: "Which branch?", Agent: "pi/one", Content: Content{
		Body: "The tests ran.\n\nCut the  **Release** from main, or from the branch that everybody has been working on?", Tags: []string{"nightly"},
		Request: &Request{Mode: Select, Options: []Option{{Value: "main", Label: "The main one"}, {Value: "r", Label: "Café branch"}}},
	}, Outcome: &Outcome{State: Answered, Value: []byte(`"main"`), Comment: "As always"}}
	for typed, want := range map[string]string{
		"branch":        "", // the title says it
		"pi":            "", // the agent does
		"nothing":       "",
		"rel":           "body|…Cut the **|Release|** from main, or from the branch that everybody has been working on?",
		"rel ":          "", // that is no whole word of it
		"RELEASE which": "body|…Cut the **|Release|** from main, or from the branch that everybody has been working on?",
		"cafe":          "choices||Café| branch",
		"always":        "comment|As |always|",
		"nightly":       "tags||nightly|",
		"main":          "answer||main|",
		"ranch":         "", // words begin at their beginning
	} {
		got := ""
		if f, ok := it.Found(typed); ok {
			got = f.In + "|" + f.Before + "|" + f.Hit + "|" + f.Behind
		}
		if got != want {
			t.Errorf("%q is found by %q, want %q", typed, got, want)
		}
	}
	it.Content.Sensitive = true
	if f, ok := it.Found("release"); ok {
		t.Errorf("of a sensitive item it says %v", f)
	}
}
