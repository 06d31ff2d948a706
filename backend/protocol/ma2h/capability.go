package ma2h

import (
	"net/http"

	"deskbell/backend/protocol"
	"deskbell/backend/settings"
	"deskbell/backend/signing"
)

// capability answers GET /.well-known/ma2h (MA2H §8.0): what is offered and the limits enforced, the same to everyone.
// A leg that is not offered is not mentioned.
func (b *Binding) capability(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
	s := b.Settings.Get()
	algs := []string{signing.AlgHMAC, signing.AlgEd25519}
	return protocol.WriteJSON(w, http.StatusOK, map[string]any{
		"ma2h_version":          Version,
		"max_body_bytes":        MaxBodyBytes,
		"max_part_bytes":        MaxPartBytes,
		"max_context_parts":     MaxContextParts,
		"auth_schemes":          []string{"bearer", "apikey"},
		"callback_auth_schemes": []string{"hmac", "bearer", "apikey"},
		"signature_algs":        algs,
		"rate_limit": map[string]any{
			"requests_per_minute": s.Int(settings.RequestsPerMinute),
			"inbox_depth":         s.Int(settings.InboxDepth),
		},
		"retention_days":        s.Int(settings.RetentionDays),
		"replay_window_seconds": int(signing.Window.Seconds()),
		"ack":                   map[string]any{"enabled": true},
		// Beyond MA2H's own members: who the person is, the key of Ed25519 signatures, how pushes are tried.
		"operator":          s.Operator().String(),
		"signing_keys":      []map[string]any{{"alg": signing.AlgEd25519, "public_key": b.PublicKey}},
		"callback_delivery": map[string]any{"max_attempts": b.MaxAttempts},
	})
}
