package loopback_test

import (
	"net/netip"
	"testing"

	"deskbell/backend/loopback"
)

// What passes for this machine is sent credentials in clear, so nothing else may.
func TestHost(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST", "Localhost", "127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1"} {
		if !loopback.Host(host) {
			t.Errorf("%q is not this machine", host)
		}
	}
	for _, host := range []string{
		"", "localhost.", "sub.localhost", "localhost.localdomain", "localhost.evil.example", "ip6-localhost", "localhoſt", "127.1", "2130706433",
		"0x7f000001", "0177.0.0.1", "127.0.0.1.", "[::1]", "127.0.0.1:80", "0.0.0.0", "::", "::2", "::7f00:1", "64:ff9b::7f00:1", "128.0.0.1", "10.0.0.1",
	} {
		if loopback.Host(host) {
			t.Errorf("%q passes for this machine", host)
		}
	}
	if loopback.Addr(netip.Addr{}) {
		t.Error("no address is this machine")
	}
}
