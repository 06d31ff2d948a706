package cli

import (
	"bytes"
	"errors"
	"fmt"

	"deskbell/backend/guardian"
)

// verifyChain recomputes the chain of an exported session.
func (a *app) verifyChain(file string) error {
	raw, err := a.readFile(file)
	if err != nil {
		return err
	}
	s, c, err := guardian.VerifyExport(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%s is not the export of a session: %w", file, err)
	}
	if a.json {
		doc := map[string]any{"ok": c.OK(), "kind": "acs-session", "protocol": s.Protocol, "session": s.ID, "agent": s.Agent, "steps": c.Steps, "head": c.Head, "sealed": !s.SealedAt.IsZero()}
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
	a.tell("OK: verified, %s", plural(c.Steps, "step"))
	return nil
}
