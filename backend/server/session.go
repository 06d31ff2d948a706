package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
)

// How long a browser stays signed in, and how long a ticket for signing in can be used.
const (
	cookieTime = 30 * 24 * time.Hour
	ticketTime = time.Minute
)

func (s *Server) sessionRoutes() []protocol.Route {
	return []protocol.Route{
		{Pattern: "POST /api/session", Handle: s.signIn, MaxBody: 8 << 10},
		{Pattern: "POST /api/tickets", Access: protocol.OperatorOnly, Handle: s.newTicket},
	}
}

func (s *Server) isOperatorToken(token string) bool {
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.OperatorToken))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// signIn exchanges the operator's token, or a ticket, for the cookie and the page's key. Both are needed: browsers send a
// host's cookies to all its ports, so any server on this machine that the person visits gets the cookie; the key stays
// in the page's own storage, which other ports cannot read.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
	var body struct {
		Token  string `json:"token"`
		Ticket string `json:"ticket"`
	}
	if err := protocol.DecodeKnown(r, &body); err != nil {
		return err
	}
	if !s.tickets.use(body.Ticket, s.Now()) && !s.isOperatorToken(strings.TrimSpace(body.Token)) {
		return fleet.ErrUnknownToken
	}
	until := s.Now().Add(cookieTime)
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(), Value: s.cookieValue(until), Path: "/", Expires: until,
		HttpOnly: true, Secure: s.secure.Load(), SameSite: http.SameSiteStrictMode,
	})
	return protocol.WriteJSON(w, http.StatusOK, map[string]string{"page_key": s.pageKey(until)})
}

// newTicket makes a secret that signs a browser in, once and soon: unlike the token it may stand in an address.
func (s *Server) newTicket(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
	return protocol.WriteJSON(w, http.StatusCreated, map[string]string{"ticket": s.tickets.make(s.Now())})
}

// Cookies of one host are shared by all its ports, so the name carries the port.
func (s *Server) cookieName() string { return "deskbell_" + strconv.FormatInt(s.port.Load(), 10) }

// cookieValue is the end of the session and a MAC over it: nothing needs to be remembered, and a new operator token
// signs every browser out.
func (s *Server) cookieValue(until time.Time) string {
	return strconv.FormatInt(until.Unix(), 10) + "." + s.sessionMAC("cookie", until)
}

// pageKey is what the page of the same session shows beside the cookie.
func (s *Server) pageKey(until time.Time) string { return s.sessionMAC("page", until) }

func (s *Server) sessionMAC(use string, until time.Time) string {
	mac := hmac.New(sha256.New, []byte(s.OperatorToken))
	fmt.Fprintf(mac, "browser session, %s, until %d", use, until.Unix())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// pageKeyHeader carries the page's key. A stream of events cannot have a header of its own and has it in the query.
const pageKeyHeader = "X-Deskbell-Page"

// isPage says whether the inbox page of a browser that signed in sent this request: by the cookie, by the page's key,
// and for anything that changes something by its Origin too.
func (s *Server) isPage(r *http.Request) bool {
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return false
	}
	end, _, _ := strings.Cut(c.Value, ".")
	unix, err := strconv.ParseInt(end, 10, 64)
	if err != nil || s.Now().Unix() > unix {
		return false
	}
	until := time.Unix(unix, 0)
	key := r.Header.Get(pageKeyHeader)
	if key == "" && r.URL.Path == "/api/events" {
		key = r.URL.Query().Get("page")
	}
	if !hmac.Equal([]byte(c.Value), []byte(s.cookieValue(until))) || !hmac.Equal([]byte(key), []byte(s.pageKey(until))) {
		return false
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	return safe || r.Header.Get("Origin") != ""
}

// tickets are the unused ones. The zero value is ready.
type tickets struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (t *tickets) make(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, until := range t.until {
		if now.After(until) {
			delete(t.until, id)
		}
	}
	if t.until == nil {
		t.until = map[string]time.Time{}
	}
	id := inbox.RandomName()
	t.until[id] = now.Add(ticketTime)
	return id
}

func (t *tickets) use(id string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until, ok := t.until[id]
	delete(t.until, id)
	return ok && !now.After(until)
}
