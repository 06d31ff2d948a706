package mapnet

import (
	"encoding/json"

	"deskbell/backend/brief"
)

// shapes are what the contents of a type must have, as a text. Types that are not here have any.
var shapes = map[string]string{"text": "text", "event": "event", "reference": "uri"}

// checkContent says what is wrong with the content of a turn: its type, or a shape that is not that type's.
func checkContent(q NewTurn) error {
	kind := q.ContentType
	member, shaped := shapes[kind]
	if !shaped {
		if kind == "data" || len(kind) > 2 && len(kind) <= maxID && kind[:2] == "x-" {
			return nil
		}
		return refuse(CodeContentType, "Invalid content type: %s", brief.Cut(kind, maxID))
	}
	var m map[string]Raw
	var text *string
	if json.Unmarshal(q.Content, &m) != nil || json.Unmarshal(m[member], &text) != nil || text == nil {
		e := refuse(CodeContentType, "Invalid content: %s is an object with a text %q", kind, member)
		e.Details = map[string]any{"pointer": "/params/content/" + member, "reason": "must be a text"}
		return e
	}
	return nil
}

// checkAsking refuses a question whose time to live is none.
func checkAsking(q NewTurn) error {
	if asks, _, _ := turnAsks(q.Content, q.Metadata); !asks {
		return nil
	}
	if err := checkTTL("/content/ttlMs", q.Content); err != nil {
		return err
	}
	return checkTTL("/metadata/ttlMs", q.Metadata)
}
