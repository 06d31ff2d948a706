package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/protocol"
)

// guard refuses what a web page or a rebound name could send: it looks at where a request claims to come from and to
// go to, before any credential.
func (s *Server) guard(r *http.Request) error {
	if !s.ownHost(r.Host) {
		return protocol.Errorf(http.StatusForbidden, "forbidden_host", "this hub does not answer to that host name")
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 && (len(origins) > 1 || origins[0] != s.scheme()+"://"+r.Host) {
		return protocol.Errorf(http.StatusForbidden, "forbidden_origin", "requests from other origins are refused")
	}
	// Another port of this machine counts as the same site, so same-site is as foreign as cross-site.
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "none", "same-origin":
	default:
		return protocol.Errorf(http.StatusForbidden, "forbidden_origin", "requests from other sites are refused")
	}
	if r.ContentLength != 0 && !isUpgrade(r) {
		media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		charset := strings.ToLower(params["charset"])
		if err != nil || media != "application/json" || (charset != "" && charset != "utf-8") {
			return protocol.Errorf(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json, in UTF-8")
		}
	}
	return nil
}

func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Upgrade") != ""
}

func (s *Server) scheme() string {
	if s.secure.Load() {
		return "https"
	}
	return "http"
}

// ownHost says whether a Host header names this hub: a loopback name with the hub's port, an allowed name with it or
// without, or an allowed name and port as they were given.
func (s *Server) ownHost(host string) bool {
	port := strconv.FormatInt(s.port.Load(), 10)
	if host = strings.ToLower(host); slices.Contains(s.AllowedHosts, host) {
		return true
	}
	name, p, err := net.SplitHostPort(host)
	if strings.HasPrefix(host, "[") && !strings.Contains(name, ":") && err == nil {
		return false // brackets are for IPv6 alone
	}
	if err != nil {
		name, p = strings.Trim(host, "[]"), ""
	}
	if p == "" {
		defaults := map[string]string{"http": "80", "https": "443"}
		p = defaults[s.scheme()]
	}
	if p != port {
		return false
	}
	switch name {
	case "127.0.0.1", "::1", "localhost":
		return true
	}
	return slices.Contains(s.AllowedHosts, name)
}

// authorize finds out who calls and whether they may.
func (s *Server) authorize(r *http.Request, a protocol.Access) (protocol.Caller, error) {
	if a == protocol.Anyone {
		return protocol.Caller{}, nil
	}
	token, ok := bearer(r)
	switch {
	case ok && s.isOperatorToken(token), !ok && s.isPage(r):
		if a == protocol.AgentOnly {
			return protocol.Caller{Operator: true}, protocol.Errorf(http.StatusForbidden, "not_authorized", "this is for agents: the operator cannot act as one")
		}
		return protocol.Caller{Operator: true}, nil
	case a == protocol.OperatorOnly && !ok:
		return protocol.Caller{}, fleet.ErrUnknownToken
	}
	agent, err := s.Fleet.Authenticate(r.Context(), token)
	if err != nil {
		return protocol.Caller{}, err
	}
	if a == protocol.OperatorOnly {
		return protocol.Caller{Agent: agent}, protocol.Errorf(http.StatusForbidden, "not_authorized", "this is for the operator alone")
	}
	return protocol.Caller{Agent: agent, Token: token}, nil
}

// bearer returns the credential of a request, from either header.
func bearer(r *http.Request) (string, bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token), true
		}
		return "", true
	}
	key := r.Header.Get("X-API-Key")
	return key, key != ""
}

// deny leaves an audit line about a refused request.
func (s *Server) deny(r *http.Request, c protocol.Caller, e *protocol.Error) {
	actor := "unknown"
	switch {
	case c.Operator:
		actor = s.Fleet.Operator().String()
	case c.Agent.ID != "":
		actor = "agent:" + c.Agent.ID
	}
	s.Fleet.Refused(r.Context(), actor, fmt.Sprintf("%.8s %.200s", r.Method, r.URL.Path), e.Code)
}

// How long a body may take to come; that of a caller who has proved nothing, and is here on this machine, less.
const (
	bodyTime          = 30 * time.Second
	anonymousBodyTime = 5 * time.Second
)

// drained is how much more than its bound is taken of a body that is cut, so that its sender hears the answer.
const drained = 16 << 20

// readBody reads a request's body into memory, within its bound and in reasonable time. Errors: 503 when too many large
// ones come in at once.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, route protocol.Route, caller protocol.Caller, limit int64) error {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	within, name := bodyTime, "agent:"+caller.Agent.ID
	switch {
	case caller.Operator:
		name = "operator"
	case caller.Agent.ID == "":
		within = anonymousBodyTime
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(within)) // not every writer has deadlines
	from := r.Body
	if !route.CutBody {
		from = http.MaxBytesReader(w, r.Body, limit)
	}
	counted := s.bodies.count(name, io.LimitReader(from, limit+1))
	defer counted.close()
	body, err := io.ReadAll(counted)
	if err == nil && route.CutBody {
		_, err = io.Copy(io.Discard, io.LimitReader(r.Body, drained))
	}
	if err == nil {
		_ = c.SetReadDeadline(time.Time{}) // the next request is not read if this fails
	}
	var tooLarge *http.MaxBytesError
	var full *protocol.Error
	switch {
	case errors.As(err, &full):
		return full
	case errors.As(err, &tooLarge):
		return protocol.Errorf(http.StatusUnprocessableEntity, "invalid_field", fmt.Sprintf("the body is larger than %d bytes", limit))
	case err != nil:
		return protocol.Errorf(http.StatusBadRequest, "validation_error", "the body could not be read whole")
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, err = r.GetBody()
	return err
}
