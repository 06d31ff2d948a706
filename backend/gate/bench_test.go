package gate

import (
	"fmt"
	"testing"
)

// A call that no rule of many matches: every one of them is looked at.
func BenchmarkJudge(b *testing.B) {
	m := &memory{}
	for i := range 200 {
		m.rules = append(m.rules, Rule{ID: fmt.Sprint(i), Verdict: Allow, Match: Match{Platform: "claude-code", Tool: "Bash",
			Arguments: []Argument{{"command", []Op{Command, Like, Is}[i%3], fmt.Sprintf("git status-%d", i)}}}})
	}
	g := newGate(b, m)
	s := call("Bash", map[string]any{"command": "go test -race ./... -run 'A|B' -count 1"})
	b.ReportAllocs()
	for b.Loop() {
		if g.Judge(s).Verdict != Ask {
			b.Fatal("matched")
		}
	}
}

// The same of rules that deny, which also ask themselves what cannot be told.
func BenchmarkJudgeDenying(b *testing.B) {
	m := &memory{}
	for i := range 200 {
		m.rules = append(m.rules, Rule{ID: fmt.Sprint(i), Verdict: Deny, Match: Match{Platform: "claude-code", Tool: "Bash",
			Arguments: []Argument{{"command", []Op{Command, Like, Is}[i%3], fmt.Sprintf("git status-%d", i)}}}})
	}
	g := newGate(b, m)
	s := call("Bash", map[string]any{"command": "go test -race ./... -run 'A|B' -count 1"})
	b.ReportAllocs()
	for b.Loop() {
		if r := g.Judge(s); r.Verdict != Ask || r.Untold {
			b.Fatal("matched")
		}
	}
}
