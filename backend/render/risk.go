package render

import (
	"fmt"
	slashes "path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"deskbell/backend/brief"
)

// risk is a pattern of commands that deserve a second look.
type risk struct {
	pattern *regexp.Regexp
	says    string // of a command: "removes files …"
	// only says that the text found is one after all; nil: it is.
	only func(found string) bool
	// words are texts without one of which nothing can match: most of a long command is not looked at for each pattern.
	words []string
	// file says that it is about what a file is for: the name of one is looked at, too.
	file bool
}

func (r risk) possible(s string) bool {
	return slices.ContainsFunc(r.words, func(w string) bool { return strings.Contains(s, w) })
}

// A text is looked through in pieces, so that a pattern that has to read on before it knows never reads far: the time is
// in proportion to the text, whatever it says. What is in the overlap of two pieces is found in one of them, whole.
const (
	lookAt  = 4 << 10
	overlap = 1 << 10
)

// find is where a text holds what the risk is about, in its order. Behind shown the first place is enough.
func (r risk) find(s string, shown int) (found [][]int) {
	past := 0 // the end of the last that was found
	for from := 0; ; from += lookAt - overlap {
		to := min(from+lookAt, len(s))
		part := s[from:to]
		for _, at := range r.pattern.FindAllStringIndex(part, -1) {
			start, end := from+at[0], from+at[1]
			switch {
			case start < past, from > 0 && at[0] == 0: // the piece before had it, or it is the end of a longer word
			case to < len(s) && end == to && at[0] >= lookAt-overlap: // it may go on: the next piece has it whole
			case r.only != nil && !r.only(part[at[0]:at[1]]):
			default:
				past = end
				found = append(found, []int{start, end})
				if start >= shown {
					return found
				}
			}
		}
		if to == len(s) {
			return found
		}
	}
}

// behindQuotes is what a text without its quotes holds besides what stands in it as it is. place is where its bytes stood.
func behindQuotes(found, plain [][]int, place []int) (more [][]int) {
	for _, at := range plain {
		start, end := place[at[0]], place[at[1]-1]+1
		for len(found) > 0 && found[0][1] <= start {
			found = found[1:]
		}
		if len(found) == 0 || found[0][0] >= end {
			more = append(more, []int{start, end})
		}
	}
	return more
}

// shells are the programs that run what they are given through a pipe.
const shells = `(?:sudo\s+)?(?:[^\s;|&]*/)?(?:ba|z|da|k|fi|c)?sh\b|(?:sudo\s+)?(?:[^\s;|&]*/)?(?:python[0-9.]*|perl|ruby|node|php)\b`

