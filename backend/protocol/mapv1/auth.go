package mapv1

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/mapnet"
)

// maxFailures is how many wrong credentials end a connection.
const maxFailures = 3

// credential is what somebody proves themselves with: clients say token, their types say credential.
type credential struct {
	Method     string `json:"method"`
	Token      string `json:"token"`
	Credential string `json:"credential"`
}

func (c credential) secret() string {
	if c.Token != "" {
		return c.Token
	}
	return c.Credential
}

// local is everybody on this machine who proves nothing.
var local = mapnet.Principal{ID: "local"}

var (
	errNothing = errors.New("auth_required")
	errMethod  = errors.New("method_not_supported")
)

// prove finds out who a credential proves. Errors: errNothing, errMethod, fleet.ErrUnknownToken.
func (b *Binding) prove(ctx context.Context, q credential) (mapnet.Principal, error) {
	if q.Method != "" && !slices.Contains([]string{"bearer", "api-key", "none"}, q.Method) {
		return mapnet.Principal{}, errMethod
	}
	secret := q.secret()
	switch {
	case q.Method == "none", secret == "":
		if b.RequireCredential() {
			return mapnet.Principal{}, errNothing
		}
		return local, nil
	case b.IsOperator(secret):
		return mapnet.Principal{ID: "operator", Operator: true, Proved: true}, nil
	}
	a, err := b.Fleet.Authenticate(ctx, secret)
	return mapnet.Principal{ID: "agent:" + a.ID, Proved: true}, err
}

// connect answers map/connect.
func (c *conn) connect(ctx context.Context, q call) error {
	if c.session != nil || c.over {
		return &mapnet.Error{Code: mapnet.CodeInvalidRequest, Message: "This connection is connected already"}
	}
	p, err := decode[struct {
		Version int        `json:"protocolVersion"`
		Auth    credential `json:"auth"`
		mapnet.Connect
	}](q.params)
	if err != nil {
		return err
	}
	if p.Version != 1 {
		return &mapnet.Error{Code: mapnet.CodeInvalidParams, Message: "Unsupported protocol version", Details: map[string]any{"supported": []int{1}}}
	}
	if err := p.Check(); err != nil {
		return err
	}
	if p.Auth.secret() == "" && c.offered != "" {
		p.Auth = credential{Token: c.offered}
	}
	who, err := c.b.prove(ctx, p.Auth)
	if err != nil {
		c.waiting = &p.Connect
	}
	switch {
	case errors.Is(err, errNothing):
		c.clock.Reset(time.Minute)
		c.ws.Send(result(q.id, map[string]any{
			"protocolVersion": 1, "sessionId": "pending", "participantId": "pending", "capabilities": map[string]any{}, "systemInfo": c.b.info(),
			"authRequired": map[string]any{"methods": []string{"bearer", "api-key"}, "required": true, "realm": "deskbell"},
		}))
		return nil
	case errors.Is(err, errMethod):
		return &mapnet.Error{Code: mapnet.CodeAuthMethod, Message: "Authentication method not supported: " + p.Auth.Method}
	case errors.Is(err, fleet.ErrUnknownToken):
		c.wrong()
		return &mapnet.Error{Code: mapnet.CodeBadCredential, Message: "Invalid credentials"}
	case err != nil:
		return err
	}
	return c.enter(ctx, who, p.Connect, func(out map[string]any) []byte { return result(q.id, out) })
}

// wrong counts a wrong credential.
func (c *conn) wrong() { c.failures++ }

// barred ends a connection of too many wrong credentials, after the answer to the last, and says whether it did.
func (c *conn) barred() bool {
	if c.failures < maxFailures {
		return false
	}
	c.ws.Close(4401, "too many wrong credentials")
	return true
}

func (b *Binding) info() map[string]string {
	return map[string]string{"name": "deskbell", "version": b.Version}
}

// enter makes the connection a participant, for as long as the credential holds that it proved itself with.
func (c *conn) enter(ctx context.Context, who mapnet.Principal, p mapnet.Connect, answer func(map[string]any) []byte) error {
	held, free := ctx, func() {}
	id, credentialed := strings.CutPrefix(who.ID, "agent:")
	if credentialed {
		var err error
		if held, free, err = c.b.Fleet.WhileEnrolled(ctx, id); errors.Is(err, fleet.ErrUnknownToken) {
			return &mapnet.Error{Code: mapnet.CodeBadCredential, Message: "Invalid credentials"}
		} else if err != nil {
			return err
		}
	}
	err := c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		if !who.Proved && c.b.RequireCredential() { // it was set meanwhile
			return &mapnet.Error{Code: mapnet.CodeAuthRequired, Message: "Authentication required"}
		}
		s, out, err := tx.Connect(c, who, p)
		if err != nil {
			return err
		}
		out["systemInfo"] = c.b.info()
		c.session, c.who, c.waiting, c.failures = s, who, nil, 0
		c.clock.Stop()
		tx.Send(c, answer(out))
		return nil
	})
	if err != nil || !credentialed {
		free()
		return err
	}
	c.work.Go(func() {
		defer free()
		<-held.Done()
		if errors.Is(context.Cause(held), fleet.ErrUnknownToken) {
			c.b.Revoked(id)
		}
	})
	return nil
}

