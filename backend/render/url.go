package render

import (
	"net/url"
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
