// Package server is the hub's one door: it listens, decides who is asking before anything else happens, and writes
// every answer and every error in one way.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/protocol"
)

// defaultMaxBody bounds a request's body where its route says nothing.
const defaultMaxBody = 1 << 20

// Config is what the server needs.
type Config struct {
	Routes []protocol.Route
	Fleet  *fleet.Fleet
	// Page is the built inbox page.
	Page fs.FS
	// OperatorToken proves the operator.
	OperatorToken string
	// AllowedHosts are names besides loopback's own that a request may be addressed to.
	AllowedHosts []string
	Now          func() time.Time
	Log          *slog.Logger
}

// Server answers HTTP. Make one with New.
type Server struct {
	Config
	mux      *http.ServeMux
	port     atomic.Int64
	secure   atomic.Bool
	tickets  tickets
	bodies   bodies
	handlers sync.WaitGroup
}

// New returns a server for c.
func New(c Config) *Server {
	s := &Server{Config: c, mux: http.NewServeMux()}
	s.AllowedHosts = nil
	for _, host := range c.AllowedHosts {
		s.AllowedHosts = append(s.AllowedHosts, strings.ToLower(host))
	}
	for _, route := range append(slices.Clone(c.Routes), s.sessionRoutes()...) {
		s.mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) { s.run(w, r, route) })
	}
	return s
}

// Listen opens addr. Port 0 picks a free one.
func (s *Server) Listen(addr, certFile, keyFile string) (net.Listener, error) {
	var config *tls.Config
	if certFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		config = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := ln.Addr().(*net.TCPAddr)
	if !ok || (config == nil && !tcp.IP.IsLoopback()) {
		return nil, errors.Join(errors.New("plain HTTP is served on loopback only: another address needs --tls-cert and --tls-key"), ln.Close())
	}
	s.port.Store(int64(tcp.Port))
	if config != nil {
		s.secure.Store(true)
		ln = tls.NewListener(ln, config)
	}
	return ln, nil
}

// Serve answers requests on ln until ctx ends, then lets those under way finish for a moment.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	// Requests that wait must learn that the hub is stopping: their contexts come from this one.
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	h := &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	defer s.handlersEnd() // a connection that became a socket is none that Shutdown knows of
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cancel(protocol.ErrStopping)
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer done()
	if err := h.Shutdown(grace); err != nil {
		_ = h.Close() // what has not ended by now is cut off
	}
	<-ended
	return nil
}

// handlersEnd waits for the handlers that still run, for a moment.
func (s *Server) handlersEnd() {
	all := make(chan struct{})
	go func() {
		defer close(all)
		s.handlers.Wait()
	}()
	select {
	case <-all:
	case <-time.After(3 * time.Second):
		s.Log.Warn("a request goes on beyond the end of the hub")
	}
}

// Local answers as the operator without a credential: for the window, which is in the same process.
func (s *Server) Local() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.dispatch(w, r, func(protocol.Access) (protocol.Caller, error) { return protocol.Caller{Operator: true}, nil })
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	if err := s.guard(r); err != nil {
		if e := protocol.FromError(err); e != nil {
			s.deny(r, protocol.Caller{}, e)
		}
		s.fail(w, r, err)
		return
	}
	s.dispatch(w, r, func(a protocol.Access) (protocol.Caller, error) { return s.authorize(r, a) })
}

// authorizer decides who calls a route of some access.
type authorizer func(protocol.Access) (protocol.Caller, error)

// authorizerKey is where dispatch leaves the authorizer for run.
type authorizerKey struct{}

// dispatch sends a request to its route, or to the page.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, who authorizer) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.Log.Error("panic in a handler", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			s.fail(w, r, errors.New("panic"))
		}
	}()
	h, pattern := s.mux.Handler(r)
	// The mux would answer an unclean path with a redirect, which turns a POST into a GET.
	if pattern == "" || path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath() {
		s.unrouted(w, r, h)
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), authorizerKey{}, who)))
}

// run asks who calls, reads the body within its bound, and answers. Here everything that a route refuses comes by, so
// here is noted what was refused for who asked.
func (s *Server) run(w http.ResponseWriter, r *http.Request, route protocol.Route) {
	who, ok := r.Context().Value(authorizerKey{}).(authorizer)
	if !ok {
		s.fail(w, r, errors.New("a route was reached without an authorizer"))
		return
	}
	c, err := who(route.Access)
	limit := route.MaxBody
	if limit == 0 {
		limit = defaultMaxBody
	}
	if err == nil || route.Refused != nil {
		sender := c
		if err != nil {
			sender = protocol.Caller{} // nobody has proved to be anyone
		}
		if unread := s.readBody(w, r, route, sender, limit); unread != nil {
			r.Body = http.NoBody // what came of it is no request
			if err == nil {
				err = unread
			}
		}
	}
	if err == nil || route.Refused != nil {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
	}
	if err == nil {
		err = route.Handle(w, r, c)
	}
	if err == nil {
		return
	}
	e := protocol.FromError(err)
	if e != nil && protocol.OfAuthority(err, c) {
		s.deny(r, c, e)
	}
	if e != nil && route.Refused != nil {
		if r.GetBody != nil { // the handler has read it
			r.Body, _ = r.GetBody() // it is in memory
		}
		err = route.Refused(w, r, e)
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// fail writes an error, once and alike for every path.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := protocol.FromError(err)
	cut := r.Context().Err() != nil
	if !cut && (e == nil || e.Status >= http.StatusInternalServerError) {
		s.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	switch {
	case e == nil && cut: // the caller is gone, or the hub is stopping and the caller must not take silence for success
		e = protocol.Stopping()
	case e == nil:
		e = protocol.Errorf(http.StatusInternalServerError, "internal_error", "something went wrong in the hub; its log says what")
	}
	if r.ContentLength != 0 {
		// What was not read of the body is waited for briefly, not for as long as its sender likes.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second)) // not every writer has deadlines
	}
	body := map[string]any{"code": e.Code, "message": e.Message}
	if len(e.Details) > 0 {
		body["details"] = e.Details
	}
	out := map[string]any{}
	for k, v := range e.Extra {
		out[k] = v
	}
	out["error"] = body
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((e.RetryAfter+time.Second-1)/time.Second))))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="deskbell"`)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := protocol.WriteJSON(w, e.Status, out); err != nil {
		s.Log.Error("error answer", "err", err)
	}
}
