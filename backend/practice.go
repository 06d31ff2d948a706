package backend

import (
	"context"
	"encoding/json"
	"errors"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
)

// practiceAgent asks the practice question. Nobody has a credential for it.
const practiceAgent = "deskbell-practice"

// practice posts the question with which a newcomer tries the inbox: a real message of a built-in agent.
func (h *Hub) practice(ctx context.Context) (string, error) {
	if _, err := h.fleet.Add(ctx, practiceAgent, ""); err != nil && !errors.Is(err, fleet.ErrAgentExists) {
		return "", err
	}
	raw, err := json.Marshal(map[string]any{
		"ma2h_version":    "0.6",
		"type":            "ask",
		"created_at":      inbox.FormatTime(h.now()),
		"idempotency_key": inbox.RandomName(),
		"agent":           map[string]any{"id": practiceAgent, "run_id": "practice", "runtime": "desktop"},
		"title":           "Practice: ship the release?",
		"body": "This is what an agent's question looks like. **Nothing happens** whatever you choose.\n\n" +
			"Press a number to answer, `d` to decline, `?` for all keys.",
		"request": map[string]any{
			"mode": "select",
			"options": []map[string]any{
				{"value": "ship", "label": "Ship it", "description": "the agent would go on at once"},
				{"value": "hold", "label": "Hold", "description": "the agent would wait for you"},
			},
			"allowed_resolvers": []string{h.operator().String()},
		},
	})
	if err != nil {
		return "", err
	}
	it, err := h.ma2h.Accept(ctx, practiceAgent, raw)
	return it.ID, err
}
