package backend

import (
	"context"
	"path/filepath"
	"slices"

	"deskbell/backend/fleet"
	"deskbell/backend/protocol/acs"
	"deskbell/backend/secrets"
	"deskbell/backend/settings"
	"deskbell/backend/signing"
	"deskbell/schemas"
)

// ACSKeyFile is where, in the data folder, the secret is that the hub shares with the hosts of ACS agents.
const ACSKeyFile = "acs/hmac.key"

// ACSDoctorTool is the name of a tool that nobody has: the hub denies it by itself.
const ACSDoctorTool = acs.DoctorTool

// shareACSKey reads that secret, and makes one where there is none.
func (h *Hub) shareACSKey() (err error) {
	h.acsSecret, err = secrets.SharedKey(filepath.Join(h.cfg.Data, ACSKeyFile))
	return err
}

func (h *Hub) newACS(set *schemas.Set) *acs.Binding {
	return acs.New(acs.Config{
		Inbox: h.inbox, Gate: h.gate, Guardian: h.guardian, Fleet: h.fleet, Schemas: set, Secret: []byte(h.acsSecret), Stopped: h.stopped,
		Depth:  func() int { return h.settings.Get().Int(settings.InboxDepth) },
		Secure: func() bool { return h.cfg.TLSCert != "" },
		Now:    h.now, Log: h.log,
	})
}

// stopped says whether the operator stopped an agent until further notice.
func (h *Hub) stopped(ctx context.Context, agent string) (bool, error) {
	stops, err := h.store.Stops(ctx)
	return slices.ContainsFunc(stops, func(s fleet.Stop) bool { return s.Agent == agent }), err
}

// sessionKey is the key of a guarded session.
func (h *Hub) sessionKey(session string) []byte {
	key, err := signing.SessionKey([]byte(h.acsSecret), session)
	if err != nil {
		h.log.Error("the key of a guarded session", "err", err)
		return nil
	}
	return key
}
