package server

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// people is a store of one agent, "team/bot" with the token "dbt_bot".
type people struct {
	fleet.Store
	mu    sync.Mutex
	audit []fleet.Audit
}

func (p *people) Authenticate(_ context.Context, hash []byte, _ time.Time) (fleet.Agent, error) {
	if string(hash) == string(fleet.HashToken("dbt_bot")) {
		return fleet.Agent{ID: "team/bot"}, nil
	}
	return fleet.Agent{}, fleet.ErrUnknownToken
}

func (p *people) Audit(_ context.Context, a fleet.Audit) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.audit = append(p.audit, a)
	return nil
}

type door struct {
	page string // the header with the page's key, after signIn
	*Server
	t      *testing.T
	addr   string
	people *people
	stop   func()
	now    time.Time
}

func open(t *testing.T, routes []protocol.Route, change ...func(*Config)) *door {
	t.Helper()
	d := &door{t: t, people: &people{}, now: time.Now()}
	who := func(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
		text := "anyone"
		switch {
		case c.Operator:
			text = "operator"
		case c.Agent.ID != "":
			text = c.Agent.ID
		}
		return protocol.WriteJSON(w, http.StatusOK, map[string]string{"caller": text, "id": r.PathValue("id")})
	}
	routes = append(routes,
		protocol.Route{Pattern: "GET /v1/anyone", Handle: who},
		protocol.Route{Pattern: "POST /v1/anyone", Handle: who, MaxBody: 1000},
		protocol.Route{Pattern: "POST /v1/agent", Access: protocol.AgentOnly, Handle: who},
		protocol.Route{Pattern: "GET /v1/things/{id}", Access: protocol.AgentOrOperator, Handle: who},
		protocol.Route{Pattern: "PUT /v1/things/{id}/policy", Access: protocol.OperatorOnly, Handle: who},
		protocol.Route{Pattern: "GET /api/state", Access: protocol.OperatorOnly, Handle: who},
		protocol.Route{Pattern: "POST /api/do", Access: protocol.OperatorOnly, Handle: who},
	)
	page := fstest.MapFS{
		"index.html":    {Data: []byte("<!doctype html>the page")},
		"assets/app.js": {Data: []byte("1")},
	}
	c := Config{Routes: routes, Fleet: &fleet.Fleet{Store: d.people, Now: time.Now, Operator: func() inbox.Actor { return inbox.Actor{Kind: inbox.Human, ID: "me"} }}, Page: page, OperatorToken: "dbo_operator",
		Now: func() time.Time { return d.now }, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	d.Server = New(c)
	ln, err := d.Listen("127.0.0.1:0", "", "")
	if err != nil {
		t.Fatal(err)
	}
	d.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, ln) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.stop)
	return d
}

// send writes a request as it stands and reads the answer. $HOST and $PORT stand for the door's own.
func (d *door) send(request string) (*http.Response, string) {
	d.t.Helper()
	resp, body, err := d.try(request)
	if err != nil {
		d.t.Fatalf("%v after %q", err, request)
	}
	return resp, body
}

func (d *door) try(request string) (*http.Response, string, error) {
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		return nil, "", err
	}
	defer conn.Close()
	_, port, _ := net.SplitHostPort(d.addr)
	request = strings.NewReplacer("$HOST", d.addr, "$PORT", port, "\n", "\r\n").Replace(request)
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, "", err
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func code(body string) string {
	var e struct {
		Error struct{ Code, Message string } `json:"error"`
	}
	if json.Unmarshal([]byte(body), &e) != nil {
		return "not the error form: " + body
	}
	return e.Error.Code
}

const asJSON = "Content-Type: application/json\n"

