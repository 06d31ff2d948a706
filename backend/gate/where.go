package gate

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"deskbell/backend/inbox"
	"deskbell/backend/wire"
)

// within says whether a path is a folder or below it. A relative path is one of base; "~" is home. Nothing is looked up:
// a symbolic link is where it stands.
func within(folder, p, base, home string) fit {
	f, ok := absolute(folder, base, home)
	if !ok {
		return untold
	}
	p, ok = absolute(p, base, home)
	switch {
	case !ok:
		return untold
	case below(f, p):
		return yes
	case below(asSomeDisksDo(f), asSomeDisksDo(p)):
		return untold // there are disks to which case is nothing
	}
	if i := strings.IndexAny(p, "*?["); i >= 0 { // a pattern, to some programs: what stands before it says where it begins
		start := path.Clean(p[:strings.LastIndexByte(p[:i], '/')+1])
		if below(start, f) {
			return untold
		}
	}
	return no
}

// folderNames are the arguments by which tools are told where to work, however each is written (workingDirectory, work-dir).
var folderNames = []string{"cwd", "dir", "workdir", "workingdir", "workingdirectory", "directory"}

// NamesFolder says whether a tool may take an argument of that name for where it is to work.
func NamesFolder(argument string) bool {
	return slices.Contains(folderNames, strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(argument)))
}

// worksWithin says whether a call works in the match's folder or below it, by what its agent says and by what it says itself
// in arguments of which the match does not speak.
func (m Match) worksWithin(c inbox.Call, home string) fit {
	all := eachFolder(c, m.names, func(place string) fit { return within(m.Folder, place, c.Folder, home) })
	return agreed(append(all, within(m.Folder, c.Folder, "", home)))
}

// anywhere is what holds of a call from wherever it may work; untold where that makes a difference.
func anywhere(c inbox.Call, fits func(base string) fit) fit {
	none := func(string) bool { return false }
	return agreed(append(eachFolder(c, none, func(place string) fit {
		if full, ok := absolute(place, c.Folder, ""); ok {
			return fits(full)
		}
		return untold
	}), fits(c.Folder)))
}

func agreed(all []fit) fit {
	for _, f := range all {
		if f != all[0] {
			return untold
		}
	}
	return all[0]
}

// eachFolder is what is true of each place that a call's arguments name for it to work in, but for some of them.
func eachFolder(c inbox.Call, but func(argument string) bool, fits func(place string) fit) []fit {
	var all []fit
	members, _ := wire.Members(c.Arguments) // none where they have no names
	for _, m := range members {
		if !NamesFolder(m.Name) || string(m.Value) == "null" || but(m.Name) {
			continue
		}
		if place, isText := wire.String(m.Value); isText {
			all = append(all, fits(place))
		} else {
			all = append(all, untold)
		}
	}
	return all
}

// asSomeDisksDo spells a path as disks do that take no notice of case, nor of how a letter and its accent are written.
func asSomeDisksDo(path string) string { return norm.NFC.String(strings.ToLower(path)) }

// below says whether a cleaned path is that folder or stands below it.
func below(folder, p string) bool {
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// absolute resolves a path; false: it cannot be told where it leads. A path of Windows comes with slashes and its drive
// in upper case.
func absolute(p, base, home string) (string, bool) {
	if doubtfulPath(p) || base != "" && doubtfulPath(base) {
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
	if base, ok := rooted(base); ok {
		return path.Join(base, p), true
	}
	return "", false
}

// scheme begins an address, which a program may take for a path (file:), and a drive of Windows without its slash.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// doubtfulPath says whether some program would read a path otherwise than as it stands: it trims it, expands what is in
// it, takes off the @ before it, takes it for an address or a device, or it is longer than a rule compares.
func doubtfulPath(p string) bool {
	if p == "" || len(p) > maxText || !utf8.ValidString(p) || strings.TrimSpace(p) != p || p[0] == '@' || strings.ContainsAny(p, "$%{}") {
		return true
	}
	if strings.ContainsFunc(p, func(r rune) bool { return controls(r) || unicode.IsSpace(r) && r != ' ' }) {
		return true
	}
	windows := drive(p)
	if !windows && (scheme.MatchString(p) || strings.Contains(p, `\`)) || windows && strings.Contains(p[2:], ":") {
		return true
	}
	for name := range strings.FieldsFuncSeq(p, func(r rune) bool { return r == '/' || r == '\\' }) {
		stem, _, _ := strings.Cut(name, ".")
		if device(strings.TrimRight(stem, " ")) || windows && name != "." && name != ".." && strings.TrimRight(name, ". ") != name {
			return true
		}
	}
	return false
}

// drive says whether a path begins at the root of a drive of Windows.
func drive(p string) bool {
	return len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && unicode.IsLetter(rune(p[0])) && p[0] < 0x80
}

// device says whether Windows takes a name for a device, in whatever folder.
func device(name string) bool {
	name = strings.ToLower(name)
	if len(name) == 4 && name[3] >= '0' && name[3] <= '9' {
		return name[:3] == "com" || name[:3] == "lpt"
	}
	return slices.Contains([]string{"nul", "con", "aux", "prn", "conin$", "conout$"}, name)
}

// rooted is a path from the root on, cleaned.
func rooted(p string) (string, bool) {
	if strings.HasPrefix(p, "/") {
		return path.Clean(p), true
	}
	if drive(p) {
		slashed := strings.ReplaceAll(p, `\`, "/")
		return strings.ToUpper(slashed[:1]) + ":" + path.Clean(slashed[2:]), true
	}
	return "", false
}

// fitsHost says whether a URL leads to that host. Without a port the host is meant at its scheme's own port; whether it is
// at another one too cannot be told.
func fitsHost(want, raw string) fit {
	want, wantPort, ok := hostName(want)
	if !ok {
		return no
	}
	host, port, ok := hostOf(raw)
	if !ok {
		return untold
	}
	same := host == want
	if below, any := strings.CutPrefix(want, "*."); any {
		same = strings.HasSuffix(host, "."+below)
	}
	switch {
	case !same && sameAddress(want, host):
		return untold
	case !same:
		return no
	case port == wantPort:
		return yes
	case wantPort == "":
		return untold
	}
	return no
}

// sameAddress says whether a host may be the address want in other digits: 127.1, 0x7f000001, ::ffff:7f00:1.
func sameAddress(want, host string) bool {
	a, err := netip.ParseAddr(want)
	if err != nil {
		return false
	}
	if b, err := netip.ParseAddr(host); err == nil {
		return a.Unmap() == b.Unmap()
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && last[0] >= '0' && last[0] <= '9'
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
	return folder != "" && file != "" && within(folder, file, folder, p.Home) != yes
}
