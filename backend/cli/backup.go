package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"deskbell/backend"
)

const backupLong = `Writes a consistent copy of the database to FILE, which must not exist, also while the hub runs.

In FILE: every message with its history and answer, the agents with their policies and the hashes of their tokens, the
settings, the audit lines. Not in FILE: what must stay secret. --with-secrets puts that beside it, in the folder
FILE.secrets: the agents' signing secrets and the named secrets (secrets.json), the hub's signing key (ed25519.key), what
ACS agents sign with (acs/hmac.key), and the operator's token (operator.token). Keep that folder as safe as a password.

To restore: stop the hub, put FILE in the data folder as deskbell.db, remove deskbell.db-wal and deskbell.db-shm there,
and copy what is in FILE.secrets beside it (cp -r FILE.secrets/. DATA/). Without that a new operator token, signing key and
key of ACS are made at the next start, agents keep their tokens, and pushes to an agent fail until it is rotated.`

func (a *app) backupCommand() *cobra.Command {
	var withSecrets bool
	c := &cobra.Command{
		Use:     "backup FILE",
		Short:   "Copy the database to a file",
		Long:    backupLong,
		Example: "  deskbell backup ~/deskbell-monday.db\n  deskbell backup --with-secrets /mnt/safe/deskbell.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error { return a.backup(cmd.Context(), h, args[0], withSecrets) })
		},
	}
	c.Flags().BoolVar(&withSecrets, "with-secrets", false, "copy the secrets and keys too, into the folder FILE.secrets")
	a.addrFlag(c)
	return c
}

func (a *app) backup(ctx context.Context, h *hub, file string, withSecrets bool) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	folder := path + ".secrets"
	if withSecrets {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("folder for the secrets: %w", err)
		}
	}
	var state struct {
		Hub struct {
			Data string `json:"data"`
		} `json:"hub"`
	}
	err = h.Call(ctx, http.MethodGet, "/api/state", nil, &state)
	if err == nil {
		err = h.Call(ctx, http.MethodPost, "/api/backup", map[string]string{"path": path}, nil)
	}
	var copied []string
	if err == nil && withSecrets {
		copied, err = copySecrets(state.Hub.Data, folder)
	}
	if err != nil {
		if withSecrets {
			err = errors.Join(err, os.RemoveAll(folder))
		}
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the hub wrote the copy where this command cannot see it: %w", err)
	}
	if a.json {
		doc := map[string]any{"database": path, "bytes": info.Size(), "secrets": nil, "left_out": backend.SecretFiles()}
		if withSecrets {
			doc["secrets"], doc["left_out"] = map[string]any{"folder": folder, "files": copied}, []string{}
		}
		return a.printJSON(doc)
	}
	a.tell("%s: %d bytes. In it: messages with their history, agents, settings, audit lines.", path, info.Size())
	if withSecrets {
		a.tell("%s: %s. Keep it as safe as a password.", folder, strings.Join(copied, ", "))
		return nil
	}
	a.tell("Not in it: signing secrets and named secrets, the hub's signing key, what ACS agents sign with, the operator's token (--with-secrets copies them too).")
	return nil
}

// copySecrets copies what there is of the secret files.
func copySecrets(from, to string) (copied []string, err error) {
	for _, name := range backend.SecretFiles() {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // no secrets yet
		}
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(to, name), raw, 0o600); err != nil {
			return nil, err
		}
		copied = append(copied, name)
	}
	return copied, nil
}

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Print every message with its history, as JSON Lines",
		Long: "Prints one JSON object a line on stdout: a message, oldest first, as the operator may see it, with its `history`.\n" +
			"Of a message marked sensitive the body, context and answer are left out; what is the agent's own (state) always is.",
		Example: "  deskbell export > messages.jsonl\n  deskbell export | jq -r 'select(.status==\"answered\").title'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.asOperator(cmd.Context(), func(h *hub) error {
				resp, err := h.Open(cmd.Context(), http.MethodGet, "/api/export", nil)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				for in := bufio.NewReader(resp.Body); ; {
					l, err := in.ReadBytes('\n')
					if len(l) > 0 && (err == nil || err == io.EOF) {
						if _, err := a.out.Write(inert(l)); err != nil {
							return err
						}
					}
					if err == io.EOF {
						return nil
					}
					if err != nil {
						return fmt.Errorf("the export broke off, what was printed is not the whole: %w", err)
					}
				}
			})
		},
	}
	a.addrFlag(c)
	return c
}
