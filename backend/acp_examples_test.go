package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// websocatChild makes this binary do what the examples want of websocat: lines to frames and frames to lines.
const websocatChild = "DESKBELL_TEST_WEBSOCAT"

func websocat(args []string) int {
	header, url := http.Header{}, ""
	for _, a := range args {
		if h, ok := strings.CutPrefix(a, "-H="); ok {
			name, v, _ := strings.Cut(h, ": ")
			header.Set(name, v)
		} else {
			url = a
		}
	}
	ctx := context.Background()
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			_, frame, err := ws.Read(ctx)
			if err != nil {
				return
			}
			fmt.Printf("%s\n", frame)
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if ws.Write(ctx, websocket.MessageText, lines.Bytes()) != nil {
			break
		}
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
	<-read
	return 0
}

// The examples of the page are run as they stand there, by a shell, and what they print is what the page says. "…" ends what
// is another every time.
func TestACPExamples(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the examples use curl, which is not here")
	}
	page, err := os.ReadFile("../docs/acp.md")
	if err != nil {
		t.Fatal(err)
	}
	h := openHouse(t)
	bot, other := h.agent("shipper"), h.agent("other")
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "websocat"), []byte("#!/bin/sh\n"+websocatChild+"=1 exec "+self+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TOKEN="+bot.token, "OTHER="+other.token)
	host := strings.TrimPrefix(h.hub.URL(), "http://")
	var last []byte
	ran := 0
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "deskbell"), "..") // the program itself, beside the page
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	env = append(env, "DESKBELL_DATA="+h.dir)
	for i, part := range strings.Split(string(page), "\n```") {
		if i%2 == 0 { // text
			continue
		}
		kind, text, _ := strings.Cut(part, "\n")
		switch kind {
		case "sh":
			ran++
			script := "set -eua; [ ! -f state ] || . ./state\n" + strings.ReplaceAll(text, "127.0.0.1:6224", host) + "\nset >state.all; grep -E '^(ASK|ID|WORKER)=' state.all >state || true\n"
			cmd := exec.Command("sh", "-c", script)
			cmd.Dir, cmd.Env, cmd.Stderr = dir, env, os.Stderr
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				last, err = cmd.Output()
			}()
			if strings.Contains(text, `"processMode":true`) {
				h.operator().answer(h.asked(t).get("id"), msg{"resolution": "answered", "value": "allow"}).want(200)
			}
			if <-ended; err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if strings.HasPrefix(text, "deskbell resolve") {
				eventually(t, "the answer is on its way", func() bool { return len(bot.beat()) > 0 })
			}
		case "json":
			wantLike(t, text, last)
		}
	}
	if ran < 9 {
		t.Errorf("%d examples ran", ran)
	}
}

// wantLike compares what was printed with what the page says, document by document.
func wantLike(t *testing.T, says string, printed []byte) {
	t.Helper()
	want, got := json.NewDecoder(strings.NewReader(says)), json.NewDecoder(strings.NewReader(string(printed)))
	for want.More() {
		var w, g any
		if err := want.Decode(&w); err != nil {
			t.Fatalf("%s: %v", says, err)
		}
		if err := got.Decode(&g); err != nil {
			t.Fatalf("the page says %s, and this came: %s", says, printed)
		}
		if at := unlike(w, g, ""); at != "" {
			t.Fatalf("%s: the page says %s, and this came: %s", at, says, printed)
		}
	}
	if got.More() {
		t.Errorf("more came than %s: %s", says, printed)
	}
}

// What the page has and nothing printed is unlike it, also an empty list.
func TestACPExamplesSeeWhatIsAbsent(t *testing.T) {
	for want, got := range map[string]string{`{"pending":[]}`: `{}`, `{"a":{"pending":[]}}`: `{"a":{"pending":null}}`, `{"a":null}`: `{}`, `{"a":{}}`: `{"a":{"b":[]}}`} {
		var w, g any
		if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(got), &g) != nil {
			t.Fatal(want, got)
		}
		if alike := unlike(w, g, "") == ""; alike != (want == `{"a":{}}`) {
			t.Errorf("%s and %s: alike is %v", want, got, alike)
		}
	}
}

// unlike is differ, with lists element by element and texts up to their "…".
func unlike(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			there, ok := g[k]
			if !ok {
				return at + "/" + k
			}
			if d := unlike(v, there, at+"/"+k); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return at
		}
		for i := range w {
			if d := unlike(w[i], g[i], fmt.Sprint(at, "/", i)); d != "" {
				return d
			}
		}
		return ""
	case string:
		g, _ := got.(string)
		if start, ok := strings.CutSuffix(w, "…"); ok && strings.HasPrefix(g, start) && len(g) > len(start) {
			return ""
		}
	}
	return differ(want, got, at)
}
