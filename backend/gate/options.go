package gate

import (
	"path"
	"slices"
	"strings"
)

// The options with which a program that only looks, builds or tests writes a file or runs another one. They are compared
// in both directions, since many programs take the beginning of an option for the option: --outp is --output.
var riskyOptions = []string{
	"output", "exec", "execdir", "ok", "okdir", "delete", "ext-diff", "extcmd", "textconv", "upload-pack", "receive-pack", "config",
	"eval", "require", "import", "preload", "loader", "plugin", "init-file", "rcfile", "command", "open-files-in-pager", "pager", "editor", "rsh",
	"proxy-command", "to-command", "checkpoint-action", "use-compress-program", "in-place", "fix", "write", "dump-header",
	"remote-name", "cookie-jar", "upload-file", "post-file", "target-dir", "prefix", "fprint", "fls", "print", "script", "run", "hook", "pre",
}

// goOptions are those of the go command and of what it builds for a test, which have one dash and are compared whole.
var goOptions = []string{
	"o", "C", "c", "exec", "toolexec", "vettool", "ldflags", "gcflags", "asmflags", "gccgoflags", "overlay", "modfile", "pkgdir", "args",
	"outputdir", "coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace", "w", "fix", "testlogfile", "gocoverdir",
	"D", "e", "eval", "config", "require", "import", "delete", "output",
}

// riskyLetters are options of one letter that write or run in some program; riskyOf are those of one program besides.
const riskyLetters = "oOceD"

var riskyOf = map[string]string{
	"git": "ux", "curl": "KTdF", "wget": "iaP", "sed": "iw", "perl": "i", "ruby": "ir", "node": "rp", "tar": "FI", "fd": "xX", "make": "fCE", "cargo": "C",
}

// writesOrRuns says whether the further words of a command, after the first ones that a rule names, may make it write
// somewhere or run something else. In doubt they may.
func writesOrRuns(words []string, further []string) bool {
	program := path.Base(words[0])
	return slices.ContainsFunc(further, func(w string) bool {
		if !strings.HasPrefix(w, "-") {
			// A shell makes more words of *, ? and braces, and one of them may begin with a dash.
			return w != "" && strings.ContainsAny(w[:1], "*?[{") || w != "." && startsAny([]string{w, ""}) || path.Base(w) == "tee" || path.Base(w) == "dd" || w == "foreach"
		}
		if strings.ContainsAny(w, "*?[{") {
			return true
		}
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case name == "": // - and --
			return false
		case program == "go":
			return slices.Contains(goOptions, strings.TrimPrefix(name, "test."))
		case strings.HasPrefix(w, "--"):
			return slices.ContainsFunc(riskyOptions, func(o string) bool { return strings.HasPrefix(o, name) || strings.HasPrefix(name, o) })
		case program == "find":
			return slices.ContainsFunc([]string{"exec", "ok", "delete", "fprint", "fls", "files0-from"}, func(o string) bool { return strings.HasPrefix(name, o) })
		}
		return strings.ContainsAny(name, riskyLetters+riskyOf[program]) // letters may stand together: -so FILE
	})
}
