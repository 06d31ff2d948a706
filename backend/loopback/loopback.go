// Package loopback says what is this machine. It does no I/O: a name that merely resolves to it is not.
package loopback

import (
	"net/netip"
	"strings"
)

// Addr says whether an address never leaves this machine, also where IPv6 carries it.
func Addr(ip netip.Addr) bool { return ip.Unmap().IsLoopback() }

// Host says whether a host, without a port, is this machine by its literal name or address. ASCII
// letters have no case; a final dot, a domain below, or an address in another spelling make another name.
func Host(host string) bool {
	const name = "localhost"
	if len(host) == len(name) && strings.EqualFold(host, name) { // of that length: the long s folds to s too
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && Addr(ip)
}