// risks are hints for the eye and never a verdict: a command without any of them can do as much harm, and one with some
// can be what the person wants. Nothing is decided by them.
var risks = []risk{
	{regexp.MustCompile(`\brm\s+(?:[^\s;|&]+\s+)*?(?:-[a-zA-Z]*[rRf][a-zA-Z]*|--recursive|--force)\b`), "removes files without asking (rm -rf)", nil, []string{"rm"}, false},
	{regexp.MustCompile(`\bfind\b[^\n;|&]*\s-delete\b`), "removes files without asking (find -delete)", nil, []string{"find"}, false},
	{regexp.MustCompile(`\bfind\b[^\n;|&]*\s-(?:exec|execdir|ok|okdir)\s+(?:\S*/)?(?:rm|unlink|shred)\b`), "removes files without asking (find -exec rm)", nil, []string{"find"}, false},
	{regexp.MustCompile(`\bshred\b|\btruncate\s+(?:-s|--size)\b|\bmv\s+[^\n;|&]*\s/dev/null\b`), "destroys what is in files (shred, truncate)", nil, []string{"shred", "truncate", "mv"}, false},
	{regexp.MustCompile(`\b(?:nc|ncat|netcat)\b[^\n;|&]*\s(?:-[a-zA-Z]*[ec]\b|--exec\b|--sh-exec\b)`), "lets others run commands here (nc -e)", nil, []string{"nc", "netcat"}, false},
	{regexp.MustCompile(`\b(?:curl|wget)\b[^\n;|]*\|(?:[^\n;]*\|)?\s*(?:` + shells + `)`), "runs what it downloads (curl … | sh)", nil, []string{"curl", "wget"}, false},
	{regexp.MustCompile(`(?:` + shells + `|\beval|\bsource)\s[^\n;]*(?:<\(|\$\(|` + "`" + `)\s*(?:curl|wget)\b`), "runs what it downloads (curl … | sh)", nil, []string{"curl", "wget"}, false},
	{regexp.MustCompile(`\bbase64\s+(?:-d|-D|--decode)\b[^\n;]*\|\s*(?:` + shells + `)`), "runs what it decodes (base64 -d | sh)", nil, []string{"base64"}, false},
	{regexp.MustCompile(`\b(?:sudo|doas|pkexec)\b`), "runs as the administrator (sudo)", nil, []string{"sudo", "doas", "pkexec"}, false},
	{regexp.MustCompile(`\beval\b`), "runs a text that it puts together (eval)", nil, []string{"eval"}, false},
	{regexp.MustCompile(`\bchmod\s+(?:-\S+\s+)*(?:0?[0-7]?[0-7][0-7][2367]\b|[a-z]*[ao]?[a-z]*\+\S*w)`), "lets others change files (chmod 777)", func(s string) bool {
		mode := s[strings.LastIndexAny(s, " \t")+1:]
		who, _, symbolic := strings.Cut(mode, "+")
		return !symbolic || strings.ContainsAny(who, "ao")
	}, []string{"chmod"}, false},
	{regexp.MustCompile(`\bchmod\s+(?:-\S+\s+)*(?:0?[2-7][0-7]{3}\b|[ugoa,]*\+\w*s)`), "gives a program the rights of its owner (chmod +s)", nil, []string{"chmod"}, false},
	{regexp.MustCompile(`\b(?:curl|wget)\b[^\n;|&]*?\s(?:(?:-d|--data(?:-[a-z]+)?)[=\s]?\s*['"]?@[^\s'"]+|(?:-F|--form)[=\s]?\s*['"]?[^\s='"]*=[@<][^\s'"]+|(?:-T\s*|--upload-file[=\s]\s*|--post-file[=\s]\s*)[^\s-]\S*)`), "sends a file away (curl -d @…)", nil, []string{"curl", "wget"}, false},
	{regexp.MustCompile(`\b(?:docker|podman)\b[^\n;|&]*\s(?:(?:-v|--volume)[=\s]?\s*['"]?/:|--privileged\b|--mount[=\s][^\s]*(?:source|src)=/(?:,|\s|$))`), "gives a container all of this computer (docker -v /:…)", nil, []string{"docker", "podman"}, false},
	{regexp.MustCompile(`\bdd\b[^\n;|&]*\bof=\S*`), "writes over a file or a device (dd of=)", nil, []string{"dd"}, false},
	{regexp.MustCompile(`\bmkfs(?:\.\w+)?\b`), "formats a disk (mkfs)", nil, []string{"mkfs"}, false},
	{regexp.MustCompile(`>\s*/dev/\w[\w/.-]*`), "writes to a device (> /dev/…)", func(s string) bool {
		device := strings.TrimSpace(s[1:])
		return !slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"}, device) && !strings.HasPrefix(device, "/dev/fd/")
	}, []string{"/dev/"}, false},
	{regexp.MustCompile(`\bgit\s+(?:-\S+\s+\S+\s+){0,8}?push\b[^\n;|&]*(?:\s--force(?:-with-lease)?\b|\s-[a-zA-Z]*f\b|\s--mirror\b|\s--delete\b|\s\+\S+)`), "rewrites what others have (git push --force)", nil, []string{"git"}, false},
	{regexp.MustCompile(`\bgit\s+(?:-\S+\s+\S+\s+){0,8}?(?:reset\s+(?:[^\s;|&]+\s+){0,8}?--hard|clean\s+(?:[^\s;|&]+\s+){0,8}?-\w*f\w*|checkout\s+(?:--\s|\.(?:\s|$|[;|&]))|restore\s+\.)`), "throws changes away (git reset --hard)", nil, []string{"git"}, false},
	{regexp.MustCompile(`\.ssh/[^\s'"]*|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\bauthorized_keys\b`), "has to do with SSH keys", nil, []string{".ssh/", "id_", "authorized_keys"}, true},
	{regexp.MustCompile(`(?:^|[\s/'"=<>])\.env(?:\.[\w-]+)?(?:$|[\s'";|&)])`), "has to do with a file of secrets (.env)", nil, []string{".env"}, true},
	{regexp.MustCompile(`\.aws/credentials|\.netrc\b|\.npmrc\b|\.pypirc\b|\.kube/config\b|\.docker/config\.json|\.git-credentials\b|\.gnupg\b|/etc/shadow\b`), "has to do with stored credentials", nil, []string{".aws", ".netrc", ".npmrc", ".pypirc", ".kube", ".docker", ".git-credentials", ".gnupg", "/etc/shadow"}, true},
	{regexp.MustCompile(`:\s*\(\s*\)\s*\{[^}]*:\s*\|\s*:`), "starts itself again and again", nil, []string{"("}, false},
	{regexp.MustCompile(`\bcrontab\b|\bsystemctl\s+(?:[^\s;|&]+\s+){0,8}?(?:enable|start)\b|(?:\.bashrc|\.zshrc|\.profile|\.bash_profile)\b|\.git/(?:hooks/[^\s'"]*|config\b)|/etc/cron[\w./-]*|\bsystemd/(?:system|user)/|\.config/autostart/|\.claude/settings[\w.]*\.json\b`), "has to do with what runs later by itself", nil, []string{"cron", "systemctl", "rc", ".profile", ".bash_profile", ".git/", "systemd/", "autostart/", ".claude/"}, true},
}

