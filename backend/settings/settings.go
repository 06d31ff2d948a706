// Package settings is what the operator can set while the hub runs. A change is checked as a whole, stored, and in
// effect when Patch returns.
package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"deskbell/backend/inbox"
)

// The keys, as they are written on the wire.
const (
	OperatorID        = "operator.id"
	RetentionDays     = "retention_days"
	RequestsPerMinute = "rate_limit.requests_per_minute"
	InboxDepth        = "rate_limit.inbox_depth"
	HoldSeconds       = "resolve.hold_seconds"
	AllowLoopback     = "callbacks.allow_loopback"
	InterAgent        = "inter_agent.enabled"
	ListVisibility    = "sessions.agent_list_visibility"
	TerminalRetention = "sessions.terminal_retention_seconds"
	MinTTL            = "sessions.min_ttl_seconds"
	MaxTTL            = "sessions.max_ttl_seconds"
	MaxLive           = "sessions.max_live_per_agent"
	VisibilityTimeout = "inbound.visibility_timeout_seconds"
	MaxBatch          = "inbound.max_batch"
	StreamMaxHold     = "inbound.stream_max_hold_seconds"
	Freshness         = "presence.freshness_seconds"
	ACPRoles          = "acp.roles"
	ACPGate           = "acp.gate"
	MAPCredential     = "map.require_credential"
	MAPSecrets        = "map.credentials"
	MAPWorkspaces     = "map.workspaces"
	MAPPeers          = "map.peers"
	MAPSystem         = "map.system_id"
)

// rule is what one key may hold. Exactly one of the kinds is set.
type rule struct {
	def      any                            // string, bool, int, or what parse returns
	min, max int                            // for int
	parse    func(raw []byte) (any, string) // for anything else: the value, or in words why it does not fit
}

const week = 7 * 24 * 3600

func rules(user string) map[string]rule {
	return map[string]rule{
		OperatorID:        {def: user},
		RetentionDays:     {def: 30, min: 1, max: 3650},
		RequestsPerMinute: {def: 600, min: 1, max: 10_000_000},
		InboxDepth:        {def: 10_000, min: 1, max: 10_000_000},
		HoldSeconds:       {def: 0, min: 0, max: 600},
		AllowLoopback:     {def: true},
		InterAgent:        {def: false},
		ListVisibility:    {def: false},
		TerminalRetention: {def: 86_400, min: 1, max: 52 * week},
		MinTTL:            {def: 120, min: 1, max: week},
		MaxTTL:            {def: 3600, min: 1, max: week},
		MaxLive:           {def: 16, min: 1, max: 100_000},
		VisibilityTimeout: {def: 60, min: 1, max: week},
		MaxBatch:          {def: 32, min: 1, max: 1000},
		StreamMaxHold:     {def: 60, min: 1, max: 3600},
		Freshness:         {def: 90, min: 1, max: week},
		ACPRoles:          {def: Roles{}, parse: parseRoles},
		ACPGate:           {def: Gate{GateNone}, parse: parseGate},
		MAPCredential:     {def: false},
		MAPSecrets:        {def: []string{}, parse: listOf(parseMAPSecret)},
		MAPWorkspaces:     {def: []string{}, parse: listOf(parseMAPWorkspace)},
		MAPPeers:          {def: []string{}, parse: listOf(parseMAPPeer)},
		MAPSystem:         {def: "", parse: parseMAPSystem},
	}
}

// Values is one consistent set of settings, by key.
type Values map[string]any

// Int returns a number.
func (v Values) Int(key string) int { return v[key].(int) }

// Bool returns a switch.
func (v Values) Bool(key string) bool { return v[key].(bool) }

// Seconds returns a number of seconds.
func (v Values) Seconds(key string) time.Duration { return time.Duration(v.Int(key)) * time.Second }

// Operator is the person, as attested: human:<operator.id>.
func (v Values) Operator() inbox.Actor {
	return inbox.Actor{Kind: inbox.Human, ID: v[OperatorID].(string)}
}

