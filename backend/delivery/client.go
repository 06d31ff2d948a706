// Package delivery sends what is owed: a durable queue of pushes with backoff and an attempt log, and the one HTTP
// client through which anything leaves the hub.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"deskbell/backend/loopback"
)

// ErrForbidden: the address is one that the hub never connects to.
var ErrForbidden = errors.New("the hub does not connect to this address")

// forbidden are the ranges that no callback may reach, beside loopback, which has a rule of its own: private and shared
// networks, link-local with the clouds' metadata services, documentation, benchmarks, multicast, reserved, and the
// ranges that embed an IPv4 address (those are judged by it too).
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// allowed says whether the hub may connect to a resolved address. Loopback only when local is set: for a host the
// operator approved by name and port.
func allowed(ip netip.Addr, local bool) bool {
	ip = ip.WithZone("").Unmap()
	if loopback.Addr(ip) {
		return local
	}
	for _, p := range forbidden {
		if p.Contains(ip) {
			return false
		}
	}
	// Of IPv6 only the block that addresses are given out from: what lies outside it embeds or translates others, is
	// local, or means nothing yet.
	return ip.IsValid() && ip.IsGlobalUnicast() && (ip.Is4() || globalIPv6.Contains(ip))
}

var globalIPv6 = netip.MustParsePrefix("2000::/3")

// looksLikeIPv4 says whether a host's last label is a number: some resolvers read such a name as an address, in
// spellings (2130706433, 0x7f.1, 127.1) that netip does not.
func looksLikeIPv4(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := strings.ToLower(labels[len(labels)-1])
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// The bounds of an address: a host as DNS has them, with its port; and more than any other program takes.
const (
	maxHost = 253 + len(":65535")
	maxURL  = 8192
)

// CheckURL refuses a callback address that could never be allowed and returns the host as the operator approves it:
// host, or host:port where a port is given. https anywhere, http only to loopback; no credentials in it.
func CheckURL(raw string) (host string, err error) {
	if len(raw) > maxURL {
		return "", fmt.Errorf("is longer than %d bytes", maxURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", errors.New("must not contain spaces or control characters")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return "", errors.New("is not an absolute URL with a host")
	case len(u.Host) > maxHost:
		return "", fmt.Errorf("has a host longer than %d bytes", maxHost)
	case u.User != nil:
		return "", errors.New("must not carry a user name or password")
	case u.Fragment != "":
		return "", errors.New("must not carry a fragment")
	case u.Scheme == "http" && !loopback.Host(u.Hostname()):
		return "", errors.New("must be https: plain http is allowed to this machine only")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", errors.New("must be an https URL")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case err == nil && !allowed(ip, true):
		return "", errors.New("leads to a private, reserved or metadata address, where the hub never connects")
	case err != nil && looksLikeIPv4(u.Hostname()):
		return "", errors.New("must give an IPv4 address as four decimal numbers")
	}
	if strings.HasSuffix(u.Host, ":") {
		return "", errors.New("has a colon without a port")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", errors.New("has a port outside 1 to 65535")
		}
	}
	return strings.ToLower(u.Host), nil
}

// isLocalURL says whether a checked URL names this machine.
func isLocalURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && loopback.Host(u.Hostname())
}

// The bounds of one request.
const (
	requestTimeout = 15 * time.Second
	dialTimeout    = 5 * time.Second
	maxAnswer      = 64 << 10
)

// client returns the guarded client for one request to a checked URL: the address is judged when it is dialed, after
// the name was resolved, so a name cannot change its mind in between; no proxy, no redirect, no cookie, no reuse.
func client(local bool) *http.Client {
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrForbidden, address)
			}
			if !allowed(ap.Addr(), local) || loopback.Addr(ap.Addr()) != local {
				return fmt.Errorf("%w: %s", ErrForbidden, ap.Addr())
			}
			return nil
		},
	}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    dialTimeout,
			ResponseHeaderTimeout:  requestTimeout,
			MaxResponseHeaderBytes: 32 << 10,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
