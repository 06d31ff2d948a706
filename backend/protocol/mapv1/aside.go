package mapv1

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deskbell/backend/mapnet"
)

// maxAside is how many requests of one connection may wait for something at a time.
const maxAside = 16

// aside answers a request that must wait for something (the person, the disk, another hub) beside those that follow it.
// The connection waits for it as it ends; ctx ends with the connection.
func (c *conn) aside(ctx context.Context, q call, fn func(ctx context.Context, s *mapnet.Session) error) error {
	select {
	case c.waits <- struct{}{}:
	default:
		return &mapnet.Error{Code: mapnet.CodeExhausted, Message: "Too many requests of this connection wait already", RetryAfter: time.Second}
	}
	s, actor := c.session, c.actor()
	c.work.Go(func() {
		defer func() { <-c.waits }()
		if err := c.try(ctx, s, fn); err != nil {
			c.ws.Send(c.refuse(ctx, actor, q, err))
		}
	})
	return nil
}

// try does fn. One that panics breaks only itself.
func (c *conn) try(ctx context.Context, s *mapnet.Session, fn func(context.Context, *mapnet.Session) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fn(ctx, s)
}

// notEnabled is how each group that a participant can declare as not enabled is refused to it.
var notEnabled = map[string]mapnet.Error{
	"mail":        {Code: mapnet.CodeMailOff, Message: "Mail is not enabled for this participant"},
	"credentials": {Code: mapnet.CodeNoCredentials, Message: "Credentials are not enabled for this participant"},
	"workspace":   {Code: mapnet.CodeNoWorkspace, Message: "Workspaces are not enabled for this participant"},
}

// entitled refuses a session that has ended or lacks a capability, or whose agent the operator stopped: that one may only
// look around.
func entitled(tx *mapnet.Tx, s *mapnet.Session, needs string) error {
	if err := capable(tx, s, needs); err != nil || needs == query {
		return err
	}
	return tx.Stopped(s)
}

// capable refuses a session that has ended or lacks a capability.
func capable(tx *mapnet.Tx, s *mapnet.Session, needs string) error {
	if !s.Open(tx) {
		return &mapnet.Error{Code: mapnet.CodeAuthRequired, Message: "Authentication required: the session has ended"}
	}
	group, _, _ := strings.Cut(needs, ".")
	if off, ok := notEnabled[group]; ok && !s.May(group+".enabled") {
		return &mapnet.Error{Code: off.Code, Message: off.Message, Details: map[string]any{"required": group + ".enabled"}}
	}
	if !s.May(needs) {
		return &mapnet.Error{Code: mapnet.CodePermissionDenied, Message: "Insufficient permissions", Details: map[string]any{"required": needs}}
	}
	return nil
}
