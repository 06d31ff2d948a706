package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskbell/backend/client"
	"deskbell/backend/signing"
)

const (
	directive = `{"ma2h_version":"0.6","type":"directive","id":"dir_1","from":"human:alice","to":"agent:bot","created_at":"2026-09-13T12:00:00Z","title":"Hold"}`
	message   = `{"ma2h_version":"0.6","type":"notify","id":"msg_1","from":"agent:other#sess_o","to":"agent:bot#sess_1","created_at":"2026-09-13T12:00:00Z",` +
		`"agent":{"id":"other","run_id":"r","runtime":"cli","session":"sess_o"},"title":"Hello"}`
	response = `{"ma2h_version":"0.6","in_reply_to":"msg_9","agent":{"id":"bot","run_id":"r"},"resolution":"answered","resolution_id":"res_1",` +
		`"response":{"value":"ship","actor":"human:alice","resolved_at":"2026-09-13T12:00:00Z"}}`
	receipt = `{"ma2h_version":"0.6","type":"receipt","id":"rcpt_1","in_reply_to":"msg_9","event":"bounced","prior":"queued","at":"2026-09-13T12:00:00Z",` +
		`"session":"sess_dead","to":"agent:bot#sess_1"}`
)

var (
	now   = time.Date(2026, 9, 13, 12, 0, 0, 0, time.UTC)
	right = signing.HMACKey([]byte("the right secret"))
	wrong = signing.HMACKey([]byte("another secret"))
	nonce atomic.Int64
)

// signed is a row as a hub signs it for the address to.
func signed(t testing.TB, key signing.Key, kind, object, to string) client.Row {
	t.Helper()
	c, err := signing.EntryOf(kind, []byte(object), to)
	must(t, err)
	header, err := c.Sign(key, now.Unix(), fmt.Sprint("jti_", nonce.Add(1)))
	must(t, err)
	return client.Row{Kind: kind, Object: []byte(object), Signature: signing.Prefixed(header)}
}

func verifier(t testing.TB, c *client.Client, list ...signing.Key) *client.Verifier {
	t.Helper()
	v, err := client.NewVerifier(c, keys(list...))
	must(t, err)
	v.Now = func() time.Time { return now }
	return v
}