// writes are where a command's output goes, or tee's.
var writes = regexp.MustCompile(`(?:>{1,2}\||>{1,2}|\btee\s+(?:-\S+\s+)*)\s*['"]?((?:/|~|\.\.)[^\s'";|&()<>]*)`)

// moves are where files are copied or moved to.
var moves = regexp.MustCompile(`(?m)\b(?:cp|mv|install|rsync)\s[^\n;|&<>]*\s['"]?((?:/|~|\.\.)[^\s'";|&()<>]*)['"]?\s*(?:$|[;|&<>])`)

// bare is a command without the quotes and backslashes that a shell takes off, and where each of its bytes stood. A
// last entry is the end.
func bare(s string) (string, []int) {
	out := make([]byte, 0, len(s))
	at := make([]int, 0, len(s)+1)
	for i := range len(s) {
		if s[i] == '\n' && i > 0 && s[i-1] == '\\' { // the line goes on
			out, at = out[:len(out)-1], at[:len(at)-1]
			continue
		}
		letter := i+1 < len(s) && (s[i+1]|0x20 >= 'a' && s[i+1]|0x20 <= 'z' || s[i+1] == '-')
		if s[i] == '\'' || s[i] == '"' || s[i] == '\\' && letter {
			continue
		}
		out, at = append(out, s[i]), append(at, i)
	}
	return string(out), append(at, len(s))
}

// The bounds of a command as it is shown and looked at, in bytes.
const (
	MaxCommand = 32 << 10
	maxLooked  = 256 << 10
	longLine   = 500
	maxMarked  = 100 // stretches that are marked for one reason; the sentences come all the same
)

const disguised = "holds characters that do not show as what they are"

// hidden is what is added to a reason that is not in what is shown.
const hidden = ", in what is not shown here"

