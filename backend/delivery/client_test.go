package delivery

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheckURL(t *testing.T) {
	for url, host := range map[string]string{
		"https://bot.example/cb":           "bot.example",
		"https://BOT.example:8443/cb?x=1":  "bot.example:8443",
		"https://8.8.8.8/cb":               "8.8.8.8",
		"https://[2606:4700::1111]/cb":     "[2606:4700::1111]",
		"http://127.0.0.1:9000/cb":         "127.0.0.1:9000",
		"http://localhost:9000/cb":         "localhost:9000",
		"http://[::1]:9000/cb":             "[::1]:9000",
		"https://localhost/cb":             "localhost",
		"https://127.0.0.1.nip.example/cb": "127.0.0.1.nip.example",
		"https://1.example/":               "1.example",
		"https://bot.example:65535/":       "bot.example:65535",
		"https://xn--bcher-kva.example/":   "xn--bcher-kva.example",
	} {
		if got, err := CheckURL(url); err != nil || got != host {
			t.Errorf("%s: %q %v", url, got, err)
		}
	}
	for _, url := range []string{
		"", "x", "/cb", "//bot.example/cb", "https:", "https://", "https:///cb", "https:bot.example", "mailto:a@b.example",
		"http://bot.example/cb", "HTTP://bot.example/cb", "ftp://bot.example/", "file:///etc/passwd", "gopher://127.0.0.1:1/", "unix:///x",
		"https://user@bot.example/", "https://user:pw@bot.example/", "https://@bot.example/", "https://bot.example#x",
		"https://bot.example:0/", "https://bot.example:65536/", "https://bot.example:x/", "https://bot.example:/",
		"http://localhost.:9/", "http://localho\u017ft:9/", "http://localhost.localdomain:9/", "http://sub.localhost:9/", "http://127.1:9/", "http://2130706433:9/",
		"http://0x7f000001:9/", "http://0177.0.0.1:9/", "http://127.0.0.1.:9/",
		"https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://0x7f.1/", "https://127.0.0.01/", "https://017700000001/", "https://1.2.3.4.5/", "https://127.0.0.1./",
		"https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest/meta-data", "https://100.64.0.1/",
		"https://0.0.0.0/", "http://0.0.0.0:9/", "https://224.0.0.1/", "https://255.255.255.255/", "https://240.0.0.1/", "https://192.0.2.1/", "https://198.18.0.1/",
		"https://[::]/", "http://[::]:9/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://[fd00:ec2::254]/", "https://[fc00::1]/", "https://[ff02::1]/",
		"https://[::ffff:10.0.0.1]/", "https://[::ffff:a9fe:a9fe]/", "https://[64:ff9b::a00:1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/",
		"https://[2001:db8::1]/", "https://[2001::1]/", "https://[::7f00:1]/", "https://[::ffff:0:7f00:1]/", "https://[100::1]/", "https://[4000::1]/",
	} {
		if host, err := CheckURL(url); err == nil {
			t.Errorf("%s passes as %q", url, host)
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, ip := range []string{"8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.0", "169.253.0.1", "2606:4700::1111", "2a00::1", "::ffff:8.8.8.8"} {
		if !allowed(netip.MustParseAddr(ip), false) {
			t.Errorf("%s is refused", ip)
		}
	}
	for _, ip := range []string{"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"} {
		a := netip.MustParseAddr(ip)
		if allowed(a, false) || !allowed(a, true) {
			t.Errorf("%s is loopback", ip)
		}
	}
	for _, ip := range []string{"0.0.0.0", "0.1.2.3", "10.1.1.1", "192.0.0.1", "192.0.0.170", "192.88.99.1", "203.0.113.9", "::", "::2", "64:ff9b:1::1", "2001:20::1", "3fff::1", "5f00::1", "fec0::1", "::ffff:0:8.8.8.8", "fe80::1%eth0", "::ffff:169.254.169.254"} {
		if a := netip.MustParseAddr(ip); allowed(a, true) || allowed(a, false) {
			t.Errorf("%s is allowed", ip)
		}
	}
	if allowed(netip.Addr{}, true) {
		t.Error("no address is allowed")
	}
}

// What counts is the address that is dialed, not the name that was written.
func TestDial(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	get := func(raw string, loopback bool) error {
		c := client(loopback)
		defer c.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", raw, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if err := get(s.URL, true); err != nil {
		t.Errorf("approved loopback: %v", err)
	}
	if err := get("http://localhost:"+u.Port(), true); err != nil {
		t.Errorf("localhost: %v", err)
	}
	for _, raw := range []string{s.URL, "http://localhost:" + u.Port(), "http://[::ffff:127.0.0.1]:" + u.Port()} {
		if err := get(raw, false); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s as a public host: %v", raw, err)
		}
	}
	// Names of the hosts file that lead to loopback.
	for _, name := range []string{"localhost.", "ip6-localhost", "localhost.localdomain"} {
		if addrs, err := net.DefaultResolver.LookupHost(t.Context(), name); err != nil || len(addrs) == 0 {
			continue // not known on this system
		}
		if err := get("http://"+name+":"+u.Port(), isLocalURL("http://"+name+":"+u.Port())); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Approved for loopback does not mean approved for elsewhere.
	if err := get("http://8.8.8.8:9", true); !errors.Is(err, ErrForbidden) {
		t.Errorf("a loopback host that leads elsewhere: %v", err)
	}
}

func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	proxied := false
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proxied = true }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	if tr := client(true).Transport.(*http.Transport); tr.Proxy != nil {
		t.Error("there is a proxy")
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client(true).Do(req); err == nil {
		t.Error("answered", resp.Body.Close())
	}
	if proxied {
		t.Error("went through the proxy")
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://bot.example/cb", "http://127.0.0.1:1/", "https://2130706433", "http://[::1%25lo]:1/", "https://a@b", "https://\u3002localhost/", "HTTPS://X:443"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		host, err := CheckURL(raw)
		if err != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || host != strings.ToLower(u.Host) || u.User != nil {
			t.Fatalf("%q: %q", raw, host)
		}
		if u.Scheme == "http" && !isLocalURL(raw) {
			t.Fatalf("%q: plain http to %q", raw, host)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !allowed(ip, true) {
			t.Fatalf("%q passes", raw)
		}
		if _, err := http.NewRequest("POST", raw, nil); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