func TestVerify(t *testing.T) {
	v := verifier(t, &client.Client{Agent: "bot"}, right)
	const own = "agent:bot#sess_1"
	replayed := signed(t, right, "directive", directive, "")
	if _, err := v.Verify(replayed, ""); err != nil {
		t.Fatal(err)
	}
	with := func(r client.Row, old, replacement string) client.Row {
		object := strings.Replace(string(r.Object), old, replacement, 1)
		if object == string(r.Object) {
			t.Fatalf("%s is not in %s", old, object)
		}
		r.Object = []byte(object)
		return r
	}
	for name, c := range map[string]struct {
		row     client.Row
		session string
		want    error
	}{
		"directive":                      {signed(t, right, "directive", directive, ""), "", nil},
		"directive in a session":         {signed(t, right, "directive", directive, ""), "sess_1", nil},
		"message":                        {signed(t, right, "message", message, ""), "sess_1", nil},
		"response":                       {signed(t, right, "response", response, own), "sess_1", nil},
		"receipt":                        {signed(t, right, "receipt", receipt, own), "sess_1", nil},
		"an unknown member":              {with(signed(t, right, "directive", directive, ""), `"title"`, `"prompt":"x","title"`), "", nil},
		"replayed":                       {replayed, "", signing.ErrReplayed},
		"another key":                    {signed(t, wrong, "directive", directive, ""), "", signing.ErrMismatch},
		"title":                          {with(signed(t, right, "directive", directive, ""), "Hold", "Ship"), "", signing.ErrMismatch},
		"sender":                         {with(signed(t, right, "directive", directive, ""), "alice", "mallory"), "", signing.ErrMismatch},
		"addressee":                      {with(signed(t, right, "directive", directive, ""), "agent:bot", "agent:victim"), "", signing.ErrMismatch},
		"an action":                      {with(signed(t, right, "directive", directive, ""), `"title"`, `"action":{"instructions":"x"},"title"`), "", client.ErrShape},
		"a state":                        {with(signed(t, right, "message", message, ""), `"title"`, `"state":{},"title"`), "sess_1", client.ErrShape},
		"a member twice":                 {with(signed(t, right, "directive", directive, ""), `"title"`, `"title":"x","title"`), "", client.ErrShape},
		"no object":                      {client.Row{Kind: "directive", Object: []byte("7"), Signature: replayed.Signature}, "", client.ErrShape},
		"a directive as a message":       {signed(t, right, "message", directive, ""), "", client.ErrShape},
		"a message as a directive":       {signed(t, right, "directive", message, ""), "sess_1", client.ErrShape},
		"no signature":                   {client.Row{Kind: "directive", Object: []byte(directive)}, "", signing.ErrMalformed},
		"somebody else's":                {signed(t, right, "directive", strings.Replace(directive, "agent:bot", "agent:victim", 1), ""), "", client.ErrNotForMe},
		"an earlier session's":           {signed(t, right, "message", message, ""), "sess_2", client.ErrNotForMe},
		"a session's, without one":       {signed(t, right, "message", message, ""), "", client.ErrNotForMe},
		"a response for another session": {signed(t, right, "response", response, own), "sess_2", signing.ErrMismatch},
		"a receipt for another session":  {signed(t, right, "receipt", receipt, own), "sess_2", signing.ErrMismatch},
	} {
		e, err := v.Verify(c.row, c.session)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil && (strings.Contains(string(e.Object), "prompt") || e.Key == "" || e.Kind != c.row.Kind) {
			t.Errorf("%s: %+v: %s", name, e, e.Object)
		}
		if err != nil && e.Object != nil {
			t.Errorf("%s: refused, and handed out all the same", name)
		}
	}
	for _, apart := range []time.Duration{-121 * time.Second, 121 * time.Second} {
		v.Now = func() time.Time { return now.Add(apart) }
		if _, err := v.Verify(signed(t, right, "directive", directive, ""), ""); !errors.Is(err, signing.ErrStale) {
			t.Errorf("%s apart: %v", apart, err)
		}
	}
	if _, err := verifier(t, &client.Client{Agent: "bot"}).Verify(signed(t, right, "directive", directive, ""), ""); !errors.Is(err, signing.ErrMismatch) {
		t.Errorf("without a key: %v", err)
	}
}

// During a rotation both keys hold; afterwards the old one does not.
func TestTwoKeysDuringARotation(t *testing.T) {
	valid := []signing.Key{wrong, right}
	v, err := client.NewVerifier(&client.Client{Agent: "bot"}, func() ([]signing.Key, error) { return valid, nil })
	must(t, err)
	v.Now = func() time.Time { return now }
	for _, k := range []signing.Key{right, wrong} {
		if _, err := v.Verify(signed(t, k, "directive", directive, ""), ""); err != nil {
			t.Error(err)
		}
	}
	valid = valid[1:]
	if _, err := v.Verify(signed(t, wrong, "directive", directive, ""), ""); !errors.Is(err, signing.ErrMismatch) {
		t.Errorf("after the rotation: %v", err)
	}
}

func TestVerifyAPush(t *testing.T) {
	const hook = "https://bot.example/hook"
	v := verifier(t, &client.Client{Agent: "bot"}, right)
	c, err := signing.ResponseOf([]byte(response), hook)
	must(t, err)
	header, err := c.Sign(right, now.Unix(), "jti_push")
	must(t, err)
	if _, err := v.Push([]byte(response), header, hook+"/"); !errors.Is(err, signing.ErrMismatch) {
		t.Errorf("another callback: %v", err)
	}
	if _, err := v.Push([]byte(strings.Replace(response, "ship", "hold", 1)), header, hook); !errors.Is(err, signing.ErrMismatch) {
		t.Errorf("another value: %v", err)
	}
	a, err := v.Push([]byte(response), header, hook)
	must(t, err)
	if a.Resolution != "answered" || string(a.Response.Value) != `"ship"` || a.InReplyTo != "msg_9" {
		t.Errorf("%+v", a)
	}
	if _, err := v.Push([]byte(response), header, hook); !errors.Is(err, signing.ErrReplayed) {
		t.Errorf("again: %v", err)
	}
	// Members that nobody signed say nothing, however much their names look like those that are.
	for _, more := range []string{
		`"Response":{"value":"hold","actor":"human:eve"}`, `"Resolution":"declined"`, `"STATE":{"evil":true}`, `"In_Reply_To":"msg_other"`, `"verdict":"hold"`,
	} {
		v := verifier(t, &client.Client{Agent: "bot"}, right)
		b, err := v.Push([]byte(strings.TrimSuffix(response, "}")+","+more+"}"), header, hook)
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, %v", more, b, err)
		}
	}
	late := verifier(t, &client.Client{Agent: "bot"}, right)
	late.Now = func() time.Time { return now.Add(time.Hour) }
	if _, err := late.Push([]byte(response), header, hook); !errors.Is(err, signing.ErrStale) {
		t.Errorf("an hour later: %v", err)
	}
}

