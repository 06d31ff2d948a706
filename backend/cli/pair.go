package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"deskbell/backend/client"
	"deskbell/backend/secrets"
)

func (a *app) pairCommand() *cobra.Command {
	var note, out string
	c := &cobra.Command{
		Use:   "pair ID",
		Short: "Ask the person for an agent's credentials",
		Long: "Asks for credentials for an agent, prints a code, and waits until the person, who sees the same code in the window,\n" +
			"approves. Then it prints the credentials, once. Nothing of the hub's data folder but its address is needed.\n" +
			"Interrupted, it withdraws its request.\n\n" +
			"Exit codes: 0 approved, 10 refused, 11 nobody decided in time, 130 interrupted, 1 any other failure.",
		Example: "  deskbell pair deploybot --note \"from the build machine\"\n  deskbell pair deploybot --out ~/.config/deploybot/deskbell.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.pair(cmd.Context(), args[0], note, out)
		},
	}
	c.Flags().StringVar(&note, "note", "", "a `TEXT` that the person reads beside the code")
	c.Flags().StringVar(&out, "out", "", "keep the credentials in `FILE` (mode 0600) instead of printing them")
	a.addrFlag(c)
	return c
}

type pairing struct {
	ID          string       `json:"id"`
	AgentID     string       `json:"agent_id"`
	Code        string       `json:"code"`
	Secret      string       `json:"secret"`
	State       string       `json:"state"`
	Credentials *credentials `json:"credentials"`
}

func (a *app) pair(ctx context.Context, id, note, out string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	base, err := a.find(cfg)
	if err != nil {
		return err
	}
	if out != "" {
		if out, err = filepath.Abs(out); err != nil {
			return err
		}
		if info, err := os.Stat(filepath.Dir(out)); err != nil || !info.IsDir() {
			return usagef("--out: there is no folder %s", filepath.Dir(out))
		}
	}
	body := map[string]string{"agent_id": id}
	if note != "" {
		body["note"] = note
	}
	var p pairing
	if err := a.dial(cfg, base, "").Call(ctx, http.MethodPost, "/v1/pairings", body, &p); err != nil {
		return err
	}
	a.say("Code: %s\nApprove the pairing of %s in Deskbell's window if it shows the same code. Waiting…", p.Code, id)
	call := func(ctx context.Context, method string, out any) error {
		if again, err := a.find(cfg); err == nil { // the hub may have been restarted elsewhere
			base = again
		}
		return a.dial(cfg, base, p.Secret).Call(ctx, method, "/v1/pairings/"+url.PathEscape(p.ID), nil, out)
	}
	c, err := awaitPairing(ctx, call)
	if err == nil {
		return a.keepCredentials(c, out)
	}
	if ctx.Err() != nil { // interrupted: the person need not decide on what nobody waits for
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		if call(brief, http.MethodDelete, nil) == nil {
			a.say("The request is withdrawn.")
		}
	}
	return err
}

// awaitPairing asks about a pairing until it is decided.
func awaitPairing(ctx context.Context, call func(ctx context.Context, method string, out any) error) (credentials, error) {
	for attempt := 0; ; attempt++ {
		var now pairing
		err := call(ctx, http.MethodGet, &now)
		switch {
		case errors.Is(err, client.ErrUnreachable): // tried on: the hub may come back
		case err != nil:
			return credentials{}, err
		case now.Credentials != nil:
			return *now.Credentials, nil
		case now.State == "refused":
			return credentials{}, &exit{code: exitDeclined, err: errors.New("the pairing was refused")}
		case now.State == "expired":
			return credentials{}, &exit{code: exitExpired, err: errors.New("nobody decided on the pairing in time")}
		case now.State != "pending" && now.State != "approved":
			return credentials{}, fmt.Errorf("the pairing is over: %s", line(now.State))
		}
		if err := pause(ctx, min(200*time.Millisecond<<min(attempt, 3), time.Second)); err != nil {
			return credentials{}, err
		}
	}
}

func (a *app) keepCredentials(c credentials, out string) error {
	if out == "" {
		return a.printCredentials(c, "Paired")
	}
	raw, err := client.Bytes(c)
	if err != nil {
		return err
	}
	if err := secrets.WriteFile(out, append(raw, '\n')); err != nil {
		return fmt.Errorf("the credentials could not be kept, and are not shown again (`deskbell agent rotate` makes others): %w", err)
	}
	return a.done(map[string]any{"agent_id": c.AgentID, "file": out}, "Paired %s; its credentials are in %s.", c.AgentID, out)
}
