package pirpc

import (
	"strings"
	"testing"
)

// The recorded answers of both generations are the prompts of their rows, and each row finds its own.
func TestForks(t *testing.T) {
	all := frames(t)
	for _, name := range []string{"v073-s1-basic", "v16-s1-basic"} {
		r := replay(t, all[name])
		forks := r.results["c9"].Forks()
		if len(forks) < 2 || forks[0].Text != "Hello, world" || forks[0].Entry == "" {
			t.Errorf("%s: %+v", name, forks)
		}
		n := 0
		for _, row := range r.rows {
			if row.Kind != UserRow || n == len(forks) {
				continue
			}
			if f, ok := ForkAt(forks, row.Text(), 0); !ok || f != forks[n] {
				t.Errorf("%s: row %d is %+v", name, row.N, f)
			}
			n++
		}
	}
}

func TestForkAt(t *testing.T) {
	forks := []Fork{{"a", "go on"}, {"b", "look\n[image] at  this"}, {"c", "go on"}, {"d", ""}}
	for _, c := range []struct {
		text  string
		after int
		want  string
	}{{"go on", 0, "c"}, {"go on", 1, "a"}, {"go on", 2, ""}, {"[image]look at this", 0, "b"}, {"else", 0, ""}} {
		if f, ok := ForkAt(forks, c.text, c.after); f.Entry != c.want || ok != (c.want != "") {
			t.Errorf("%q, %d after it: %q", c.text, c.after, f.Entry)
		}
	}
	if got := (Result{Data: []byte(`{"messages":[{"entryId":"` + strings.Repeat("x", maxLabel+1) + `"},{"text":"no id"},7]}`)}).Forks(); got != nil {
		t.Errorf("%+v", got)
	}
}