// desk is a consumer with a hub that only takes acknowledgments, in a test's hands.
type desk struct {
	*client.Consumer
	mu     sync.Mutex
	deaf   bool     // acknowledgments are lost
	acked  []string // keys and notes
	events []client.What
}

func newDesk(t testing.TB, dir string, act func(context.Context, client.Entry) (string, error)) *desk {
	t.Helper()
	d := &desk{}
	c := &client.Client{URL: "http://hub.invalid", Agent: "bot", Token: "t", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.deaf {
			return nil, errors.New("lost")
		}
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body) // a short JSON text comes whole
		d.acked = append(d.acked, string(body))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})}}
	d.Consumer = &client.Consumer{Verifier: verifier(t, c, right), Act: act, Tell: func(e client.Event) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.events = append(d.events, e.What)
		return nil
	}}
	if dir != "" {
		done, err := client.OpenDone(dir)
		must(t, err)
		t.Cleanup(func() { _ = done.Close() }) // some tests did
		d.Done = done
	}
	return d
}

func (d *desk) handle(t testing.TB, kind, object, session string) {
	t.Helper()
	must(t, d.Handle(t.Context(), signed(t, right, kind, object, "agent:bot#sess_1"), session))
}

func (d *desk) want(t testing.TB, acked string, events ...client.What) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := strings.Join(d.acked, ""); got != acked || fmt.Sprint(d.events) != fmt.Sprint(events) {
		t.Errorf("acknowledged %s, events %v; want %s, %v", got, d.events, acked, events)
	}
	d.acked, d.events = nil, nil
}

// A consumer that dies between its act and the acknowledgment acknowledges in its next life, with the note of then,
// and acts no second time.
func TestCrashBetweenActAndAcknowledgment(t *testing.T) {
	dir, acts := t.TempDir(), 0
	act := func(context.Context, client.Entry) (string, error) {
		acts++
		return fmt.Sprint("note ", acts), nil
	}
	first := newDesk(t, dir, act)
	first.deaf = true
	first.handle(t, "directive", directive, "")
	first.want(t, "", client.EventActed)

	second := newDesk(t, dir, act) // the first one never closed anything
	second.handle(t, "directive", directive, "")
	second.want(t, `{"ids":["dir_1"],"note":"note 1"}`, client.EventRepeated)
	if acts != 1 {
		t.Errorf("acted %d times", acts)
	}
}

// Of deliveries that overlap, in one process or two, one is acted on.
func TestOverlappingDeliveries(t *testing.T) {
	dir := t.TempDir()
	begun, goOn := make(chan struct{}), make(chan struct{})
	one := newDesk(t, dir, func(context.Context, client.Entry) (string, error) {
		close(begun)
		<-goOn
		return "", nil
	})
	two := newDesk(t, dir, func(context.Context, client.Entry) (string, error) {
		t.Error("acted twice")
		return "", nil
	})
	ended := make(chan error, 1)
	row := signed(t, right, "directive", directive, "")
	go func() { ended <- one.Handle(context.Background(), row, "") }()
	<-begun
	one.handle(t, "directive", directive, "")
	two.handle(t, "directive", directive, "")
	two.want(t, "", client.EventBusy)
	close(goOn)
	must(t, <-ended)
	one.want(t, `{"ids":["dir_1"]}`, client.EventBusy, client.EventActed)
	two.handle(t, "directive", directive, "")
	two.want(t, `{"ids":["dir_1"]}`, client.EventRepeated)
}

