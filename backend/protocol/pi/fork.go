package pi

import (
	"context"
	"encoding/json"
	"net/http"

	"deskbell/backend/pirpc"
	"deskbell/backend/protocol"
	"deskbell/backend/transcript"
)

// Forks are the person's prompts in a session at which it can be forked, the oldest first. Errors: as Send.
func (b *Binding) Forks(ctx context.Context, key string) ([]pirpc.Fork, error) {
	forks, _, err := b.forks(ctx, key)
	return forks, err
}

// forks also says by what name this pi forks.
func (b *Binding) forks(ctx context.Context, key string) ([]pirpc.Fork, string, error) {
	r, _, err := b.Send(ctx, key, pirpc.Command{Type: "get_fork_messages"})
	if err == nil || !r.Unknown() {
		return r.Forks(), "fork", err
	}
	if r, _, older := b.Send(ctx, key, pirpc.Command{Type: "get_branch_messages"}); older == nil {
		return r.Forks(), "branch", nil
	}
	return nil, "", err
}

// Fork makes another session of what was said before a prompt, in the same process, and returns pi's answer and the id of
// that session. The prompt is an entry of pi's, or a row of the transcript. Errors: as Send; that pi has no such prompt.
func (b *Binding) Fork(ctx context.Context, key, entry string, row int) (pirpc.Result, string, error) {
	forks, name, err := b.forks(ctx, key)
	if err != nil {
		return pirpc.Result{}, "", err
	}
	if entry == "" {
		at, ok, err := b.forkOf(ctx, key, row, forks)
		if err != nil {
			return pirpc.Result{}, "", err
		}
		if !ok {
			return pirpc.Result{}, "", protocol.Errorf(http.StatusConflict, "no_fork", "pi has no such prompt to fork at any more")
		}
		entry = at.Entry
	}
	return b.Send(ctx, key, pirpc.Command{Type: name, Params: map[string]any{"entryId": entry}})
}

// forkOf finds the fork that a row is.
func (b *Binding) forkOf(ctx context.Context, key string, n int, forks []pirpc.Fork) (pirpc.Fork, bool, error) {
	const page = 500
	text, after := "", 0
	for from := n; ; {
		rows, err := b.Transcripts.Rows(ctx, Name, key, transcript.Query{From: from, Limit: page})
		if err != nil {
			return pirpc.Fork{}, false, err
		}
		for _, r := range rows {
			if r.Kind != string(pirpc.UserRow) {
				if r.N == n {
					return pirpc.Fork{}, false, nil
				}
				continue
			}
			var row pirpc.Row
			if err := json.Unmarshal(r.Body, &row); err != nil {
				return pirpc.Fork{}, false, err
			}
			switch said := row.Text(); {
			case r.N == n:
				text = said
			case pirpc.SamePrompt(said, text):
				after++
			}
		}
		if len(rows) < page {
			break
		}
		from = rows[len(rows)-1].N + 1
	}
	at, ok := pirpc.ForkAt(forks, text, after)
	return at, ok && text != "", nil
}
