package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"deskbell/backend/supervise"
)

// The scripts in testdata run the program as a user does, processes and all. Besides the commands of testscript:
//
//	run CODE [<FILE] PROGRAM ARG...    runs it, with FILE as its stdin, and wants that exit code ("any": any)
//	start NAME PROGRAM ARG...          starts it in the background
//	hub NAME ARG...                    starts `deskbell serve` on a free port, waits until it is ready; ${NAME} is its URL
//	expect NAME stdout|stderr REGEXP   waits until the output matches; named groups become variables
//	signal NAME SIGNAL                 sends INT, TERM or KILL
//	finish NAME CODE                   waits for the end and wants that exit code ("any": any); NAME.stdout is a file then
//	api CODE METHOD PATH [BODY]        calls the hub of hub.json as the operator and wants that status
//	as TOKEN CODE METHOD PATH [BODY]   the same as the agent of that token
//	until PATH REGEXP                  asks the hub after every change it tells of, until the answer matches; named groups become variables
//	receiver NAME                      takes pushes; ${NAME} is its URL, ${NAME_HOST} host and port
//	received NAME                      waits for a push: its body is the file NAME.json, its header ${NAME_SIGNATURE}
//	forger NAME URL OLD NEW            a false hub before the one at URL, whose answers have NEW for OLD; ${NAME} is its URL
//	gate NAME URL                      a hub before the one at URL, which lets no acknowledgment through
//	knocked NAME                       waits until an acknowledgment came to the gate
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DESKBELL_DATA", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", "atexit_sleep_ms=0") // for what scripts run themselves
			e.Values[jobsKey{}] = &jobs{byName: map[string]*job{}, receivers: map[string]*receiver{}, gates: map[string]chan struct{}{}}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run": cmdRun, "start": cmdStart, "hub": cmdHub, "expect": cmdExpect, "signal": cmdSignal, "finish": cmdFinish,
			"api": cmdAPI, "as": cmdAs, "forger": cmdForger, "gate": cmdGate, "knocked": cmdKnocked, "until": cmdUntil, "receiver": cmdReceiver, "received": cmdReceived,
		},
	})
}

func TestMain(m *testing.M) {
	supervise.Main()
	testscript.Main(m, map[string]func(){
		"deskbell": func() { os.Exit(Main(os.Args[1:], nil)) },
	})
}

// patience is how long a script waits for anything before it fails.
const patience = 60 * time.Second

type jobsKey struct{}

type jobs struct {
	byName    map[string]*job
	receivers map[string]*receiver
	gates     map[string]chan struct{}
}

func jobsOf(ts *testscript.TestScript) *jobs { return ts.Value(jobsKey{}).(*jobs) }

// job is a process in the background.
type job struct {
	cmd            *exec.Cmd
	stdout, stderr output
	done           chan struct{}
}

// output gathers what a process writes and wakes whoever waits for it.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
	ended bool
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wake()
	return o.text.Write(b)
}

func (o *output) wake() {
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wake()
}

func (o *output) look() (text string, ended bool, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.text.String(), o.ended, o.grown
}

// command makes a command with the script's environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	if len(args) == 0 {
		ts.Fatalf("no program")
	}
	program := args[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, program); !strings.Contains(program, "/") {
			if _, err := os.Stat(path); err == nil {
				program = path
				break
			}
		}
	}
	cmd := exec.Command(program, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	// With the race detector every process would linger for a second at its end.
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "BROWSER", "SECRET", "MA2H_CALLBACK_SECRET",
		"DESKBELL_DATA", "DESKBELL_ADDR", "DESKBELL_TOKEN", "DESKBELL_AGENT", "DESKBELL_DEV", "DESKBELL_SIGNING_SECRET", "PYTHONPATH"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	return cmd
}

func cmdRun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: run CODE [<FILE] PROGRAM ARG...")
	}
	code, args := args[0], args[1:]
	var in io.Reader
	if file, ok := strings.CutPrefix(args[0], "<"); ok {
		in, args = strings.NewReader(ts.ReadFile(file)), args[1:]
	}
	cmd := command(ts, args)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	err := cmd.Run()
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	if got := exitOf(ts, err); code != "any" && got != code {
		ts.Fatalf("exit code %s, want %s\nstdout: %s\nstderr: %s", got, code, &stdout, &stderr)
	}
}