// Answers and receipts are news of something else: what says the same of it again is acknowledged, by its own key, and
// not acted on; what says something else is.
func TestTheSameNewsOnce(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t, dir, func(context.Context, client.Entry) (string, error) { return "heard", nil })
	other := func(object, old, replacement string) string { return strings.Replace(object, old, replacement, 1) }
	d.handle(t, "receipt", receipt, "sess_1")
	d.want(t, `{"ids":["rcpt_1"],"note":"heard"}`, client.EventActed)
	d.handle(t, "receipt", other(receipt, "rcpt_1", "rcpt_2"), "sess_1")
	d.want(t, `{"ids":["rcpt_2"],"note":"heard"}`, client.EventRepeated)
	d.handle(t, "receipt", other(receipt, "msg_9", "msg_10"), "sess_1")
	d.want(t, `{"ids":["rcpt_1"],"note":"heard"}`, client.EventActed)

	d.handle(t, "response", response, "sess_1")
	d.handle(t, "response", other(response, "msg_9", "msg_10"), "sess_1")
	d.handle(t, "response", other(response, "res_1", "res_2"), "sess_1")
	d.want(t, `{"ids":["res_1"],"note":"heard"}{"ids":["res_1"],"note":"heard"}{"ids":["res_2"],"note":"heard"}`, client.EventActed, client.EventActed, client.EventActed)

	d = newDesk(t, dir, nil) // also in another life
	d.handle(t, "receipt", other(receipt, "rcpt_1", "rcpt_3"), "sess_1")
	d.handle(t, "response", response, "sess_1")
	d.want(t, `{"ids":["rcpt_3"],"note":"heard"}{"ids":["res_1"],"note":"heard"}`, client.EventRepeated, client.EventRepeated)
}

