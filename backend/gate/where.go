package gate

import (
	"net/url"
	"path"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// within says whether a path is a folder or below it. A relative path is one of base; "~" is home. Nothing is looked up:
// a symbolic link is where it stands.
func within(folder, p, base, home string) bool {
	f, ok := absolute(folder, base, home)
	if !ok {
		return false
	}
	p, ok = absolute(p, base, home)
	return ok && (p == f || strings.HasPrefix(p, strings.TrimSuffix(f, "/")+"/"))
}

// absolute resolves a path; false: it cannot be told where it leads. A path of Windows comes with slashes and its drive
// in upper case.
func absolute(p, base, home string) (string, bool) {
	if p == "" || strings.ContainsFunc(p, unicode.IsControl) {
		return "", false
	}
	if p == "~" || strings.HasPrefix(p, "~/") {
		if home == "" {
			return "", false
		}
		p = home + p[1:]
	} else if p[0] == '~' {
		return "", false // another user's
	}
	if full, ok := rooted(p); ok {
		return full, true
	}
	if base, ok := rooted(base); ok && !strings.Contains(p, `\`) {
		return path.Join(base, p), true
	}
	return "", false
}

// rooted is a path from the root on, cleaned.
func rooted(p string) (string, bool) {
	if strings.HasPrefix(p, "/") {
		return path.Clean(p), true
	}
	if len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && unicode.IsLetter(rune(p[0])) && p[0] < 0x80 {
		slashed := strings.ReplaceAll(p, `\`, "/")
		return strings.ToUpper(slashed[:1]) + ":" + path.Clean(slashed[2:]), true
	}
	return "", false
}

// matchesHost says whether a URL leads to that host. Without a port the host is meant at its scheme's own port.
func matchesHost(want, raw string) bool {
	host, port, ok := hostOf(raw)
	if !ok {
		return false
	}
	want, wantPort, ok := hostName(want)
	if !ok || port != wantPort {
		return false
	}
	if below, any := strings.CutPrefix(want, "*."); any {
		return strings.HasSuffix(host, "."+below)
	}
	return host == want
}

// hostOf is where a URL of the web leads, in the form that names are looked up in; false: readers might disagree.
// port is empty when it is the scheme's own.
func hostOf(raw string) (host, port string, ok bool) {
	if strings.ContainsFunc(raw, func(r rune) bool { return r == '\\' || unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", "", false
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return "", "", false
	}
	host, port, ok = hostName(u.Host)
	if port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		port = ""
	}
	return host, port, ok && !strings.HasPrefix(host, "*.")
}

// hostName reads HOST or HOST:PORT as a URL has it: names in lower case and in their ASCII form, without a last dot.
func hostName(s string) (host, port string, ok bool) {
	u, err := url.Parse("//" + s)
	if err != nil || u.Host != s || u.User != nil || strings.HasSuffix(s, ":") {
		return "", "", false
	}
	host, port = u.Hostname(), u.Port()
	if strings.Contains(host, ":") { // an address of IPv6
		return strings.ToLower(host), port, !strings.Contains(host, "%")
	}
	below, any := strings.CutPrefix(host, "*.")
	below, err = idna.Lookup.ToASCII(strings.TrimSuffix(below, "."))
	if err != nil || below == "" {
		return "", "", false
	}
	if any {
		below = "*." + below
	}
	return below, port, true
}

// Outside says that a path leads out of a folder, or that it cannot be told where it leads. Of no folder, or no path, it
// says nothing.
func (p Place) Outside(folder, file string) bool {
	_, known := absolute(folder, "", p.Home)
	return known && file != "" && !within(folder, file, folder, p.Home)
}