func exitOf(ts *testscript.TestScript, err error) string {
	var e *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &e):
		return strconv.Itoa(e.ExitCode())
	}
	ts.Fatalf("%v", err)
	return ""
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME PROGRAM ARG...")
	}
	start(ts, args[0], args[1:])
}

func start(ts *testscript.TestScript, name string, args []string) *job {
	j := &job{cmd: command(ts, args), done: make(chan struct{})}
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	ts.Check(j.cmd.Start())
	go func() {
		_ = j.cmd.Wait() // its state says how it ended
		j.stdout.end()
		j.stderr.end()
		close(j.done)
	}()
	ts.Defer(func() {
		_ = j.cmd.Process.Kill() // most have ended long ago
		<-j.done
	})
	jobsOf(ts).byName[name] = j
	return j
}

func jobOf(ts *testscript.TestScript, name string) *job {
	j := jobsOf(ts).byName[name]
	if j == nil {
		ts.Fatalf("nothing was started as %s", name)
	}
	return j
}

func cmdHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: hub NAME ARG...")
	}
	start(ts, args[0], append([]string{"deskbell", "serve", "--addr", "127.0.0.1:0"}, args[1:]...))
	expect(ts, args[0], "stdout", `deskbell ready url=(?P<`+args[0]+`>http://127\.0\.0\.1:\d+) data=\S+ pid=\d+\n`)
}

func cmdExpect(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: expect NAME stdout|stderr REGEXP")
	}
	expect(ts, args[0], args[1], args[2])
}

func expect(ts *testscript.TestScript, name, stream, pattern string) {
	re, err := regexp.Compile(`(?m)` + pattern)
	ts.Check(err)
	j := jobOf(ts, name)
	out := &j.stdout
	if stream == "stderr" {
		out = &j.stderr
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		text, ended, grown := out.look()
		if m := re.FindStringSubmatch(text); m != nil {
			for i, group := range re.SubexpNames() {
				if group != "" {
					ts.Setenv(group, m[i])
				}
			}
			return
		}
		if ended {
			stdout, _, _ := j.stdout.look()
			stderr, _, _ := j.stderr.look()
			ts.Fatalf("%s ended without %q\nstdout: %s\nstderr: %s", name, pattern, stdout, stderr)
		}
		select {
		case <-grown:
		case <-late.C:
			ts.Fatalf("%s did not write %q in time: %s", name, pattern, text)
		}
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal NAME SIGNAL")
	}
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]
	if !ok {
		ts.Fatalf("no signal %s", args[1])
	}
	ts.Check(jobOf(ts, args[0]).cmd.Process.Signal(sig))
}

func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: finish NAME CODE")
	}
	j := jobOf(ts, args[0])
	select {
	case <-j.done:
	case <-time.After(patience):
		ts.Fatalf("%s did not end in time", args[0])
	}
	stdout, _, _ := j.stdout.look()
	stderr, _, _ := j.stderr.look()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stdout"), []byte(stdout), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), []byte(stderr), 0o600))
	if got := strconv.Itoa(j.cmd.ProcessState.ExitCode()); args[1] != "any" && got != args[1] {
		ts.Fatalf("exit code %s, want %s\nstdout: %s\nstderr: %s", got, args[1], stdout, stderr)
	}
}

func cmdAPI(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: api CODE METHOD PATH [BODY]")
	}
	callAs(ts, strings.TrimSpace(ts.ReadFile(filepath.Join(ts.Getenv("DESKBELL_DATA"), "operator.token"))), args)
}

func cmdAs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || len(args) > 5 {
		ts.Fatalf("usage: as TOKEN CODE METHOD PATH [BODY]")
	}
	callAs(ts, args[0], args[1:])
}

func callAs(ts *testscript.TestScript, token string, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp := apiCall(ctx, ts, token, args[1], args[2], strings.Join(args[3:], ""))
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s", answer)
	if strconv.Itoa(resp.StatusCode) != args[0] {
		ts.Fatalf("status %s, want %s: %s", resp.Status, args[0], answer)
	}
}

