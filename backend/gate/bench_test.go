package gate

import (
	"fmt"
	"testing"
)

// A call that no rule of many matches: every one of them is looked at.
func BenchmarkJudge(b *testing.B) { benchmarkJudge(b, Allow) }

// The same of rules that deny, which also ask themselves what cannot be told.
func BenchmarkJudgeDenying(b *testing.B) { benchmarkJudge(b, Deny) }

func benchmarkJudge(b *testing.B, v Verdict) {
	m := &memory{}
	for i := range 200 {
		m.rules = append(m.rules, Rule{ID: fmt.Sprint(i), Verdict: v, Match: Match{Platform: "claude-code", Tool: "Bash",
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