// Retention is how long an ended item is kept.
func (v Values) Retention() time.Duration {
	return time.Duration(v.Int(RetentionDays)) * 24 * time.Hour
}

// Store keeps the settings as JSON texts.
type Store interface {
	Settings(ctx context.Context) (map[string]string, error)
}

// Settings is the current settings.
type Settings struct {
	rules   map[string]rule
	mu      sync.Mutex // one Patch at a time
	current atomic.Pointer[Values]
	save    func(ctx context.Context, values map[string]string) error
}

// Load reads the stored settings; user is the operator's name where none was set. save must store all or nothing.
func Load(ctx context.Context, store Store, user string, save func(context.Context, map[string]string) error) (*Settings, error) {
	if !operatorName.MatchString(user) {
		user = "operator"
	}
	s := &Settings{rules: rules(user), save: save}
	stored, err := store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	v := Values{}
	for key, r := range s.rules {
		v[key] = r.def
		if text, ok := stored[key]; ok {
			val, problem := r.read([]byte(text))
			if problem != "" {
				return nil, fmt.Errorf("stored setting %s: %s", key, problem)
			}
			v[key] = val
		}
	}
	s.current.Store(&v)
	return s, nil
}

// Get returns the settings in effect. The map is shared: do not change it.
func (s *Settings) Get() Values { return *s.current.Load() }

// Patch changes the settings named in patch, all or none. Errors: *inbox.InvalidError naming the keys.
func (s *Settings) Patch(ctx context.Context, patch map[string]json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.Get())
	stored := map[string]string{}
	var bad []inbox.FieldError
	fail := func(key, format string, args ...any) {
		bad = append(bad, inbox.FieldError{Pointer: "/" + key, Message: fmt.Sprintf(format, args...)})
	}
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		r, known := s.rules[key]
		if !known {
			fail(key, "there is no such setting")
			continue
		}
		val, problem := r.read(patch[key])
		if problem != "" {
			fail(key, "%s", problem)
			continue
		}
		next[key] = val
		text, err := json.Marshal(val)
		if err != nil {
			return fmt.Errorf("setting %s: %w", key, err)
		}
		stored[key] = string(text)
	}
	if len(bad) == 0 {
		next.check(fail)
	}
	if len(bad) > 0 {
		return &inbox.InvalidError{Fields: bad}
	}
	if err := s.save(ctx, stored); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	s.current.Store(&next)
	return nil
}

// check holds the rules that bind several keys.
func (v Values) check(fail func(key, format string, args ...any)) {
	// MA2H §8.0: a stream held longer than the presence window would report presence that nobody showed.
	if v.Int(StreamMaxHold) > v.Int(Freshness) {
		fail(StreamMaxHold, "a stream may not be held longer (%d s) than the presence window (%s, %d s)", v.Int(StreamMaxHold), Freshness, v.Int(Freshness))
	}
	if v.Int(MinTTL) > v.Int(MaxTTL) {
		fail(MinTTL, "the shortest lease (%d s) may not be longer than the longest (%s, %d s)", v.Int(MinTTL), MaxTTL, v.Int(MaxTTL))
	}
	v.checkMAP(fail)
}

var operatorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// read parses a JSON value for the rule; problem says in words why it does not fit.
func (r rule) read(raw []byte) (val any, problem string) {
	if r.parse != nil {
		return r.parse(raw)
	}
	switch r.def.(type) {
	case bool:
		switch string(raw) {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return nil, "must be true or false"
	case int:
		n, err := strconv.Atoi(string(raw))
		if err != nil {
			return nil, "must be a whole number"
		}
		if n < r.min || n > r.max {
			return nil, fmt.Sprintf("must be between %d and %d", r.min, r.max)
		}
		return n, ""
	default:
		var s string
		if json.Unmarshal(raw, &s) != nil || !operatorName.MatchString(s) {
			return nil, "must be a name of 1 to 64 letters, digits, dots, dashes, underscores or @, beginning with a letter or digit"
		}
		return s, ""
	}
}