// Many deliveries of many entries at once, to several consumers: each is acted on once.
func TestEachEntryOnce(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	acts := map[string]int{}
	act := func(_ context.Context, e client.Entry) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		acts[e.Key]++
		return "", nil
	}
	var wg sync.WaitGroup
	for range 3 {
		d := newDesk(t, dir, act)
		for i := range 5 {
			row := signed(t, right, "directive", strings.Replace(directive, "dir_1", fmt.Sprint("dir_", i), 1), "")
			wg.Go(func() {
				if err := d.Handle(context.Background(), row, ""); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for key, n := range acts {
		if n != 1 {
			t.Errorf("%s: %d times", key, n)
		}
	}
	if len(acts) != 5 {
		t.Errorf("%v", acts)
	}
}

// Who dies in the middle leaves it unknown how far it got: nobody acts again by default, and the writer is told.
func TestInterrupted(t *testing.T) {
	for _, left := range []string{`{"key":"dir_1","run":"run-of-the-dead.lock"}`, `{"key":"dir_`, ``} {
		for _, rerun := range []bool{false, true} {
			acts := 0
			d := newDesk(t, t.TempDir(), func(_ context.Context, e client.Entry) (string, error) {
				acts++
				if !e.Again {
					t.Error("the entry does not say that it was begun before")
				}
				return "at last", nil
			})
			must(t, os.WriteFile(client.MarkFile(d.Done, "dir_1"), []byte(left), 0o600))
			d.Rerun = rerun
			d.handle(t, "directive", directive, "")
			if rerun {
				d.want(t, `{"ids":["dir_1"],"note":"at last"}`, client.EventActed)
			} else {
				d.want(t, `{"ids":["dir_1"],"note":"`+client.InterruptedNote+`"}`, client.EventInterrupted)
			}
			d.handle(t, "directive", directive, "")
			if (acts == 1) != rerun {
				t.Errorf("%q, rerun %v: acted %d times", left, rerun, acts)
			}
		}
	}
}

// Whoever is ended in the middle has not failed: it may have done all of it, and is not begun again.
func TestInterruptedByTheEndOfTheWork(t *testing.T) {
	dir, acts := t.TempDir(), 0
	ctx, end := context.WithCancel(t.Context())
	act := func(ctx context.Context, _ client.Entry) (string, error) {
		acts++
		end()
		return "", ctx.Err()
	}
	first := newDesk(t, dir, act)
	must(t, first.Handle(ctx, signed(t, right, "directive", directive, "agent:bot#sess_1"), ""))
	first.want(t, "", client.EventInterrupted)
	must(t, first.Done.Close())
	next := newDesk(t, dir, act)
	next.handle(t, "directive", directive, "")
	next.want(t, `{"ids":["dir_1"],"note":"`+client.InterruptedNote+`"}`, client.EventInterrupted)
	if acts != 1 {
		t.Errorf("acted %d times", acts)
	}
}

func TestWhatFailsComesAgain(t *testing.T) {
	fail := errors.New("not today")
	d := newDesk(t, t.TempDir(), func(context.Context, client.Entry) (string, error) { return "", fail })
	d.handle(t, "directive", directive, "")
	d.want(t, "", client.EventFailed)
	fail = nil
	d.handle(t, "directive", directive, "")
	d.want(t, `{"ids":["dir_1"]}`, client.EventActed)
}

// Who may command an agent is decided, never assumed; what cannot be verified is not even asked about.
func TestPolicy(t *testing.T) {
	d := newDesk(t, t.TempDir(), func(context.Context, client.Entry) (string, error) { return "", nil })
	d.handle(t, "message", message, "sess_1")
	d.want(t, "", client.EventRefused)
	for _, allowed := range []string{"oth", "another", "agent:other#sess_x", "bot"} {
		d.Policy = client.AllowFrom(allowed)
		d.handle(t, "message", message, "sess_1")
		d.want(t, "", client.EventRefused)
	}
	for i, p := range []client.Policy{client.AllowAny, client.AllowFrom("x", "other"), client.AllowFrom("agent:other"), client.AllowFrom("agent:other#sess_o")} {
		d.Policy = p
		id := fmt.Sprint("msg_", i+2)
		d.handle(t, "message", strings.Replace(message, "msg_1", id, 1), "sess_1")
		d.want(t, `{"ids":["`+id+`"]}`, client.EventActed)
	}
	d.Policy = nil
	d.handle(t, "response", response, "sess_1")
	d.handle(t, "receipt", receipt, "sess_1")
	d.want(t, `{"ids":["res_1"]}{"ids":["rcpt_1"]}`, client.EventActed, client.EventActed)
	d.Policy = func(string) bool {
		t.Error("asked about what is not verified")
		return true
	}
	must(t, d.Handle(t.Context(), signed(t, wrong, "message", message, ""), "sess_1"))
	d.want(t, "", client.EventRefused)
}

func TestWhoOnlyLooks(t *testing.T) {
	acts := 0
	d := newDesk(t, "", func(context.Context, client.Entry) (string, error) { acts++; return "", nil })
	d.KeepInMailbox = true
	d.handle(t, "directive", directive, "")
	d.handle(t, "directive", directive, "")
	d.want(t, "", client.EventActed, client.EventActed)
	if acts != 2 {
		t.Errorf("acted %d times", acts)
	}
}

// What was acknowledged long ago is forgotten; what was not is kept.
func TestTheMemoryIsSwept(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t, dir, func(context.Context, client.Entry) (string, error) { return "", nil })
	d.handle(t, "directive", directive, "")
	d.deaf = true
	d.handle(t, "directive", strings.Replace(directive, "dir_1", "dir_2", 1), "")
	old := time.Now().Add(-48 * time.Hour)
	for _, key := range []string{"dir_1", "dir_2"} {
		must(t, os.Chtimes(client.MarkFile(d.Done, key), old, old))
	}
	newDesk(t, dir, nil)
	marks, err := filepath.Glob(filepath.Join(dir, "*.json"))
	must(t, err)
	if len(marks) != 1 || marks[0] != client.MarkFile(d.Done, "dir_2") {
		t.Errorf("left: %v", marks)
	}
}