// authenticate answers map/authenticate: that a credential is wrong is a result.
func (c *conn) authenticate(ctx context.Context, q call) error {
	p, err := decode[credential](q.params)
	if err != nil {
		return err
	}
	who, err := c.b.prove(ctx, p)
	if failed := c.unproved(ctx, q, err); failed != nil || err != nil {
		return failed
	}
	if c.session != nil {
		if who.ID != c.who.ID {
			return &mapnet.Error{Code: mapnet.CodePermissionDenied, Message: "Insufficient permissions", Details: map[string]any{"reason": "this connection is somebody else's already"}}
		}
		c.ws.Send(result(q.id, map[string]any{"success": true, "sessionId": c.session.ID(), "participantId": c.session.Participant(), "principal": principal(who)}))
		return nil
	}
	return c.enter(ctx, who, *c.waiting, func(out map[string]any) []byte {
		out["success"] = true
		return result(q.id, out)
	})
}

// unproved answers a credential that proves nothing; other errors are the hub's.
func (c *conn) unproved(ctx context.Context, q call, err error) error {
	code := "invalid_credentials"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNothing), errors.Is(err, errMethod):
		code = err.Error()
	case !errors.Is(err, fleet.ErrUnknownToken):
		return err
	}
	if c.session == nil || code == "invalid_credentials" {
		c.wrong()
	}
	c.b.Fleet.Refused(ctx, c.actor(), "MAP "+q.method, "unauthenticated")
	c.ws.Send(result(q.id, map[string]any{"success": false, "error": map[string]any{"code": code, "message": "The credential was not accepted"}}))
	return nil
}

func principal(who mapnet.Principal) map[string]any {
	return map[string]any{"id": who.ID, "issuer": "deskbell"}
}

// refresh answers map/auth/refresh. Credentials here do not end by themselves, so the same one goes on.
func (c *conn) refresh(ctx context.Context, q call) error {
	p, err := decode[struct {
		credential
		Refresh string `json:"refreshToken"`
	}](q.params)
	if err != nil {
		return err
	}
	secret := p.secret()
	if secret == "" {
		secret = p.Refresh
	}
	who, err := c.b.prove(ctx, credential{Method: p.Method, Token: secret})
	if err == nil && who.ID != c.who.ID {
		err = fleet.ErrUnknownToken
	}
	if err != nil && p.Refresh != "" && p.secret() == "" && errors.Is(err, fleet.ErrUnknownToken) {
		c.wrong()
		return &mapnet.Error{Code: mapnet.CodeBadCredential, Message: "Invalid credentials"}
	}
	if failed := c.unproved(ctx, q, err); failed != nil || err != nil {
		return failed
	}
	expires := c.b.Now().Add(24 * time.Hour).UnixMilli()
	c.ws.Send(result(q.id, map[string]any{"success": true, "principal": principal(who), "accessToken": secret, "expiresAt": expires}))
	return nil
}

// disconnect answers map/disconnect.
func (c *conn) disconnect(ctx context.Context, q call) error {
	p, err := decode[struct {
		Reason string `json:"reason"`
	}](q.params)
	if err != nil {
		return err
	}
	s := c.session
	c.session, c.waiting, c.over = nil, nil, true
	c.goodbye()
	if s == nil {
		c.ws.Send(result(q.id, map[string]any{"acknowledged": true}))
		return nil
	}
	return c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		out := map[string]any{"acknowledged": true}
		if s.Open(tx) {
			out = tx.Disconnect(s, p.Reason)
		}
		tx.Send(c, result(q.id, out))
		return nil
	})
}

// goodbye has the hub close a connection whose session is over, if the client does not.
func (c *conn) goodbye() {
	c.clock.Stop()
	c.clock = time.AfterFunc(helloTime, func() { c.ws.Close(1000, "the session is over") })
}

// closeSession answers map/session/close.
func (c *conn) closeSession(ctx context.Context, q call) error {
	p, err := decode[struct {
		ID string `json:"sessionId"`
	}](q.params)
	if err != nil {
		return err
	}
	s := c.session
	return c.b.Net.Do(ctx, func(tx *mapnet.Tx) error {
		if err := capable(tx, s, ""); err != nil {
			return err
		}
		out, own, err := tx.CloseSession(s, p.ID)
		if err != nil {
			return err
		}
		if own {
			c.session, c.over = nil, true
			c.goodbye()
		}
		tx.Send(c, result(q.id, out))
		return nil
	})
}
