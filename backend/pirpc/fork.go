package pirpc

import "strings"

// Fork is one of the person's prompts, at which a session can be forked.
type Fork struct {
	Entry string // pi's own id
	Text  string
}

const maxForks = 5000

// Forks reads the answer of get_fork_messages, the oldest first; nil when it is none.
func (r Result) Forks() []Fork {
	var out []Fork
	for _, raw := range object(r.Data).array("messages") {
		f := object(raw)
		if id := f.text("entryId", "entry_id", "id"); id != "" && len(id) <= maxLabel && len(out) < maxForks {
			out = append(out, Fork{id, clip(f.text("text"), maxText)})
		}
	}
	return out
}

// ForkAt is the fork of a prompt: the one of its text that has as many of the same text after it. Pi says nothing else by
// which a prompt in the transcript and one of its own could be told to be the same. False: there is none.
func ForkAt(forks []Fork, text string, after int) (Fork, bool) {
	want := likeText(text)
	for i := len(forks) - 1; i >= 0; i-- {
		if likeText(forks[i].Text) != want {
			continue
		}
		if after == 0 {
			return forks[i], true
		}
		after--
	}
	return Fork{}, false
}

// SamePrompt says whether two prompts say the same, pictures and spaces aside.
func SamePrompt(a, b string) bool { return likeText(a) == likeText(b) }

// likeText is text by which a prompt is found again: pi shows pictures and spaces in other ways than rows do.
func likeText(s string) string {
	return clip(strings.Join(strings.Fields(strings.ReplaceAll(Plain(s), "[image]", " ")), " "), maxText/2)
}
