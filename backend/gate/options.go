package gate

import (
	"path"
	"slices"
	"strings"
)

// The options that only change what a program prints, or how much of it: the further words of a command that a rule
// allows may hold these and no others. Most programs have an option that loads, runs or writes something under a name
// that nobody thought of, so no list of the risky ones is ever whole; this one may be short.
var (
	// printing are those of any program.
	printing = []string{"help", "version", "verbose", "quiet", "silent", "color", "no-color"}

	// printingOf are those of one program, or of one of its subcommands, by the words that a rule begins with.
	printingOf = map[string]options{
		"cargo build": {"qv", "release workspace locked offline"},
		"cargo check": {"qv", "release workspace locked offline"},
		"cargo test":  {"qv", "release workspace locked offline no-fail-fast nocapture lib"},
		"cat":         {"AbEnsTv", ""},
		"curl":        {"fiIsSv", ""},
		"df":          {"hT", ""},
		"docker ps":   {"aq", "all"},
		"du":          {"achsd", "max-depth"},
		"grep":        {"ABCEFGHILRacehilmnoqrsvwx", "include exclude exclude-dir line-number ignore-case count max-count"},
		"head":        {"cnqv", "lines bytes"},
		"kubectl get": {"Alnow", "namespace all-namespaces selector watch"},
		"ls":          {"1AFRSadhilrst", "all human-readable"},
		"make":        {"jkns", "jobs keep-going dry-run"},
		"npm run":     {"s", ""},
		"npm test":    {"s", ""},
		"pytest":      {"klqsvx", "maxfail durations tb lf ff exitfirst"},
		"rg":          {"ABCFSTcegilnostvwx", "glob type line-number ignore-case count max-count files-with-matches"},
		"tail":        {"cfnq", "lines bytes follow"},
		"tree":        {"Lad", ""},
		"tsc":         {"", "noEmit"},
		"wc":          {"Lclmw", "lines words"},
	}

	// looking are the subcommands of git that only look, and lookingOptions what may follow them.
	looking        = []string{"blame", "describe", "diff", "log", "ls-files", "rev-parse", "shortlog", "show", "status"}
	lookingOptions = options{"bginpswz", "oneline stat shortstat numstat graph all branches tags decorate format pretty abbrev-commit author since until after before grep " +
		"max-count patch name-only name-status cached staged short branch porcelain follow first-parent merges no-merges no-pager word-diff date reverse unified no-patch"}

	// wholeOf are the options with one dash and a name, which are compared whole.
	wholeOf = map[string]string{
		"find":     "name iname path ipath type maxdepth mindepth size empty mtime mmin newer not and or a o print prune",
		"go build": "v x race",
		"go list":  "f json m deps test v",
		"go test":  "bench benchmem count cover cpu failfast json list parallel race run short shuffle skip timeout v x",
		"go vet":   "v x json",
	}
)

// options are letters that may stand together behind one dash, and names behind two, with blanks between.
type options struct{ letters, names string }

// onlyPrints says whether a further word that begins with a dash only changes what the command prints.
func onlyPrints(words []string, w string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
	if name == "" || strings.Trim(name, "0123456789") == "" { // -, -- and numbers
		return true
	}
	program := path.Base(words[0])
	of, whole := printingOf[program], wholeOf[program]
	if len(words) > 1 {
		if sub := program + " " + words[1]; program == "git" && slices.Contains(looking, words[1]) {
			of = lookingOptions
		} else if list, ok := printingOf[sub]; ok {
			of = list
		} else if list, ok := wholeOf[sub]; ok {
			whole = list
		}
	}
	switch {
	case whole != "" && slices.Contains(strings.Fields(whole), name):
		return true
	case strings.HasPrefix(w, "--"):
		return slices.Contains(printing, name) || slices.Contains(strings.Fields(of.names), name)
	}
	return strings.Trim(w[1:], of.letters+"0123456789") == ""
}

// writesOrRuns says whether the further words of a command, after the first ones that a rule names, may make it write
// somewhere, or load or run something else. In doubt they may.
func writesOrRuns(words []string, further []string) bool {
	// What sed is told to do is its first word that is no option, and may write and run (w, e).
	if path.Base(words[0]) == "sed" && len(further) > 0 && !slices.ContainsFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		return true
	}
	return slices.ContainsFunc(further, func(w string) bool {
		switch {
		case w == "":
			return false
		case w[0] == '-':
			return strings.ContainsAny(w, "*?[{") || !onlyPrints(words, w)
		case strings.ContainsAny(w[:1], "*?[{"): // a shell makes more words of these, and one of them may begin with a dash
			return true
		case w[0] == '@', w[0] == '+', sets(w): // options out of a file, options of their own kind, and variables of make
			return true
		}
		base := path.Base(w)
		return w != "." && startsAny([]string{w, ""}) || base == "tee" || base == "dd" || w == "foreach"
	})
}

// sets says whether a program may take a word for the setting of a variable, as make does of many forms (`A:=x`, `A$(x:)=x`).
// An address is none.
func sets(word string) bool {
	address := strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
	return strings.Contains(word, "=") && (!address || strings.Contains(word, "$"))
}
