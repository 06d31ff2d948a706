package backend

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"deskbell/backend/desk"
	"deskbell/backend/protocol/pi"
	"deskbell/backend/settings"
	"deskbell/backend/transcript"
)

// PiGateFile is where, in the data folder, the extension is that makes pi ask leave for each call of a tool.
const PiGateFile = "pi/gate.ts"

// PiRelayRecord is what a relay (`deskbell pi`) and the hub say to each other besides pi's own records.
type PiRelayRecord = pi.RelayRecord

// The types of those, and the largest frame either way.
const (
	PiRelayHello   = pi.RelayHello
	PiRelayDropped = pi.RelayDropped
	PiRelayExit    = pi.RelayExit
	PiRelayStop    = pi.RelayStop
	PiRelayMissed  = pi.RelayMissed
	PiRelayWrote   = pi.RelayWrote
	PiMaxFrame     = pi.MaxFrame
)

// WritePiGate puts the gate extension into a data folder and returns its path.
func WritePiGate(data string) (string, error) { return pi.WriteGate(filepath.Join(data, PiGateFile)) }

func (h *Hub) newPi() *pi.Binding {
	return pi.New(pi.Config{
		Inbox: h.inbox, Mailbox: h.mailbox, Fleet: h.fleet, Gate: h.gate, Transcripts: h.store.Transcripts(), Program: h.cfg.Pi,
		GateFile: filepath.Join(h.cfg.Data, PiGateFile), Depth: func() int { return h.settings.Get().Int(settings.InboxDepth) },
		OnChange: func() { h.desk.Touch(desk.TopicPi) }, OnEnd: func() { h.desk.Touch(desk.TopicPi); h.desk.Touch(desk.TopicAgents) }, Now: h.now, Log: h.log,
	})
}

// isPi says whether an agent is a session of pi: stopping it stops what it does now, and nothing else.
func isPi(agent string) bool { return strings.HasPrefix(agent, pi.Name+"/") }

// stopPi stops what the pi of an agent does. One that does not run does nothing.
func (h *Hub) stopPi(agent string) {
	_ = h.pi.Stop(strings.TrimPrefix(agent, pi.Name+"/"))
}

// endTranscripts ends the sessions of an earlier start: none outlived it. The rules for one alone end with it, but for those
// of a pi in a terminal, which comes back.
func (h *Hub) endTranscripts(ctx context.Context) error {
	const many = 200 // those that were live were seen last
	sessions, err := h.store.Transcripts().List(ctx, pi.Name, time.Time{}, many)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.EndedAt.IsZero() && s.Origin == transcript.Hub {
			if err := h.gate.EndSession(ctx, pi.Name, s.ID); err != nil {
				return err
			}
		}
	}
	if err := h.store.Transcripts().EndAll(ctx, "the hub ended", h.now()); err != nil {
		return err
	}
	return h.mailbox.Bounce(ctx)
}

// forgetTranscripts forgets sessions whose retention is over.
func (h *Hub) forgetTranscripts(ctx context.Context) error {
	k := transcript.Keeper{Store: h.store.Transcripts(), Now: h.now, Retention: func() time.Duration { return h.settings.Get().Retention() }, Log: h.log}
	return k.Run(ctx)
}