// What a request claims about where it comes from and goes to is judged before anything else.
func TestLadder(t *testing.T) {
	d := open(t, nil, func(c *Config) { c.AllowedHosts = []string{"Inbox.Example", "proxy.example:8443"} })
	const post = "POST /v1/anyone HTTP/1.1\n"
	const bot, op = "Authorization: Bearer dbt_bot\n", "Authorization: Bearer dbo_operator\n"
	const body = "Content-Length: 2\n\n{}"
	for _, c := range []struct {
		name, request string
		status        int
		code          string
	}{
		{"own address", "GET /v1/anyone HTTP/1.1\nHost: $HOST\n\n", 200, ""},
		{"localhost", "GET /v1/anyone HTTP/1.1\nHost: localhost:$PORT\n\n", 200, ""},
		{"upper case", "GET /v1/anyone HTTP/1.1\nHost: LOCALHOST:$PORT\n\n", 200, ""},
		{"ipv6 loopback", "GET /v1/anyone HTTP/1.1\nHost: [::1]:$PORT\n\n", 200, ""},
		{"rebound name", "GET /v1/anyone HTTP/1.1\nHost: evil.example:$PORT\n\n", 403, "forbidden_host"},
		{"name with loopback in it", "GET /v1/anyone HTTP/1.1\nHost: 127.0.0.1.evil.example:$PORT\n\n", 403, "forbidden_host"},
		{"localhost in a domain", "GET /v1/anyone HTTP/1.1\nHost: localhost.evil.example:$PORT\n\n", 403, "forbidden_host"},
		{"final dot", "GET /v1/anyone HTTP/1.1\nHost: localhost.:$PORT\n\n", 403, "forbidden_host"},
		{"other loopback address", "GET /v1/anyone HTTP/1.1\nHost: 127.0.0.2:$PORT\n\n", 403, "forbidden_host"},
		{"decimal address", "GET /v1/anyone HTTP/1.1\nHost: 2130706433:$PORT\n\n", 403, "forbidden_host"},
		{"without the port", "GET /v1/anyone HTTP/1.1\nHost: 127.0.0.1\n\n", 403, "forbidden_host"},
		{"other port", "GET /v1/anyone HTTP/1.1\nHost: 127.0.0.1:1\n\n", 403, "forbidden_host"},
		{"empty host", "GET /v1/anyone HTTP/1.1\nHost:\n\n", 403, "forbidden_host"},
		{"user in host", "GET /v1/anyone HTTP/1.1\nHost: x@$HOST\n\n", 400, "*"},
		{"absolute form wins over Host", "GET http://evil.example/v1/anyone HTTP/1.1\nHost: $HOST\n\n", 403, "forbidden_host"},
		{"allowed name", "GET /v1/anyone HTTP/1.1\nHost: inbox.example\n\n", 200, ""},
		{"allowed name with the port", "GET /v1/anyone HTTP/1.1\nHost: INBOX.example:$PORT\n\n", 200, ""},
		{"allowed name with another port", "GET /v1/anyone HTTP/1.1\nHost: inbox.example:1\n\n", 403, "forbidden_host"},
		{"allowed name and port", "GET /v1/anyone HTTP/1.1\nHost: proxy.example:8443\n\n", 200, ""},
		{"allowed name and port, without it", "GET /v1/anyone HTTP/1.1\nHost: proxy.example\n\n", 403, "forbidden_host"},
		{"own origin", post + "Host: $HOST\nOrigin: http://$HOST\n" + asJSON + body, 200, ""},
		{"other port's origin", post + "Host: $HOST\nOrigin: http://127.0.0.1:1\n" + asJSON + body, 403, "forbidden_origin"},
		{"the same port by another name", post + "Host: $HOST\nOrigin: http://localhost:$PORT\n" + asJSON + body, 403, "forbidden_origin"},
		{"origin null", post + "Host: $HOST\nOrigin: null\n" + asJSON + body, 403, "forbidden_origin"},
		{"empty origin", post + "Host: $HOST\nOrigin:\n" + asJSON + body, 403, "forbidden_origin"},
		{"two origins", post + "Host: $HOST\nOrigin: http://$HOST\nOrigin: http://evil.example\n" + asJSON + body, 403, "forbidden_origin"},
		{"https origin", post + "Host: $HOST\nOrigin: https://$HOST\n" + asJSON + body, 403, "forbidden_origin"},
		{"foreign origin with the operator's token", "POST /api/do HTTP/1.1\nHost: $HOST\nOrigin: http://evil.example\n" + op + asJSON + body, 403, "forbidden_origin"},
		{"cross-site", "GET /v1/anyone HTTP/1.1\nHost: $HOST\nSec-Fetch-Site: cross-site\n\n", 403, "forbidden_origin"},
		{"same-site: another port", "GET /v1/anyone HTTP/1.1\nHost: $HOST\nSec-Fetch-Site: same-site\n\n", 403, "forbidden_origin"},
		{"unknown site", "GET /v1/anyone HTTP/1.1\nHost: $HOST\nSec-Fetch-Site: whatever\n\n", 403, "forbidden_origin"},
		{"typed in", "GET / HTTP/1.1\nHost: $HOST\nSec-Fetch-Site: none\n\n", 200, ""},
		{"page fetched by a site", "GET / HTTP/1.1\nHost: $HOST\nSec-Fetch-Site: cross-site\n\n", 403, "forbidden_origin"},
		{"same-origin", "GET /v1/anyone HTTP/1.1\nHost: $HOST\nSec-Fetch-Site: same-origin\n\n", 200, ""},
		{"form", post + "Host: $HOST\nContent-Type: application/x-www-form-urlencoded\n" + body, 415, "unsupported_media_type"},
		{"text", post + "Host: $HOST\nContent-Type: text/plain\n" + body, 415, "unsupported_media_type"},
		{"no type", post + "Host: $HOST\n" + body, 415, "unsupported_media_type"},
		{"utf-8", post + "Host: $HOST\nContent-Type: application/json; charset=UTF-8\n" + body, 200, ""},
		{"other charset", post + "Host: $HOST\nContent-Type: application/json; charset=utf-16\n" + body, 415, "unsupported_media_type"},
		{"chunked without a type", post + "Host: $HOST\nTransfer-Encoding: chunked\n\n2\n{}\n0\n\n", 415, "unsupported_media_type"},
		{"chunked", post + "Host: $HOST\n" + asJSON + "Transfer-Encoding: chunked\n\n2\n{}\n0\n\n", 200, ""},
		{"no body, no type", post + "Host: $HOST\nContent-Length: 0\n\n", 200, ""},
		{"body too large", post + "Host: $HOST\n" + asJSON + "Content-Length: 1001\n\n" + strings.Repeat(" ", 1001), 422, "invalid_field"},
		{"body as large as allowed", post + "Host: $HOST\n" + asJSON + "Content-Length: 1000\n\n" + strings.Repeat(" ", 1000), 200, ""},
		{"chunked body too large", post + "Host: $HOST\n" + asJSON + "Transfer-Encoding: chunked\n\n3e9\n" + strings.Repeat(" ", 1001) + "\n0\n\n", 422, "invalid_field"},
		{"body cut short", post + "Host: $HOST\nConnection: close\n" + asJSON + "Transfer-Encoding: chunked\n\nzz\n", 400, "validation_error"},

		{"agent's route, agent", "POST /v1/agent HTTP/1.1\nHost: $HOST\n" + bot + "\n", 200, ""},
		{"agent's route, API key", "POST /v1/agent HTTP/1.1\nHost: $HOST\nX-API-Key: dbt_bot\n\n", 200, ""},
		{"agent's route, lower-case scheme", "POST /v1/agent HTTP/1.1\nHost: $HOST\nAuthorization: bearer dbt_bot\n\n", 200, ""},
		{"agent's route, operator", "POST /v1/agent HTTP/1.1\nHost: $HOST\n" + op + "\n", 403, "not_authorized"},
		{"agent's route, nobody", "POST /v1/agent HTTP/1.1\nHost: $HOST\n\n", 401, "unauthenticated"},
		{"agent's route, wrong token", "POST /v1/agent HTTP/1.1\nHost: $HOST\nAuthorization: Bearer dbt_other\n\n", 401, "unauthenticated"},
		{"agent's route, basic", "POST /v1/agent HTTP/1.1\nHost: $HOST\nAuthorization: Basic ZGJ0X2JvdA==\n\n", 401, "unauthenticated"},
		{"agent's route, empty token", "POST /v1/agent HTTP/1.1\nHost: $HOST\nAuthorization: Bearer \n\n", 401, "unauthenticated"},
		{"a wrong bearer is not saved by an API key", "POST /v1/agent HTTP/1.1\nHost: $HOST\nAuthorization: Bearer x\nX-API-Key: dbt_bot\n\n", 401, "unauthenticated"},
		{"operator's route, operator", "GET /api/state HTTP/1.1\nHost: $HOST\n" + op + "\n", 200, ""},
		{"operator's route, agent", "GET /api/state HTTP/1.1\nHost: $HOST\n" + bot + "\n", 403, "not_authorized"},
		{"operator's route, nobody", "GET /api/state HTTP/1.1\nHost: $HOST\n\n", 401, "unauthenticated"},
		{"operator's route, stranger", "GET /api/state HTTP/1.1\nHost: $HOST\nAuthorization: Bearer x\n\n", 401, "unauthenticated"},

		{"unknown path", "GET /v1/nothing HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"unknown api path", "GET /api/nothing HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"unknown well-known path", "GET /.well-known/nothing HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"unknown path, POST", "POST /nothing HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"wrong method", "DELETE /v1/anyone HTTP/1.1\nHost: $HOST\n\n", 405, "method_not_allowed"},
		{"final slash", "GET /v1/anyone/ HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"double slash", "GET //v1/anyone HTTP/1.1\nHost: $HOST\n\n", 404, "*"},
		{"dots", "GET /v1/x/../anyone HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"head", "HEAD /v1/anyone HTTP/1.1\nHost: $HOST\n\n", 200, ""},
		{"head of the page", "HEAD / HTTP/1.1\nHost: $HOST\n\n", 200, ""},
		{"options", "OPTIONS /v1/anyone HTTP/1.1\nHost: $HOST\n\n", 405, "method_not_allowed"},
		{"connect", "CONNECT $HOST HTTP/1.1\nHost: $HOST\n\n", 404, "*"},
		{"folder of the page", "GET /assets/ HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"folder of the page, without the slash", "GET /assets HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"file of the page", "GET /assets/app.js HTTP/1.1\nHost: $HOST\n\n", 200, ""},
		{"out of the page", "GET /../server.go HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
		{"out of the page, encoded", "GET /%2e%2e/server.go HTTP/1.1\nHost: $HOST\n\n", 404, "not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := d.send(c.request)
			if resp.StatusCode != c.status {
				t.Fatalf("%d, want %d: %s", resp.StatusCode, c.status, body)
			}
			if c.code != "" && c.code != "*" && code(body) != c.code {
				t.Errorf("code %q, want %q", code(body), c.code)
			}
		})
	}
}

// An id that has a slash, or worse, is one segment of the path while it is encoded.
func TestEncodedIDs(t *testing.T) {
	d := open(t, nil)
	for path, want := range map[string]string{
		"/v1/things/plain":                        "plain",
		"/v1/things/deploybot%2Fdev-team":         "deploybot/dev-team",
		"/v1/things/a%2F..%2Fb":                   "a/../b",
		"/v1/things/%2e%2e":                       "..",
		"/v1/things/%00":                          "\x00",
		"/v1/things/%E2%80%AE":                    "\u202e",
		"/v1/things/a%20b":                        "a b",
		"/v1/things/%25":                          "%",
		"/v1/things/" + strings.Repeat("x", 9000): strings.Repeat("x", 9000),
	} {
		resp, body := d.send("GET " + path + " HTTP/1.1\nHost: $HOST\nAuthorization: Bearer dbo_operator\n\n")
		var got struct{ ID string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != 200 || got.ID != want {
			t.Errorf("%.60s: %d %.80q, want id %.40q", path, resp.StatusCode, body, want)
		}
	}
	for _, path := range []string{"/v1/things/a/b", "/v1/things/..", "/v1/things/", "/v1/things/a/../b"} {
		if resp, body := d.send("GET " + path + " HTTP/1.1\nHost: $HOST\nAuthorization: Bearer dbo_operator\n\n"); resp.StatusCode != 404 || code(body) != "not_found" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// signIn returns the cookie a browser would send back, and keeps the key that the page would.
func (d *door) signIn(body string) (string, int) {
	d.t.Helper()
	resp, answer := d.send(fmt.Sprintf("POST /api/session HTTP/1.1\nHost: $HOST\nOrigin: http://$HOST\n%sContent-Length: %d\n\n%s", asJSON, len(body), body))
	cookies := resp.Cookies()
	if len(cookies) == 0 {
		return "", resp.StatusCode
	}
	var page struct {
		Key string `json:"page_key"`
	}
	if err := json.Unmarshal([]byte(answer), &page); err != nil || page.Key == "" {
		d.t.Errorf("no key for the page: %s", answer)
	}
	d.page = pageKeyHeader + ": " + page.Key + "\n"
	c := cookies[0]
	if len(cookies) > 1 || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		d.t.Errorf("cookies %v", cookies)
	}
	return c.Name + "=" + c.Value, resp.StatusCode
}

func TestCookie(t *testing.T) {
	d := open(t, nil)
	if _, status := d.signIn(`{"token":"dbt_bot"}`); status != 401 {
		t.Errorf("an agent's token signed in: %d", status)
	}
	if _, status := d.signIn(`{}`); status != 401 {
		t.Errorf("nothing signed in: %d", status)
	}
	cookie, status := d.signIn(`{"token":"dbo_operator"}`)
	if status != 200 || cookie == "" {
		t.Fatalf("%d %q", status, cookie)
	}
	name, value, _ := strings.Cut(cookie, "=")
	end, mac, _ := strings.Cut(value, ".")
	forge := func(end, key string) string {
		h := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(h, "browser session, cookie, until %s", end)
		return end + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	}
	later := fmt.Sprint(d.now.Add(400 * 24 * time.Hour).Unix())
	for _, c := range []struct {
		name, cookie string
		status       int
	}{
		{"as given", cookie, 200},
		{"other port's", "deskbell_1=" + value, 401},
		{"no port's", "deskbell=" + value, 401},
		{"another MAC", name + "=" + end + "." + strings.Repeat("A", len(mac)), 401},
		{"MAC cut", name + "=" + end + "." + mac[:20], 401},
		{"longer time", name + "=" + later + "." + mac, 401},
		{"forged with another key", name + "=" + forge(later, "dbt_bot"), 401},
		{"plus sign", name + "=+" + value, 401},
		{"leading zero", name + "=0" + value, 401},
		{"empty", name + "=", 401},
		{"dot", name + "=.", 401},
		{"huge", name + "=99999999999999999999." + mac, 401},
		{"two of them, the wrong one first", name + "=x; " + cookie, 401},
	} {
		if resp, body := d.send("GET /api/state HTTP/1.1\nHost: $HOST\n" + d.page + "Cookie: " + c.cookie + "\n\n"); resp.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, resp.StatusCode, c.status, body)
		}
	}
	post := func(more string) int {
		resp, _ := d.send("POST /api/do HTTP/1.1\nHost: $HOST\n" + d.page + "Cookie: " + cookie + "\n" + more + asJSON + "Content-Length: 2\n\n{}")
		return resp.StatusCode
	}
	if s := post(""); s != 401 {
		t.Errorf("a change without Origin: %d", s)
	}
	if s := post("Origin: http://$HOST\n"); s != 200 {
		t.Errorf("a change from the page: %d", s)
	}
	if s := post("Origin: http://localhost:3000\n"); s != 403 {
		t.Errorf("a change from another port: %d", s)
	}
	if resp, _ := d.send("POST /v1/agent HTTP/1.1\nHost: $HOST\nOrigin: http://$HOST\n" + d.page + "Cookie: " + cookie + "\n\n"); resp.StatusCode != 403 {
		t.Errorf("the operator's cookie on an agent's route: %d", resp.StatusCode)
	}
	if resp, _ := d.send("GET /api/state HTTP/1.1\nHost: $HOST\nAuthorization: Bearer wrong\n" + d.page + "Cookie: " + cookie + "\n\n"); resp.StatusCode != 401 {
		t.Errorf("a wrong token beside a cookie: %d", resp.StatusCode)
	}
	// Any server on another port of this host that the person visits is sent the cookie. It has not got the page's key.
	for _, stolen := range []string{"", pageKeyHeader + ": x\n", pageKeyHeader + ": " + mac + "\n"} {
		for _, request := range []string{"GET /api/state HTTP/1.1\n", "GET /api/state?page=" + mac + " HTTP/1.1\n"} {
			if resp, _ := d.send(request + "Host: $HOST\nOrigin: http://$HOST\n" + stolen + "Cookie: " + cookie + "\n\n"); resp.StatusCode != 401 {
				t.Errorf("the cookie without the page's key (%q): %d", stolen, resp.StatusCode)
			}
		}
	}
	d.now = d.now.Add(cookieTime + 2*time.Second)
	if resp, _ := d.send("GET /api/state HTTP/1.1\nHost: $HOST\n" + d.page + "Cookie: " + cookie + "\n\n"); resp.StatusCode != 401 {
		t.Errorf("after its end: %d", resp.StatusCode)
	}
}

func TestTicketSignsInOnceAndSoon(t *testing.T) {
	d := open(t, nil)
	ticket := func() string {
		resp, body := d.send("POST /api/tickets HTTP/1.1\nHost: $HOST\nAuthorization: Bearer dbo_operator\n\n")
		var v struct{ Ticket string }
		if err := json.Unmarshal([]byte(body), &v); err != nil || resp.StatusCode != 201 || v.Ticket == "" {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		return fmt.Sprintf(`{"ticket":%q}`, v.Ticket)
	}
	one := ticket()
	if _, status := d.signIn(one); status != 200 {
		t.Errorf("first use: %d", status)
	}
	if _, status := d.signIn(one); status != 401 {
		t.Errorf("second use: %d", status)
	}
	two := ticket()
	d.now = d.now.Add(ticketTime + time.Second)
	if _, status := d.signIn(two); status != 401 {
		t.Errorf("late: %d", status)
	}
	if resp, _ := d.send("POST /api/tickets HTTP/1.1\nHost: $HOST\nAuthorization: Bearer dbt_bot\n\n"); resp.StatusCode != 403 {
		t.Errorf("an agent made a ticket: %d", resp.StatusCode)
	}
}

func TestDenialsAreAuditedAndBounded(t *testing.T) {
	d := open(t, nil)
	for range 200 {
		d.send("GET /api/state HTTP/1.1\nHost: $HOST\nAuthorization: Bearer secret-guess\n\n")
	}
	d.people.mu.Lock()
	defer d.people.mu.Unlock()
	if n := len(d.people.audit); n < 10 || n > 100 {
		t.Errorf("%d audit lines for 200 refused requests", n)
	}
	for _, a := range d.people.audit {
		if a.Result != "unauthenticated" || !strings.Contains(a.Target, "/api/state") || strings.Contains(fmt.Sprint(a), "secret-guess") {
			t.Fatalf("%+v", a)
		}
	}
}

// A client that sends its body slowly, or not at all, does not get to keep the connection.
func TestRefusedRequestWithAnUnfinishedBodyEndsTheConnection(t *testing.T) {
	d := open(t, nil)
	conn, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/agent HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", d.addr)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(answer), "401 Unauthorized") || !strings.Contains(string(answer), "unauthenticated") {
		t.Errorf("%v %q", err, answer)
	}
}

// A handler that cannot go on in the middle of its answer breaks off; nothing that looks like an answer follows.
func TestAbortedAnswerIsNotCompleted(t *testing.T) {
	d := open(t, []protocol.Route{{Pattern: "GET /v1/stream", Handle: func(w http.ResponseWriter, _ *http.Request, _ protocol.Caller) error {
		if _, err := io.WriteString(w, "one line\n"); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		panic(http.ErrAbortHandler)
	}}})
	_, body, err := d.try("GET /v1/stream HTTP/1.1\nHost: $HOST\n\n")
	if err == nil || body != "one line\n" {
		t.Errorf("%v %q", err, body)
	}
}

func TestPanicIsAnError(t *testing.T) {
	d := open(t, []protocol.Route{{Pattern: "GET /v1/panic", Handle: func(http.ResponseWriter, *http.Request, protocol.Caller) error { panic("secret") }}})
	resp, body := d.send("GET /v1/panic HTTP/1.1\nHost: $HOST\n\n")
	if resp.StatusCode != 500 || code(body) != "internal_error" || strings.Contains(body, "secret") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A request cut off because the hub stops is never answered with a success.
func TestStoppingIsNotSuccess(t *testing.T) {
	inside := make(chan struct{})
	d := open(t, []protocol.Route{{Pattern: "POST /v1/slow", Handle: func(_ http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
		close(inside)
		<-r.Context().Done()
		return r.Context().Err()
	}}})
	type result struct {
		resp *http.Response
		body string
		err  error
	}
	came := make(chan result, 1)
	go func() {
		resp, body, err := d.try("POST /v1/slow HTTP/1.1\nHost: $HOST\n\n")
		came <- result{resp, body, err}
	}()
	<-inside
	d.stop()
	got := <-came
	if got.err != nil || got.resp.StatusCode != 503 || code(got.body) != "unavailable" || got.resp.Header.Get("Retry-After") == "" {
		t.Errorf("%+v", got)
	}
}

func TestErrorForm(t *testing.T) {
	d := open(t, []protocol.Route{{Pattern: "GET /v1/fail", Handle: func(http.ResponseWriter, *http.Request, protocol.Caller) error {
		return fmt.Errorf("wrapped: %w", &inbox.LimitError{What: "enough", RetryAfter: 1500 * time.Millisecond})
	}}, {Pattern: "GET /v1/unknown", Handle: func(http.ResponseWriter, *http.Request, protocol.Caller) error {
		return errors.New("the disk is on fire")
	}}})
	resp, body := d.send("GET /v1/fail HTTP/1.1\nHost: $HOST\n\n")
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "2" || code(body) != "rate_limited" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	resp, body = d.send("GET /v1/unknown HTTP/1.1\nHost: $HOST\n\n")
	if resp.StatusCode != 500 || code(body) != "internal_error" || strings.Contains(body, "fire") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestPlainHTTPOnLoopbackOnly(t *testing.T) {
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	if ln, err := s.Listen("0.0.0.0:0", "", ""); err == nil {
		t.Errorf("listens on %v without TLS: %v", ln.Addr(), ln.Close())
	}
}

func FuzzCookieValue(f *testing.F) {
	s := New(Config{OperatorToken: "dbo_operator", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	until := time.Now().Add(time.Hour)
	good := s.cookieValue(until)
	for _, v := range []string{"", ".", "1.", good[:len(good)-1], good + "=", "-1.x", "9999999999.AAAA"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		r := &http.Request{Method: "GET", URL: &url.URL{Path: "/api/state"},
			Header: http.Header{"Cookie": {s.cookieName() + "=" + v}, pageKeyHeader: {s.pageKey(until)}}}
		if s.isPage(r) && v != good {
			t.Errorf("%q passes", v)
		}
	})
}

// A route may take a body that is too large cut short, to refuse it in its own words, and learns why its context ended.
func TestCutBodyAndStop(t *testing.T) {
	waiting := make(chan struct{})
	d := open(t, []protocol.Route{
		{Pattern: "POST /cut", MaxBody: 1000, CutBody: true, Handle: func(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			return protocol.WriteJSON(w, http.StatusOK, len(body))
		}},
		{Pattern: "POST /wait", Handle: func(w http.ResponseWriter, r *http.Request, _ protocol.Caller) error {
			close(waiting)
			<-r.Context().Done()
			return protocol.WriteJSON(w, http.StatusOK, errors.Is(context.Cause(r.Context()), protocol.ErrStopping))
		}},
	})
	post := func(path, body string) string {
		resp, err := http.Post("http://"+d.addr+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(text))
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1000", 1001: "1001", 5 << 20: "1001"} {
		if got := post("/cut", strings.Repeat("x", n)); got != want {
			t.Errorf("of %d bytes %s came", n, got)
		}
	}
	if resp, err := http.Get("http://" + d.addr + "/cut"); err != nil {
		t.Error(err)
	} else if resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("another method: %d", resp.StatusCode)
	}
	answer := make(chan string, 1)
	go func() { answer <- post("/wait", "{}") }()
	<-waiting
	d.stop()
	if got := <-answer; got != "true" {
		t.Errorf("the cause was the hub's end: %s", got)
	}
}
