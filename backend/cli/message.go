package cli

import (
	"encoding/json"
	"time"
)

// message is what this command line reads of a message; the rest of it is passed over.
type message struct {
	ID         string        `json:"id"`
	Type       string        `json:"type"`
	Status     string        `json:"status"`
	Protocol   string        `json:"protocol"`
	Title      string        `json:"title"`
	Body       string        `json:"body"`
	Priority   string        `json:"priority"`
	Tags       []string      `json:"tags"`
	Key        string        `json:"idempotency_key"`
	CreatedAt  string        `json:"created_at"`
	ReceivedAt string        `json:"received_at"`
	ExpiresAt  string        `json:"expires_at"`
	Sensitive  bool          `json:"sensitive"`
	Agent      envelopeAgent `json:"agent"`
	Context    []struct {
		part
		File *struct {
			URI  string `json:"uri"`
			Name string `json:"name"`
		} `json:"file"`
		Metadata map[string]any `json:"metadata"`
	} `json:"context"`
	Call     *call    `json:"call"`
	Request  *request `json:"request"`
	Action   *action  `json:"action"`
	Response struct {
		ResolutionID string `json:"resolution_id"`
		Detail       struct {
			Value      json.RawMessage `json:"value"`
			Edited     bool            `json:"edited"`
			Comment    string          `json:"comment"`
			Actor      string          `json:"actor"`
			ResolvedAt string          `json:"resolved_at"`
			Checklist  []check         `json:"checklist"`
			Arguments  json.RawMessage `json:"arguments"` // of a call: those the person changed
		} `json:"response"`
	} `json:"response"`
	Delivery *struct {
		State string `json:"state"`
	} `json:"delivery"`
}

// call is what an agent asks leave for.
type call struct {
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	Extra      json.RawMessage `json:"extra"`
	Provider   string          `json:"provider"`
	Version    string          `json:"version"`
	Platform   string          `json:"platform"`
	Addressee  string          `json:"addressee"`
	Folder     string          `json:"folder"`
	Session    string          `json:"session"`
	Permission string          `json:"permission"`
	Editable   []string        `json:"editable"`
}

type messagePage struct {
	Messages []message `json:"messages"`
	Next     string    `json:"next_cursor"`
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}
