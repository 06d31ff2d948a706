package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskbell/backend"
	"deskbell/backend/config"
	"deskbell/backend/inbox"
)

// hub is a way to the hub, with a credential.
type hub struct {
	base    string
	token   string
	http    *http.Client
	offline bool
	close   func() error
}

// apiError is the hub's refusal.
type apiError struct {
	Status     int
	Code       string
	Message    string
	Details    []inbox.FieldError
	RetryAfter string
	Body       []byte
}

func (e *apiError) Error() string { return e.Message }

// refusedAs returns the hub's refusal that err is, if it has one of these codes, or no code is named.
func refusedAs(err error, codes ...string) (*apiError, bool) {
	var e *apiError
	if !errors.As(err, &e) {
		return nil, false
	}
	return e, len(codes) == 0 || slices.Contains(codes, e.Code)
}

// unreachable: nothing that speaks HTTP answered whole.
type unreachable struct {
	base string
	err  error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("the hub at %s does not answer (%s)", e.base, plainNet(e.err))
}

func (e *unreachable) Unwrap() error { return e.err }

func plainNet(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}

// noHub: no hub runs on the data folder.
type noHub struct {
	data  string
	stale *backend.Info
}

func (e *noHub) Error() string {
	s := "no hub is running on " + e.data
	if e.stale != nil {
		s += fmt.Sprintf(" (hub.json names pid %d, which is gone)", e.stale.PID)
	}
	return s + ": start it with `deskbell serve` or open the window, or name another with --addr or --data"
}

// call sends one request and reads the answer into out, if there is one. Errors: *apiError, *unreachable.
func (h *hub) call(ctx context.Context, method, path string, body, out any) error {
	var raw []byte
	switch b := body.(type) {
	case nil:
	case json.RawMessage:
		raw = b
	default:
		var err error
		if raw, err = marshal(b); err != nil {
			return err
		}
	}
	answer, err := h.send(ctx, method, path, raw)
	if err != nil || out == nil {
		return err
	}
	if r, ok := out.(*json.RawMessage); ok {
		*r = answer
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &unreachable{h.base, fmt.Errorf("its answer is not what was expected: %w", err)}
	}
	return nil
}

func (h *hub) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	resp, err := h.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, &unreachable{h.base, err}
	}
	return answer, nil
}

