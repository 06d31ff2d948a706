package ma2h

import (
	"net/http"

	"deskbell/backend/mailbox"
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
			"requests_per_minute":             s.Int(settings.RequestsPerMinute),
			"inbox_depth":                     s.Int(settings.InboxDepth),
			"inter_agent_requests_per_minute": s.Int(settings.RequestsPerMinute),
		},
		"retention_days":        s.Int(settings.RetentionDays),
		"replay_window_seconds": int(signing.Window.Seconds()),
		"inbound": map[string]any{
			"enabled":                    true,
			"poll_url":                   b.URL() + "/v1/inbox",
			"ack_url":                    b.URL() + "/v1/inbox/ack",
			"stream_url":                 b.URL() + "/v1/inbox/stream",
			"stream_max_hold_seconds":    s.Int(settings.StreamMaxHold),
			"max_batch":                  s.Int(settings.MaxBatch),
			"visibility_timeout_seconds": s.Int(settings.VisibilityTimeout),
			"retention_days":             s.Int(settings.RetentionDays),
			"signature_algs":             algs,
			"session_param":              true,
			"webhook_supported":          true,
		},
		"ack":      map[string]any{"enabled": true},
		"presence": map[string]any{"enabled": true, "freshness_seconds": s.Int(settings.Freshness)},
		"sessions": map[string]any{
			"enabled":                    true,
			"min_ttl_seconds":            s.Int(settings.MinTTL),
			"max_ttl_seconds":            s.Int(settings.MaxTTL),
			"max_live_per_agent":         s.Int(settings.MaxLive),
			"terminal_retention_seconds": s.Int(settings.TerminalRetention),
			"agent_list_visibility":      s.Bool(settings.ListVisibility),
			"operator_hard_stop":         true,
		},
		"inter_agent": map[string]any{
			"enabled":           s.Bool(settings.InterAgent),
			"entry_kinds":       []string{string(mailbox.Message), string(mailbox.Response), string(mailbox.Receipt)},
			"sender_allowlists": true,
		},
		// Beyond MA2H's own members: who the person is, the key of Ed25519 signatures, how pushes are tried, how long a key is known after
		// its message ended (MA2H §8.1, §8.3), what no request may exceed.
		"operator":          s.Operator().String(),
		"signing_keys":      []map[string]any{{"alg": signing.AlgEd25519, "public_key": b.PublicKey}},
		"callback_delivery": map[string]any{"max_attempts": b.MaxAttempts, "max_duration_seconds": int(b.MaxDuration.Seconds())},
		"request_limits":    map[string]any{"max_bytes": MaxEnvelopeBytes, "max_depth": protocol.MaxDepth},
		"idempotency":       map[string]any{"min_ttl_seconds": int(s.Retention().Seconds())},
	})
}
