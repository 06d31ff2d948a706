package backend

import (
	"context"
	"os"

	"deskbell/backend/desk"
	"deskbell/backend/protocol/pi"
)

// piDesk is the sessions of pi in the words of desk, which knows what pi says and not how it is run.
type piDesk struct{ *pi.Binding }

func (p piDesk) Current(id string) (desk.PiNow, bool) {
	l, ok := p.Live(id)
	now := desk.PiNow{State: l.State, Info: l.Info, Quiet: l.Quiet}
	for _, a := range l.Asks {
		now.Asks = append(now.Asks, desk.PiAsk(a))
	}
	return now, ok
}

func (p piDesk) Begin(ctx context.Context, s desk.PiStart) (string, error) {
	return p.Start(ctx, pi.Start{Folder: s.Folder, Model: s.Model, Thinking: s.Thinking, Args: s.Args, Gate: s.Gate, Resume: s.Resume, File: s.File})
}

func (p piDesk) Files(folder string) ([]desk.PiFile, error) {
	files, err := pi.Files(folder, os.Getenv)
	out := []desk.PiFile{}
	for _, f := range files {
		out = append(out, desk.PiFile(f))
	}
	return out, err
}