// apiCall calls the hub of the data folder.
func apiCall(ctx context.Context, ts *testscript.TestScript, token, method, path, body string) *http.Response {
	data := ts.Getenv("DESKBELL_DATA")
	var info struct {
		URL string `json:"url"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(data, "hub.json"))), &info))
	req, err := http.NewRequestWithContext(ctx, method, info.URL+path, strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	return resp
}

// before starts a server that stands before a hub. change changes what the hub answers; hold keeps requests.
func before(ts *testscript.TestScript, name, to string, change func(*http.Response) error, hold func(*http.Request) bool) {
	target, err := url.Parse(to)
	ts.Check(err)
	proxy := &httputil.ReverseProxy{ModifyResponse: change, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold != nil && hold(r) {
			_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed when the client goes away
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	ts.Defer(func() {
		s.CloseClientConnections()
		s.Close()
	})
	ts.Setenv(name, s.URL)
}

func cmdForger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: forger NAME URL OLD NEW")
	}
	before(ts, args[0], args[1], func(r *http.Response) error {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
			r.Body = &replacing{ReadCloser: r.Body, lines: bufio.NewReader(r.Body), before: args[2], after: args[3]}
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		body = bytes.ReplaceAll(body, []byte(args[2]), []byte(args[3]))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}, nil)
}

// replacing changes a stream line by line.
type replacing struct {
	io.ReadCloser
	lines         *bufio.Reader
	rest          []byte
	before, after string
}

func (r *replacing) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		l, err := r.lines.ReadString('\n')
		if l == "" {
			return 0, err
		}
		r.rest = []byte(strings.ReplaceAll(l, r.before, r.after))
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func cmdGate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gate NAME URL")
	}
	knocks := make(chan struct{}, 16)
	jobsOf(ts).gates[args[0]] = knocks
	before(ts, args[0], args[1], nil, func(r *http.Request) bool {
		if r.URL.Path != "/v1/inbox/ack" {
			return false
		}
		knocks <- struct{}{}
		return true
	})
}

func cmdKnocked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: knocked NAME")
	}
	select {
	case <-jobsOf(ts).gates[args[0]]:
	case <-time.After(patience):
		ts.Fatalf("no acknowledgment came in time")
	}
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: until PATH REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	token := strings.TrimSpace(ts.ReadFile(filepath.Join(ts.Getenv("DESKBELL_DATA"), "operator.token")))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	events := apiCall(ctx, ts, token, http.MethodGet, "/api/events", "")
	defer events.Body.Close()
	changes := bufio.NewScanner(events.Body)
	for {
		resp := apiCall(ctx, ts, token, http.MethodGet, args[0], "")
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		ts.Check(err)
		if m := re.FindSubmatch(answer); m != nil {
			for i, group := range re.SubexpNames() {
				if group != "" {
					ts.Setenv(group, string(m[i]))
				}
			}
			return
		}
		if !changes.Scan() { // the next change, or the next line that keeps the stream alive
			ts.Fatalf("%s never became %q: %s", args[0], args[1], answer)
		}
	}
}

// receiver is an agent's callback.
type receiver struct{ pushes chan push }

type push struct {
	body      []byte
	signature string
}

func cmdReceiver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: receiver NAME")
	}
	rc := &receiver{pushes: make(chan push, 16)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		rc.pushes <- push{body, r.Header.Get("MA2H-Signature")}
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL+"/hook")
	ts.Setenv(args[0]+"_HOST", strings.TrimPrefix(s.URL, "http://"))
	jobsOf(ts).receivers[args[0]] = rc
}

func cmdReceived(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: received NAME")
	}
	rc := jobsOf(ts).receivers[args[0]]
	if rc == nil {
		ts.Fatalf("there is no receiver %s", args[0])
	}
	select {
	case p := <-rc.pushes:
		ts.Check(os.WriteFile(ts.MkAbs(args[0]+".json"), p.body, 0o600))
		ts.Setenv(args[0]+"_SIGNATURE", p.signature)
	case <-time.After(patience):
		ts.Fatalf("no push came in time")
	}
}