// Command is VisibleLines for a shell command, in which what deserves a second look carries its reason, with the
// reasons in one list, each once. They are hints and no verdict. outside says of a path that it leads out of where the
// command works; nil: that is not known. Of a command longer than MaxCommand the beginning is shown. The rest is looked at
// too, up to maxLooked: the list says so, and what is only there.
func Command(whole string, outside func(path string) bool) ([]Span, []string) {
	reasons := []string{}
	note := func(says string) {
		if !slices.Contains(reasons, says) {
			reasons = append(reasons, says)
		}
	}
	s, left := Cut(whole, MaxCommand)
	whole, unread := Cut(whole, maxLooked)
	var found []stretch
	marked := map[string]int{}
	add := func(start, end int, says string) {
		if start >= len(s) {
			note(says + hidden)
			return
		}
		note(says)
		if marked[says]++; marked[says] <= maxMarked {
			found = append(found, stretch{start, end, says})
		}
	}
	plain, place := bare(whole)
	for _, r := range risks {
		if !r.possible(plain) {
			continue
		}
		here := r.find(whole, len(s))
		if len(plain) != len(whole) {
			inPlain, _ := slices.BinarySearch(place, len(s))
			here = append(here, behindQuotes(here, r.find(plain, inPlain), place)...)
		}
		for _, at := range here {
			add(at[0], at[1], r.says)
		}
	}
	if outside != nil {
		for _, where := range []*regexp.Regexp{writes, moves} {
			for _, at := range where.FindAllStringSubmatchIndex(whole, -1) {
				if path := whole[at[2]:at[3]]; !strings.HasPrefix(path, "/dev/") && outside(path) {
					add(at[2], at[3], "writes outside the folder it works in")
				}
			}
		}
	}
	marks := findMarks(s, true)
	if len(marks) > 0 {
		note(disguised)
	}
	if len(findMarks(whole[len(s):], true)) > 0 {
		note(disguised + hidden)
	}
	for line := range strings.Lines(whole) {
		if n := utf8.RuneCountInString(line); n > longLine {
			note(fmt.Sprintf("has a line of %d characters", n))
			break
		}
	}
	if left > 0 {
		note(fmt.Sprintf("is too long to show whole: %d bytes are left out", left))
	}
	if unread > 0 {
		note(fmt.Sprintf("is so long that its last %d bytes were not looked through", unread))
	}
	return risky(spans(s, marks), marks, found), reasons
}

// FileRisks are what deserves a second look about a file, by its path. They are hints and no verdict.
func FileRisks(path string) []string {
	path = strings.ToLower(slashes.Clean(strings.ReplaceAll(path, `\`, "/"))) // as systems that take no notice of case read it
	var reasons []string
	for _, r := range risks {
		if r.file && r.possible(path) && r.pattern.MatchString(path) {
			reasons = append(reasons, r.says)
		}
	}
	return reasons
}

// stretch is a part of a text, in bytes, and what is to be said of it.
type stretch struct {
	start, end int
	says       string
}

// risky splits the spans of a text where stretches begin and end. The first reason of a place is the one it carries.
func risky(plain []Span, marks []mark, found []stretch) []Span {
	if len(found) == 0 {
		return plain
	}
	out := make([]Span, 0, len(plain)+2*len(found))
	pos := 0
	for _, span := range plain {
		if span.M != "" { // stands for the text of the next mark
			span.R = reasonAt(found, marks[0].start)
			out = append(out, span)
			pos, marks = marks[0].end, marks[1:]
			continue
		}
		end := pos + len(span.T)
		cuts := []int{pos, end}
		for _, f := range found {
			for _, at := range []int{f.start, f.end} {
				if at > pos && at < end {
					cuts = append(cuts, at)
				}
			}
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i, start := range cuts[:len(cuts)-1] {
			next := Span{T: span.T[start-pos : cuts[i+1]-pos], R: reasonAt(found, start)}
			if last := len(out) - 1; last >= 0 && out[last].M == "" && out[last].R == next.R && i > 0 {
				out[last].T += next.T
			} else {
				out = append(out, next)
			}
		}
		pos = end
	}
	return out
}

func reasonAt(found []stretch, pos int) string {
	for _, f := range found {
		if f.start <= pos && pos < f.end {
			return f.says
		}
	}
	return ""
}

// Cut is the beginning of a text, at most max bytes and never within a character, and how many bytes were left out.
func Cut(s string, max int) (string, int) {
	short := brief.Cut(s, max)
	return short, len(s) - len(short)
}