// open sends one request and returns the answer, a success, unread.
func (h *hub) open(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if h.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	req.Header.Set("User-Agent", "deskbell/"+config.Version)
	resp, err := h.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &unreachable{h.base, err}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<20)) // what came is enough to say what is wrong
	var e struct {
		Error struct {
			Code    string             `json:"code"`
			Message string             `json:"message"`
			Details []inbox.FieldError `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(answer, &e) != nil || e.Error.Code == "" {
		return nil, &unreachable{h.base, fmt.Errorf("HTTP %s from something that is not a hub", resp.Status)}
	}
	return nil, &apiError{Status: resp.StatusCode, Code: e.Error.Code, Message: e.Error.Message, Details: e.Error.Details,
		RetryAfter: resp.Header.Get("Retry-After"), Body: answer}
}

// baseURL makes an address a person wrote into the URL the hub answers at. A credential is sent in clear to this
// machine only.
func baseURL(addr string) (string, error) {
	raw := addr
	if !strings.Contains(addr, "://") {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" || port == "0" {
			return "", fmt.Errorf("%q is not HOST:PORT of a hub", addr)
		}
		scheme := "https"
		if isLoopback(host) {
			scheme = "http"
		}
		raw = scheme + "://" + addr
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" {
		return "", fmt.Errorf("%q is not the address of a hub", addr)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return "", fmt.Errorf("%q: another machine's hub is reached over https only", addr)
	}
	return u.Scheme + "://" + u.Host, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}

// named returns the address the caller named by flag or environment; "" when the data folder is to be asked.
func (a *app) named() (base string, err error) {
	if a.flags.Addr != "" {
		if base, err = baseURL(a.flags.Addr); err != nil {
			return "", usagef("--addr: %w", err)
		}
		return base, nil
	}
	addr := a.getenv("DESKBELL_ADDR")
	if addr == "" || strings.HasSuffix(addr, ":0") { // port 0 only means something to the hub
		return "", nil
	}
	if base, err = baseURL(addr); err != nil {
		return "", usagef("DESKBELL_ADDR: %w", err)
	}
	return base, nil
}

// find returns where the hub answers: as the caller named it, or as hub.json says while its process lives.
// Errors: *noHub.
func (a *app) find(cfg config.Config) (string, error) {
	base, err := a.named()
	if base != "" || err != nil {
		return base, err
	}
	info, err := backend.ReadInfo(cfg.Data)
	if err != nil {
		return "", &noHub{data: cfg.Data}
	}
	if !alive(info.PID) {
		return "", &noHub{data: cfg.Data, stale: &info}
	}
	return info.URL, nil
}

// dial returns a way to the hub at base, with a credential or none.
func (a *app) dial(cfg config.Config, base, token string) *hub {
	return &hub{base: base, token: token, http: httpClient(cfg), close: func() error { return nil }}
}

// operatorToken reads the operator's token from the data folder.
func operatorToken(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, backend.TokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s in %s: is this the hub's data folder? (--data DIR)", backend.TokenFile, data)
	}
	if err != nil {
		return "", fmt.Errorf("the operator's token cannot be read, so this is not yours to do: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// responds says whether a hub answers at base right now.
func responds(ctx context.Context, h *hub) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var health struct {
		Status string `json:"status"`
	}
	return h.call(ctx, http.MethodGet, "/healthz", nil, &health) == nil && health.Status == "ok"
}

// operator returns a way to the hub as the operator: the one that runs, or, when none does, one opened on the data
// folder in this process. Whoever gets it closes it.
func (a *app) operator(ctx context.Context) (*hub, config.Config, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, cfg, err
	}
	h, err := a.operatorOf(ctx, cfg)
	return h, cfg, err
}

func (a *app) operatorOf(ctx context.Context, cfg config.Config) (*hub, error) {
	// A hub that is just starting has the folder and no address yet: look again for a while.
	patience, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		h, err := a.online(ctx, cfg)
		if h != nil || err != nil {
			return h, err
		}
		h, err = a.openHere(ctx, cfg)
		var other *backend.RunningError
		if !errors.As(err, &other) {
			return h, err
		}
		// Somebody does have the folder: a hub whose process cannot be seen from here (in a container) answers all the same.
		if other.Other.URL != "" && responds(ctx, a.dial(cfg, other.Other.URL, "")) {
			token, err := operatorToken(cfg.Data)
			if err != nil {
				return nil, err
			}
			return a.dial(cfg, other.Other.URL, token), nil
		}
		if pause(patience, 50*time.Millisecond) != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &exit{code: exitFailure, err: fmt.Errorf("%w, and it does not answer", err)}
		}
	}
}

// online returns the running hub; nil when there is none and the caller did not insist on one.
func (a *app) online(ctx context.Context, cfg config.Config) (*hub, error) {
	base, err := a.find(cfg)
	var none *noHub
	if errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if h := a.dial(cfg, base, ""); !responds(ctx, h) {
		if a.flags.Addr != "" {
			return nil, fmt.Errorf("no hub answers at %s", base)
		}
		return nil, nil
	}
	token, err := operatorToken(cfg.Data)
	if err != nil {
		return nil, err
	}
	return a.dial(cfg, base, token), nil
}

// openHere opens the data folder in this process. It never listens. Errors: *backend.RunningError.
func (a *app) openHere(ctx context.Context, cfg config.Config) (*hub, error) {
	if _, err := os.Stat(cfg.Data); errors.Is(err, fs.ErrNotExist) && !a.mayCreate {
		return nil, fmt.Errorf("there is no data folder at %s yet: `deskbell serve` or the window makes it", cfg.Data)
	}
	hb, err := backend.Open(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := hb.Settle(ctx); err != nil {
		return nil, errors.Join(err, hb.Close())
	}
	h := local(hb)
	h.close = hb.Close
	return h, nil
}

// local is the operator's way to a hub in this process.
func local(hb *backend.Hub) *hub {
	return &hub{base: "http://deskbell.invalid", http: &http.Client{Transport: inProcess{hb.Handler()}}, offline: true,
		close: func() error { return nil }}
}

// asOperator runs fn with a way to the hub as the operator.
func (a *app) asOperator(ctx context.Context, fn func(*hub) error) (err error) {
	h, _, err := a.operator(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	err = fn(h)
	if e, ok := refusedAs(err, "unauthenticated"); ok {
		return fmt.Errorf("the hub at %s does not take this data folder's operator token: it runs on another folder (--data DIR): %w", h.base, e)
	}
	return err
}
