package gate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"deskbell/backend/inbox"
)

var here = Place{Location: time.UTC, Home: "/home/me"}

// thursday is a Thursday, at 14:20.
var thursday = time.Date(2026, 9, 17, 14, 20, 0, 0, time.UTC)

func call(tool string, arguments any) Subject {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return Subject{Protocol: "acs", Agent: "acs/claude-code/claude-code:0a1b2c3d", At: thursday,
		Call: inbox.Call{Tool: tool, Arguments: raw, Platform: "claude-code", Folder: "/w/shop", Session: "s1", Request: "r1"}}
}

// A rule has a program to compare, and no empty word; of one that was kept from before, no call goes wrong.
func TestCommandsWithoutAProgram(t *testing.T) {
	for _, value := range []string{"./scripts/", "/opt/tools/", `a\`, ".exe", "git commit ''"} {
		m := Match{Arguments: []Argument{{Name: "command", Op: Command, Value: value}}}
		if len(m.Check("")) == 0 {
			t.Errorf("%q is taken", value)
		}
		for _, command := range []string{"sudo apt", "A=b c", "git commit -m", "ls", value} {
			raw, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			s := Subject{Protocol: "acs", Call: inbox.Call{Tool: "Bash", Folder: "/w", Arguments: raw}}
			denies := Rule{Verdict: Deny, Match: m}.Matches(s, here)
			if denies && command != value {
				t.Errorf("%q denies %q", value, command)
			}
		}
	}
}

// What is allowed is allowed to the tool and in the folder that are named, byte for byte; what holds what is not seen is
// nobody's but the person's, and is denied by what it passes for.
func TestARuleJudgesTheRawToolAndFolder(t *testing.T) {
	for _, c := range []struct{ tool, folder string }{
		{" read", "/w/a b"}, {"read ", "/w/a b"}, {"\tread", "/w/a b"}, {"read\n", "/w/a b"}, {"\u2028read", "/w/a b"}, {"read\x00", "/w/a b"}, {"\x1b[1mread\x1b[0m", "/w/a b"}, {"read\x1b]0;x\a", "/w/a b"},
		{"read", "/w/a  b"}, {"read", "/w/a\nb"}, {"read", "/w/a b "}, {"read", "/w/a b\x01"},
	} {
		s := call(c.tool, map[string]any{})
		s.Call.Folder = c.folder
		if (Match{Tool: "read", Folder: "/w/a b"}).Matches(s, here) {
			t.Errorf("%q in %q is allowed", c.tool, c.folder)
		}
	}
	for tool, want := range map[string]Verdict{"read": Allow, "read\x00": Deny, "re\nad": Deny, "write\x00": Ask, "write": Allow} {
		rules := []Rule{{ID: "d", Verdict: Deny, Match: Match{Tool: "read"}}, {ID: "a", Verdict: Allow}}
		if tool == "read" {
			rules = rules[1:]
		}
		if got := judge(rules, call(tool, map[string]any{}), here).Verdict; got != want {
			t.Errorf("%q: %s, want %s", tool, got, want)
		}
	}
	s := call("write", map[string]any{})
	s.Call.Folder = "/w/a\nb"
	if got := judge([]Rule{{ID: "a", Verdict: Allow}}, s, here).Verdict; got != Ask {
		t.Errorf("in a folder that is not seen as it is: %s", got)
	}
	if got := Offers(s, here); got != nil {
		t.Errorf("%v", got)
	}
}

func TestMatchesByWhatACallIs(t *testing.T) {
	s := call("mcp__git__push", map[string]any{})
	for _, c := range []struct {
		what string
		m    Match
		want bool
	}{
		{"nothing asked for", Match{}, true},
		{"the protocol", Match{Protocol: "acs"}, true},
		{"another protocol", Match{Protocol: "pi"}, false},
		{"the platform", Match{Platform: "claude-code"}, true},
		{"another platform", Match{Platform: "claude"}, false},
		{"the agent by pattern", Match{Agent: "acs/claude-code/*"}, true},
		{"another agent", Match{Agent: "acs/codex/*"}, false},
		{"the tool by pattern", Match{Tool: "mcp__*"}, true},
		{"a pattern's two ends that overlap", Match{Tool: "mcp__git__p*push"}, false},
		{"the tool in another case", Match{Tool: "MCP__git__push"}, false},
		{"the session", Match{Session: "s1"}, true},
		{"another session", Match{Session: "s"}, false},
		{"the folder", Match{Folder: "/w/shop"}, true},
		{"a folder above", Match{Folder: "/w"}, true},
		{"the root", Match{Folder: "/"}, true},
		{"a folder whose name begins alike", Match{Folder: "/w/sho"}, false},
		{"a folder below", Match{Folder: "/w/shop/src"}, false},
		{"all of it", Match{Protocol: "acs", Platform: "claude-code", Agent: "acs/*", Folder: "/w", Session: "s1", Tool: "mcp__git__push"}, true},
		{"all but one", Match{Protocol: "acs", Platform: "claude-code", Agent: "acs/*", Folder: "/w", Session: "s2", Tool: "mcp__git__push"}, false},
	} {
		if got := c.m.Matches(s, here); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	s.Call.Addressee = "acp/w"
	for addressee, want := range map[string]bool{"": true, "acp/w": true, "acp/v": false, "acp/*": false} {
		if got := (Match{Addressee: addressee}).Matches(s, here); got != want {
			t.Errorf("for %q: %v", addressee, got)
		}
	}
	// A call that does not say its program is allowed by no rule for one, and in doubt for one that denies over its protocol.
	s.Call.Platform = ""
	for _, c := range []struct {
		m       Match
		touches bool
	}{{Match{Protocol: "acs", Platform: "codex"}, true}, {Match{Protocol: "pi", Platform: "codex"}, false}, {Match{Platform: "codex"}, false}} {
		if c.m.Matches(s, here) || (Rule{Verdict: Deny, Match: c.m}).Matches(s, here) || (Rule{Verdict: Deny, Match: c.m}).touches(s, here) != c.touches || (Rule{Verdict: Allow, Match: c.m}).touches(s, here) {
			t.Errorf("%+v of a call that names no program", c.m)
		}
	}
	s.Call.Folder = ""
	if (Match{Folder: "/"}).Matches(s, here) {
		t.Error("a call that names no folder is in one")
	}
	// One that is too long to compare is in none, whatever it begins with, and nothing is relative to it.
	s = call("Read", map[string]any{"path": "a"})
	s.Call.Folder = "/w/shop/" + strings.Repeat("a", maxText)
	if (Match{Folder: "/w"}).Matches(s, here) || (Match{Arguments: []Argument{{"path", Within, "/w"}}}).Matches(s, here) {
		t.Error("a folder that is too long was compared")
	}
	for _, o := range Offers(s, here) {
		if o.Scope == Always {
			t.Errorf("%s is offered", o.Match)
		}
	}
}

func TestMatchesByArguments(t *testing.T) {
	for _, c := range []struct {
		what  string
		op    Op
		value string
		is    any
		want  bool
	}{
		{"the text", Is, "a b", "a b", true},
		{"more text", Is, "a b", "a b ", false},
		{"a number", Is, "1", 1.0, true},
		{"a number written otherwise", Is, "1e0", 1, true},
		{"a long number", Is, "9007199254740992", json.Number("9007199254740992"), true},
		{"a long number and its neighbour", Is, "9007199254740992", json.Number("9007199254740993"), false},
		{"a long number deep down", Is, `{"a":[9007199254740992]}`, map[string]any{"a": []any{json.Number("9007199254740993")}}, false},
		{"a long number written otherwise", Is, "900719925474099300e-2", json.Number("9007199254740993.0"), true},
		{"a small number and its neighbour", Is, "0.1", json.Number("0.10000000000000000001"), false},
		{"a small number written otherwise", Is, "0.10", json.Number("1E-1"), true},
		{"zeros", Is, "-0", json.Number("0.0e99"), true},
		{"a number and its negative", Is, "-1", 1, false},
		{"numbers that round to nothing", Is, "1e-9999999999999999999", json.Number("2e-9999999999999999999"), false},
		{"numbers too small to tell", Is, "1e-20000", json.Number("1e-30000"), false},
		{"a text that reads like a number", Is, "1", "1", true},
		{"an object in another order", Is, `{"b":[1],"a":null}`, map[string]any{"a": nil, "b": []int{1}}, true},
		{"an object that is more", Is, `{"a":null}`, map[string]any{"a": nil, "b": 1}, false},
		{"no JSON", Is, `{`, 1, false},
		{"nothing", Is, "", nil, false},
		{"a pattern", Like, "git *", "git push", true},
		{"a pattern over lines", Like, "a*z", "a\nz", true},
		{"a pattern of stars", Like, "**a**", "xax", true},
		{"a pattern in order", Like, "*a*b*", "b a", false},
		{"a pattern over what is no text", Like, "*", 1, false},
		{"a plain pattern", Like, "git", "git push", false},

		{"a file below", Within, "/w/shop", "/w/shop/src/a.go", true},
		{"a relative file", Within, "/w/shop", "src/a.go", true},
		{"a relative folder", Within, "src", "/w/shop/src/a.go", true},
		{"up and out", Within, "/w/shop", "../other/a.go", false},
		{"down and up and out", Within, "/w/shop", "/w/shop/src/../../other", false},
		{"up and in", Within, "/w/shop", "/w/other/../shop/a", true},
		{"doubled slashes", Within, "/w/shop", "/w//shop/./a", true},
		{"home", Within, "~/.ssh", "/home/me/.ssh/id", true},
		{"home in the path", Within, "/home/me", "~/a", true},
		{"another's home", Within, "/", "~root/a", false},
		{"a name that begins alike", Within, "/w/shop", "/w/shopping", false},
		{"a null in a path", Within, "/w/shop", "/w/shop/a\x00", false},
		{"no path", Within, "/w/shop", "", false},
		{"a drive", Within, `C:\proj`, `c:/proj/a`, true},
		{"another drive", Within, `C:\work`, `D:\work\a`, false},
		{"a drive without a slash", Within, "/w/shop", `C:x`, false},
		{"a drive's file with a stream", Within, `C:\work`, `C:\work\a:b`, false},
		{"a drive's name that is trimmed", Within, `C:\work`, `C:\work\.. \a`, false},
		{"a space at the end", Within, "/w/shop", "/w/shop/a ", false},
		{"a space at the beginning", Within, "/w/shop", " a", false},
		{"a space within", Within, "/w/shop", "a b", true},
		{"a line break at the end", Within, "/w/shop", "a\n", false},
		{"an @, which pi takes off", Within, "/w/shop", "@/etc/passwd", false},
		{"an @ before a way up", Within, "/w/shop", "@../x", false},
		{"an @ later", Within, "/w/shop", "node_modules/@x/a", true},
		{"a file's address", Within, "/w/shop", "file:/etc/passwd", false},
		{"another address", Within, "/w/shop", "vscode-remote://x/etc/passwd", false},
		{"a colon later", Within, "/w/shop", "src/a:b", true},
		{"a variable", Within, "/w/shop", "$HOME/x", false},
		{"a variable of Windows", Within, "/w/shop", "%TEMP%/x", false},
		{"braces", Within, "/w/shop", "{a,../../x}", false},
		{"a character that does not show", Within, "/w/shop", "a\u200b", false},
		{"a change of direction", Within, "/w/shop", "a\u202e", false},
		{"a device", Within, "/w/shop", "src/NUL", false},
		{"a device with an ending", Within, "/w/shop", "con.txt", false},
		{"a port", Within, "/w/shop", "COM1", false},
		{"a name that begins like a device", Within, "/w/shop", "console.txt", true},
		{"a path that is too long", Within, "/w/shop", "/w/shop/" + strings.Repeat("a", maxText), false},
		{"a rule's path in doubt", Within, "/w/$X", "/w/$X/a", false},
		{"backslashes under a root of slashes", Within, "/w/shop", `..\other`, false},

		{"the host", Host, "example.com", "https://example.com/a?b#c", true},
		{"the host in capitals", Host, "example.com", "https://EXAMPLE.com", true},
		{"the host with its dot", Host, "example.com", "https://example.com./", true},
		{"the usual port", Host, "example.com", "http://example.com:80/", true},
		{"another port", Host, "example.com", "https://example.com:8443/", false},
		{"that port", Host, "example.com:8443", "https://example.com:8443/", true},
		{"a user before it", Host, "example.com", "https://example.com@evil.example/", false},
		{"a user of it", Host, "example.com", "https://me@example.com/", false},
		{"a backslash", Host, "example.com", `https://example.com\@evil.example/`, false},
		{"a host below", Host, "example.com", "https://a.example.com/", false},
		{"any host below", Host, "*.example.com", "https://a.b.example.com/", true},
		{"any host below is not it", Host, "*.example.com", "https://example.com/", false},
		{"a host that ends alike", Host, "*.example.com", "https://badexample.com/", false},
		{"a name in its own script", Host, "bücher.example", "https://xn--bcher-kva.example/", true},
		{"a name in ASCII", Host, "xn--bcher-kva.example", "https://BÜCHER.example/", true},
		{"a name that reads alike", Host, "paypal.com", "https://p\u0430ypal.com/", false},
		{"an address", Host, "[::1]:8080", "http://[::1]:8080/", true},
		{"another scheme", Host, "example.com", "ftp://example.com/", false},
		{"no scheme", Host, "example.com", "//example.com/", false},
		{"a space before", Host, "example.com", " https://example.com/", false},
		{"a scheme alone", Host, "example.com", "https:example.com", false},
	} {
		s := call("T", map[string]any{"x": c.is})
		m := Match{Arguments: []Argument{{Name: "x", Op: c.op, Value: c.value}}}
		if got := m.Matches(s, here); got != c.want {
			t.Errorf("%s: %s %q of %#v is %v, want %v", c.what, c.op, c.value, c.is, got, c.want)
		}
		if m.Arguments[0].Name = "y"; m.Matches(s, here) {
			t.Errorf("%s: an argument that is absent matches", c.what)
		}
	}
	for _, arguments := range []string{"", "null", "[]", `"x"`, `{"x":`, `{"x":1,"x":2`} {
		s := call("T", nil)
		s.Call.Arguments = json.RawMessage(arguments)
		if (Match{Arguments: []Argument{{Name: "x", Op: Like, Value: "*"}}}).Matches(s, here) {
			t.Errorf("arguments %q match", arguments)
		}
	}
}

func TestACommandBeginsWithItsWordsAndStartsNothingElse(t *testing.T) {
	for _, c := range []struct {
		command any
		want    bool
	}{
		{"git status", true},
		{"git status -s", true},
		{"  git\tstatus  --short", true},
		{`"git" 'status'`, true},
		{"gi't' status", true},
		{"git status src/*.go", true},
		{"git status --format=%h", true},
		{`git status -- 'a; rm -rf /'`, true}, // in quotes it is a name
		{`git status -- "a | b"`, true},
		{[]string{"git", "status", "a; b"}, true}, // no shell reads it
		{[]string{"bash", "-lc", "git status"}, true},
		{[]string{"/usr/bin/zsh", "-c", "git status"}, true},

		{[]string{"fish", "-c", "git status"}, false},
		{[]string{"pwsh", "-c", "git status"}, false},
		{[]string{"cmd.exe", "-c", "git status"}, false},
		{[]string{`C:\Tools\fish.exe`, "-c", "git status"}, false},
		{[]string{"/tmp/bash", "-c", "git status"}, false},
		{[]string{"./sh", "-c", "git status"}, false},
		{"git status *.go", false}, // a file may be named --output=x.go
		{"git status {--output=/x,a}", false},
		{"git status --out{put=/x,}", false},
		{"git", false},
		{"git statusx", false},
		{"git 'status -s'", false},
		{"gitstatus", false},
		{"sudo git status", false},
		{"GIT_DIR=/x git status", false},
		{"git status; rm -rf /", false},
		{"git status && rm a", false},
		{"git status & rm a", false},
		{"git status | sh", false},
		{"git status\nrm a", false},
		{"git status\rrm a", false},
		{"git status > /etc/passwd", false},
		{"git status < a", false},
		{"git status $(rm a)", false},
		{"git status `rm a`", false},
		{`git status "$(rm a)"`, false},
		{"git status \"`rm a`\"", false},
		{"git status $X", false},
		{"git status ${X@P}", false},
		{`git status \; rm`, false},
		{`git status 'a'\''; rm'`, false},
		{"git status (a)", false},
		{"git status # a", false},
		{"git status !rm", false},
		{"git status 'a", false},
		{"git status a\u2028rm", false},
		{"git status a\u202erm", false},
		{"git status '\u2714\ufe0f' a\u00a0b", true}, // letters like others
		{"git status \xff", false},
		{"g*t status", false},
		{"", false},
		{1, false},
		{[]any{"git", 1}, false},
		{[]string{}, false},
		{[]string{"bash", "-c", "git status; rm a"}, false},
		{[]string{"bash", "git", "status"}, false},
		{[]string{"bash", "-c", "git status", "x", "y"}, false},
	} {
		s := call("Bash", map[string]any{"command": c.command})
		m := Match{Arguments: []Argument{{Name: "command", Op: Command, Value: "git status"}}}
		if text, ok := c.command.(string); ok && text == "git status \xff" { // JSON's own writer would mend it
			s.Call.Arguments = []byte("{\"command\":\"git status \xff\"}")
		}
		if got := m.Matches(s, here); got != c.want {
			t.Errorf("%q: %v, want %v", c.command, got, c.want)
		}
		// Where the shell is not known to be a POSIX one, no quote makes anything literal.
		if s.Call.Folder = `C:\w`; !c.want && m.Matches(s, here) {
			t.Errorf("%q matches on Windows", c.command)
		}
	}
	for _, command := range []string{"git status 'a & calc'", "git status %COMSPEC%", `git status "%X%"`} {
		s := call("Bash", map[string]any{"command": command})
		for folder, want := range map[string]bool{"/w": true, `C:\w`: false, "": false} {
			m := Match{Arguments: []Argument{{Name: "command", Op: Command, Value: "git status"}}}
			if s.Call.Folder = folder; m.Matches(s, here) != want {
				t.Errorf("%s in folder %q: %v, want %v", command, folder, !want, want)
			}
		}
	}
}

// A rule that allows the first words of a command allows no option with which it writes or runs something else; one that
// denies them denies those all the more.
func TestTheFirstWordsAllowNoOptionThatWritesOrRuns(t *testing.T) {
	for _, c := range []struct {
		prefix, command string
		want            bool
	}{
		{"git log", "git log -3 --oneline --stat -- src", true},
		{"git log", "git log --output=/home/me/.bashrc --format=x", false},
		{"git log", "git log --outp=/x", false},
		{"git diff", "git diff --no-index --output=F a b", false},
		{"git diff", "git diff --ext-diff", false},
		{"git", "git -c core.pager=evil log", false},
		{"git", "git --exec-path=/tmp log", false},
		{"git fetch", "git fetch --upload-pack=/tmp/evil", false},
		{"git fetch", "git fetch '--upload-pack=/tmp/evil'", false},
		{"git push", "git push --receive-pack=/tmp/evil", false},
		{"git submodule", "git submodule foreach evil", false},
		{"git -c a=b log", "git -c a=b log -3", true}, // the person typed it
		{"go list", "go list -toolexec /tmp/evil ./...", false},
		{"go list", "go list --toolexec=/tmp/evil", false},
		{"go vet", "go vet -vettool=/tmp/evil", false},
		{"go test", "go test -race -count=1 -run X ./...", true},
		{"go test", "go test -exec /tmp/evil .", false},
		{"go test", "go test -test.cpuprofile=x .", false},
		{"go build", "go build -o /usr/bin/git .", false},
		{"curl", "curl https://a.example", true},
		{"curl", "curl -so /etc/x https://a.example", false},
		{"find", "find . -name x -type f", true},
		{"find", "find . -delete", false},
		{"find", "find . -execdir evil", false},
		{"find", "find . -okdir evil", false},
		{"node", "node -e 1", false},
		{"node", "node --require ./evil.js", false},
		{"node", "node --import=./evil.mjs", false},
		{"python", "python -c evil", false},
		{"make", "make --eval=x", false},
		{"cat", "cat a xargs", false},
		{"time", "time tee /etc/x", false},
		{"ls", "ls -la .", true},

		// An option that nobody listed asks, in every spelling.
		{"npm test", "npm test", true},
		{"npm test", "npm test -s", true},
		{"npm test", "npm test --silent src", true},
		{"npm test", "npm test -C /tmp/evil", false},
		{"npm test", "npm test -C=/tmp/evil", false},
		{"npm test", "npm test -sC /tmp/evil", false},
		{"npm test", "npm test '-C' /tmp/evil", false},
		{"npm test", "npm test --prefix=/tmp/evil", false},
		{"npm test", "npm test --pref /tmp/evil", false},
		{"npm test", "npm test --node-options=--require=/tmp/x.js", false},
		{"npm test", "npm test --userconfig=/tmp/rc", false},
		{"npm test", "npm test --globalconfig /tmp/rc", false},
		{"npm test", "npm test --script-shell=/tmp/x", false},
		{"npm test", "npm test -- --require=/tmp/x.js", false},
		{"npm run build", "npm run build -C /tmp/evil", false},
		{"npm test -- --run", "npm test -- --run src", true}, // the person typed it
		{"pnpm test", "pnpm test -C /tmp/evil", false},
		{"pnpm test", "pnpm test --dir /tmp/evil", false},
		{"yarn test", "yarn test --cwd /tmp/evil", false},
		{"yarn test", "yarn test --use-yarnrc /tmp/evil", false},
		{"pytest", "pytest -qk name tests", true},
		{"pytest", "pytest -p evil", false},
		{"pytest", "pytest -qpevil", false},
		{"pytest", "pytest --rootdir=/tmp/evil", false},
		{"pytest", "pytest @/tmp/options", false},
		{"python -m pytest", "python -m pytest --confcutdir=/tmp", false},
		{"bundle exec rspec", "bundle exec rspec -r /tmp/evil", false},
		{"man", "man -P /tmp/evil ls", false},
		{"man", "man -H/tmp/evil ls", false},
		{"gradle test", "gradle test -I /tmp/evil.gradle", false},
		{"gradle test", "gradle test -b /tmp/evil", false},
		{"gradle test", "gradle test -p /tmp/evil", false},
		{"mvn test", "mvn test -f /tmp/evil", false},
		{"cargo test", "cargo test -q --release", true},
		{"cargo test", "cargo test --manifest-path /tmp/evil/Cargo.toml", false},
		{"phpunit", "phpunit --bootstrap /tmp/evil", false},
		{"jest", "jest --globalSetup=/tmp/x", false},
		{"sed -n", "sed -n 1e/tmp/evil x", false},
		{"sed -n", "sed -n w/etc/x y", false},
		{"sed -n 5p", "sed -n 5p a", true},
		{"sed -n 5p", "sed -n 5p a -e 1e", false},
		{"make test", "make test -j4", true},
		{"make test", "make test SHELL=/tmp/x", false},
		{"make test", "make test SHELL:=/tmp/x", false},
		{"make test", "make test SHELL::=/tmp/x", false},
		{"make test", "make test SHELL?=/tmp/x", false},
		{"make test", "make test 'SHELL = /tmp/x'", false},
		{"make test", "make test .SHELLFLAGS=-xc", false},
		{"make test", "make test 'http://x$(a:b=c)=/tmp/x'", false},
		{"curl", "curl https://example.org/?a=b", true},
		{"make test", "make test -C /tmp/evil", false},
		{"make", "make CC=/tmp/evil", false},
		{"rg", "rg -n --hostname-bin=/tmp/evil x", false},
		{"rg", "rg -in x src", true},
		{"sort", "sort --compress-program=/tmp/evil x", false},
		{"wget", "wget --use-askpass=/tmp/evil u", false},
		{"eslint", "eslint --rulesdir=/tmp/evil .", false},
		{"tsc", "tsc --outDir /etc", false},
		{"docker ps", "docker ps -a", true},
		{"docker ps", "docker ps -H tcp://evil", false},
		{"kubectl get", "kubectl get --kubeconfig=/tmp/evil", false},
		{"git grep", "git grep -O/tmp/evil x", false},
		{"git merge", "git merge -s evil", false}, // runs git-merge-evil
		{"git clone", "git clone --template=/tmp/evil u", false},
		{"nobody-knows-it", "nobody-knows-it a b --verbose", true},
		{"nobody-knows-it", "nobody-knows-it -v", false},
	} {
		s := call("Bash", map[string]any{"command": c.command})
		m := Match{Arguments: []Argument{{Name: "command", Op: Command, Value: c.prefix}}}
		for verdict, want := range map[Verdict]bool{Allow: c.want, Deny: true, Ask: true} {
			if got := (Rule{Verdict: verdict, Match: m}).Matches(s, here); got != want {
				t.Errorf("%s %q: %q is %v, want %v", verdict, c.prefix, c.command, got, want)
			}
		}
	}
}

func TestAnotherShellsTextIsNotReadAsPOSIX(t *testing.T) {
	const quoted = "git status 'a & b'"
	m := Match{Arguments: []Argument{{Name: "command", Op: Command, Value: "git status"}}}
	for tool, more := range map[string]map[string]any{"PowerShell": {}, "run_cmd": {}, "fish": {}, "Bash": {"shell": "pwsh"}, "shell": {"shell": 1}} {
		more["command"] = quoted
		if m.Matches(call(tool, more), here) {
			t.Errorf("%s with %v matches", tool, more)
		}
	}
	if !m.Matches(call("Bash", map[string]any{"command": quoted, "shell": "/bin/bash"}), here) {
		t.Error("bash does not match")
	}
}

func TestHours(t *testing.T) {
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Skip("no time zones here")
	}
	at := func(s string) time.Time {
		v, err := time.ParseInLocation("2006-01-02 15:04", s, vienna)
		if err != nil {
			t.Fatal(err)
		}
		return v.UTC()
	}
	for _, c := range []struct {
		from, to string
		days     []int
		at       string
		want     bool
	}{
		{"09:00", "17:00", nil, "2026-09-17 09:00", true},
		{"09:00", "17:00", nil, "2026-09-17 16:59", true},
		{"09:00", "17:00", nil, "2026-09-17 17:00", false},
		{"09:00", "17:00", nil, "2026-09-17 08:59", false},
		{"09:00", "17:00", []int{4}, "2026-09-17 12:00", true}, // a Thursday
		{"09:00", "17:00", []int{5}, "2026-09-17 12:00", false},
		{"22:00", "06:00", nil, "2026-09-17 23:00", true},
		{"22:00", "06:00", nil, "2026-09-17 05:59", true},
		{"22:00", "06:00", nil, "2026-09-17 06:00", false},
		{"22:00", "06:00", []int{4}, "2026-09-18 05:00", true}, // began on Thursday
		{"22:00", "06:00", []int{4}, "2026-09-17 05:00", false},
		{"22:00", "06:00", []int{6}, "2026-09-20 01:00", true}, // Saturday's night ends on Sunday
		{"02:00", "04:00", nil, "2026-10-25 03:30", true},      // the day the clock goes back
		{"9:00", "17:00", nil, "2026-09-17 12:00", false},
		{"", "", nil, "2026-09-17 12:00", false},
	} {
		s := call("T", nil)
		s.At = at(c.at)
		m := Match{Hours: &Hours{From: c.from, To: c.to, Days: c.days}}
		if got := m.Matches(s, Place{Location: vienna}); got != c.want {
			t.Errorf("%s to %s on %v at %s: %v, want %v", c.from, c.to, c.days, c.at, got, c.want)
		}
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	arg := func(op Op, value string) Match {
		return Match{Arguments: []Argument{{Name: "x", Op: op, Value: value}}}
	}
	for _, c := range []struct {
		m    Match
		want string
	}{
		{Match{}, ""},
		{Match{Folder: "/w", Hours: &Hours{From: "22:00", To: "06:00", Days: []int{0, 6}}}, ""},
		{Match{Folder: "~/src"}, ""},
		{Match{Folder: "src"}, "/match/folder"},
		{Match{Folder: "~root"}, "/match/folder"},
		{Match{Tool: "\xff"}, "/match/tool"},
		{Match{Tool: string(make([]byte, maxText+1))}, "/match/tool"},
		{Match{Arguments: make([]Argument, maxArguments+1)}, "/match/arguments"},
		{arg("", "a"), "/match/arguments/0/op"},
		{arg("regexp", "a"), "/match/arguments/0/op"},
		{Match{Arguments: []Argument{{Op: Is}}}, "/match/arguments/0/name"},
		{arg(Command, "git status"), ""},
		{arg(Command, ""), "/match/arguments/0/value"},
		{arg(Command, "git *"), "/match/arguments/0/value"},
		{arg(Command, "git; ls"), "/match/arguments/0/value"},
		{arg(Command, "A=b git"), "/match/arguments/0/value"},
		{arg(Command, "git $X"), "/match/arguments/0/value"},
		{arg(Command, "'' a"), "/match/arguments/0/value"},
		{arg(Within, ""), "/match/arguments/0/value"},
		{arg(Within, "~root/a"), "/match/arguments/0/value"},
		{arg(Within, "/secret/*"), "/match/arguments/0/value"},
		{arg(Within, "/w/[id]"), ""},
		{arg(Within, "src"), ""},
		{arg(Host, "*.example.com"), ""},
		{arg(Host, "127.1"), "/match/arguments/0/value"},
		{arg(Host, "0x7f000001"), "/match/arguments/0/value"},
		{arg(Host, "127.0.0.1:8080"), ""},
		{arg(Host, "[::1]"), ""},
		{arg(Host, "3.example.com"), ""},
		{arg(Host, "https://example.com"), "/match/arguments/0/value"},
		{arg(Host, "example.com/a"), "/match/arguments/0/value"},
		{arg(Host, "me@example.com"), "/match/arguments/0/value"},
		{arg(Host, "example.com:"), "/match/arguments/0/value"},
		{arg(Host, "*"), "/match/arguments/0/value"},
		{arg(Host, ""), "/match/arguments/0/value"},
		{Match{Hours: &Hours{From: "25:00", To: "06:00"}}, "/match/hours/from"},
		{Match{Hours: &Hours{From: "06:00", To: "6:00"}}, "/match/hours/to"},
		{Match{Hours: &Hours{From: "06:00", To: "06:00"}}, "/match/hours/to"},
		{Match{Hours: &Hours{From: "06:00", To: "07:00", Days: []int{1, 7}}}, "/match/hours/days/1"},
		{Match{Hours: &Hours{From: "06:00", To: "07:00", Days: []int{1, 1}}}, "/match/hours/days/1"},
	} {
		got := ""
		if bad := c.m.Check("/match"); len(bad) > 0 {
			got = bad[0].Pointer
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}
