package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"deskbell/backend/guardian"
)

// verifyChain recomputes the chain of an exported session. keyFiles hold the secrets that its signatures were made with;
// none: they are not looked at.
func (a *app) verifyChain(file string, keyFiles []string) error {
	raw, err := a.readFile(file)
	if err != nil {
		return err
	}
	var secrets [][]byte
	for _, keyFile := range keyFiles {
		text, err := os.ReadFile(keyFile)
		if err != nil {
			return &exit{exitUsage, err}
		}
		secret := bytes.TrimRight(text, " \t\r\n")
		if len(secret) == 0 {
			return usagef("--key: there is no secret in %s", keyFile)
		}
		secrets = append(secrets, secret)
	}
	s, c, err := guardian.VerifyExport(bytes.NewReader(raw), secrets...)
	if err != nil {
		return fmt.Errorf("%s is not the export of a session: %w", file, err)
	}
	if a.json {
		doc := map[string]any{"ok": c.OK(), "kind": "acs-session", "protocol": s.Protocol, "session": s.ID, "agent": s.Agent, "steps": c.Steps, "head": c.Head, "sealed": !s.SealedAt.IsZero(), "signed": c.Signed}
		if !c.OK() {
			doc["broken_at"], doc["reason"] = c.BrokenAt, c.Why
		}
		return errors.Join(a.printJSON(doc), invalidIf(!c.OK()))
	}
	sealed := "no"
	if !s.SealedAt.IsZero() {
		sealed = stamp(s.SealedAt)
	}
	pairs(a.out, "session", line(s.Protocol+"/"+s.ID), "agent", line(s.Agent), "sealed", sealed, "head", line(s.Head))
	if !c.OK() {
		a.tell("FAIL: broken at step %d: %s", c.BrokenAt, c.Why)
		return &exit{code: exitFailure}
	}
	key := "this key"
	if len(secrets) > 1 {
		key = "these keys"
	}
	switch {
	case c.Steps == 0:
		a.tell("OK: there is nothing to verify: 0 steps, and nothing is signed")
	case len(secrets) == 0:
		a.tell("OK: consistent in itself, %s; without --key that does not show who wrote it", plural(c.Steps, "step"))
	case c.Signed == c.Steps:
		a.tell("OK: signed with %s, %s", key, plural(c.Steps, "step"))
	default:
		a.tell("OK: %s, %d of them signed with %s; the others were never answered", plural(c.Steps, "step"), c.Signed, key)
	}
	a.tell("Nothing covers the hub's own times, the folder, and the message that asked.")
	if s.SealedAt.IsZero() {
		a.tell("The session has not ended: steps after these may be missing.")
	}
	return nil
}
