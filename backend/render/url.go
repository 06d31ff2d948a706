package render

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// URL shows where a link leads. The host stands as the network sees it, in ASCII, with what the link wrote as the explanation; a sign-in part
// in front of it is marked, because it is the usual place for a false host. The second result is that host, with its port if it has one;
// for a mailto link the host of the address; empty if u has none or cannot be read.
func URL(u string) (shown []Span, host string) {
	parsed, err := url.Parse(u)
	if err != nil || strings.ContainsAny(u, "\\") {
		return Visible(u), ""
	}
	if strings.EqualFold(parsed.Scheme, "mailto") {
		if _, domain, ok := strings.Cut(parsed.Opaque, "@"); ok {
			domain, _, _ = strings.Cut(domain, "?")
			host = asciiHost(domain)
		}
		return Visible(u), host
	}
	if parsed.Host == "" {
		return Visible(u), ""
	}
	host = asciiHost(parsed.Host)
	// The authority is the part between the first // and what follows it.
	before, rest, ok := strings.Cut(u, "//")
	if !ok {
		return Visible(u), host
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	shown = Visible(before + "//")
	written := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		shown = append(shown, Span{T: Terminal(authority[:i+1]), M: "sign-in name, not the address: the link leads to " + host})
		written = authority[i+1:]
	}
	if written == host || strings.EqualFold(written, host) && isASCII(written) {
		shown = append(shown, Span{T: written})
	} else {
		shown = append(shown, Span{T: host, M: "written as " + Terminal(written)})
	}
	return append(shown, Visible(rest[len(authority):])...), host
}

// asciiHost is a host in lower case with the labels that are not ASCII in their xn-- form. A host with no such form has its odd characters
// labelled instead.
func asciiHost(host string) string {
	if isASCII(host) {
		return Terminal(strings.ToLower(host))
	}
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	ascii, err := idna.New(idna.MapForLookup(), idna.Transitional(false)).ToASCII(name)
	if err != nil || !isASCII(ascii) {
		if ascii, err = idna.Punycode.ToASCII(strings.ToLower(name)); err != nil || !isASCII(ascii) {
			return Terminal(host)
		}
	}
	return Terminal(ascii + port)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Doubts is what to be told of where a link leads, besides what URL shows of it: that it cannot be told, or which address a
// host that is written as a number is.
func Doubts(u string) []string {
	_, host := URL(u)
	name, _, _ := strings.Cut(host, ":") // of an address in brackets nothing that is a number
	switch ip := oddIP(name); {
	case host == "":
		return []string{"it cannot be told where this leads"}
	case ip != "":
		return []string{"leads to " + ip + ", written as a number"}
	}
	return []string{}
}

// oddIP is the address that programs read a host as which is written as numbers, otherwise than as four of them; "": it is
// none.
func oddIP(host string) string {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return ""
	}
	var address uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 0, 32)
		if p == "" || strings.ContainsAny(p, "_oObB") || err != nil {
			return ""
		}
		if last := i == len(parts)-1; last {
			if n >= 1<<(8*(5-len(parts))) {
				return ""
			}
			address |= n
		} else if n > 255 {
			return ""
		} else {
			address |= n << (8 * (3 - i))
		}
	}
	ip := netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}).String()
	if ip == host {
		return ""
	}
	return ip
}
