package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deskbell/backend"
	"deskbell/backend/client"
	"deskbell/backend/config"
	"deskbell/backend/loopback"
)

// hub is a way to the hub, with a credential.
type hub struct {
	*client.Client
	offline bool // it was opened in this process
	close   func() error
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

// Is makes it a hub that does not answer, and may yet.
func (e *noHub) Is(target error) bool { return target == client.ErrUnreachable }

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
		if loopback.Host(host) {
			scheme = "http"
		}
		raw = scheme + "://" + addr
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" {
		return "", fmt.Errorf("%q is not the address of a hub", addr)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback.Host(u.Hostname())) {
		return "", fmt.Errorf("%q: another machine's hub is reached over https only", addr)
	}
	return u.Scheme + "://" + u.Host, nil
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
	return &hub{Client: a.client(cfg, base, token), close: func() error { return nil }}
}

func (a *app) client(cfg config.Config, base, token string) *client.Client {
	return &client.Client{URL: base, Token: token, HTTP: httpClient(cfg), UserAgent: "deskbell/" + config.Version}
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
func responds(ctx context.Context, h *hub) bool { return health(ctx, h) == nil }

// unreached says of a hub that does not answer here why: its name, its certificate, its address. nil: it answers, or
// nothing is known.
func unreached(ctx context.Context, h *hub) error {
	if err := health(ctx, h); errors.Is(err, client.ErrUnreachable) {
		return err
	}
	return nil
}

// health asks a hub at base whether it is well.
func health(ctx context.Context, h *hub) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var health struct {
		Status string `json:"status"`
	}
	err := h.Call(ctx, http.MethodGet, "/healthz", nil, &health)
	if err == nil && health.Status != "ok" {
		err = errors.New("what answers there is no hub")
	}
	return err
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
	// A hub that is just starting has the folder and no address yet: look again for a while. Another command has none either,
	// and when it ends the next one may have the folder: each gets its time.
	const patience = 5 * time.Second
	for holder, since := 0, time.Now(); ; {
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
		if pid := other.Other.PID; pid != holder {
			holder, since = pid, time.Now()
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
		if time.Since(since) > patience {
			if other.Other.URL != "" {
				if why := unreached(ctx, a.dial(cfg, other.Other.URL, "")); why != nil {
					return nil, &exit{code: exitFailure, err: fmt.Errorf("%w, and %w", err, why)}
				}
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
	switch err := health(ctx, a.dial(cfg, base, "")); {
	case err == nil:
	case a.flags.Addr == "":
		return nil, nil
	case errors.Is(err, client.ErrUnreachable):
		return nil, err
	default:
		return nil, fmt.Errorf("no hub answers at %s", base)
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
	return &hub{Client: &client.Client{URL: "http://deskbell.invalid", HTTP: &http.Client{Transport: inProcess{hb.Handler()}}}, offline: true,
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
	if e, ok := client.Refused(err, "unauthenticated"); ok {
		return fmt.Errorf("the hub at %s does not take this data folder's operator token: it runs on another folder (--data DIR): %w", h.URL, e)
	}
	return err
}
