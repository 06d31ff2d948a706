package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskbell/backend/guardian"
)

func guardedSession(id string) guardian.Session {
	return guardian.Session{Protocol: "acs", ID: id, Agent: "acs/test/a", AgentID: "a", Platform: "test", Folder: "/w", KeyID: "default",
		Hello: []byte(`{"h":1}`), Terms: []byte(`{"t":1}`), OpenedAt: noon}
}

func negotiate(t testing.TB, g Guarded, id string) guardian.Session {
	t.Helper()
	s, err := g.Negotiate(t.Context(), guardedSession(id), "hello-"+id, "", noon)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// together runs fn n times at once and waits.
func together(n int, fn func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { fn(i) })
	}
	all.Wait()
}

func link(request string, at time.Time) guardian.Step {
	params := fmt.Appendf(nil, `{"request_id":%q,"timestamp":"2026-09-13T12:00:00Z"}`, request)
	hash, err := guardian.RequestHash(params)
	if err != nil {
		panic(err)
	}
	return guardian.Step{Request: request, Method: "steps/toolCallRequest", Turn: "t", At: at, SentAt: "2026-09-13T12:00:00Z", RequestHash: hash, Summary: "ls", Params: params}
}

func add(t testing.TB, g Guarded, session, request string, seal bool) (guardian.Step, error) {
	return g.Append(t.Context(), "acs", session, seal, func(head string, seq int) (guardian.Step, error) { return guardian.Link(head, link(request, noon)) })
}

func TestARequestIsUsedUpOnce(t *testing.T) {
	g := open(t).Guarded()
	negotiate(t, g, "s")
	negotiate(t, g, "other")
	var won, lost atomic.Int32
	together(64, func(int) {
		switch err := g.Use(t.Context(), "acs", "s", "r", "", noon); {
		case err == nil:
			won.Add(1)
		case errors.Is(err, guardian.ErrUsed):
			lost.Add(1)
		default:
			t.Error(err)
		}
	})
	if won.Load() != 1 || lost.Load() != 63 {
		t.Errorf("%d won and %d lost, want one winner of 64", won.Load(), lost.Load())
	}
	for _, c := range []struct {
		what, session, request, nonce string
		want                          error
	}{
		{"the hello's own request", "s", "hello-s", "", guardian.ErrUsed},
		{"another session's", "other", "r", "", nil},
		{"a nonce", "s", "r2", "n", nil},
		{"the nonce again", "s", "r3", "n", guardian.ErrUsed},
		{"the request that the nonce refused", "s", "r3", "", nil},
		{"an unknown session", "nobody", "r", "", guardian.ErrUnknownSession},
	} {
		if err := g.Use(t.Context(), "acs", c.session, c.request, c.nonce, noon); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestASessionIsNegotiatedOnce(t *testing.T) {
	g := open(t).Guarded()
	var fresh, again atomic.Int32
	together(32, func(i int) {
		s := guardedSession("s")
		s.KeyID = fmt.Sprint(i)
		got, err := g.Negotiate(t.Context(), s, fmt.Sprint("hello-", i), "", noon)
		switch {
		case err == nil && got.KeyID == s.KeyID:
			fresh.Add(1)
		case errors.Is(err, guardian.ErrNegotiated) && got.KeyID != s.KeyID:
			again.Add(1)
		default:
			t.Errorf("key %s of %d: %v", got.KeyID, i, err)
		}
	})
	if fresh.Load() != 1 || again.Load() != 31 {
		t.Errorf("%d were fresh and %d not, want one of 32", fresh.Load(), again.Load())
	}
	if _, err := g.Negotiate(t.Context(), guardedSession("s"), "hello-0", "", noon); !errors.Is(err, guardian.ErrUsed) {
		t.Errorf("a repeated hello: %v, want %v", err, guardian.ErrUsed)
	}
	if _, err := g.Negotiate(t.Context(), guardedSession("new"), "h", "n", noon); err != nil {
		t.Error(err)
	}
	if _, err := g.Negotiate(t.Context(), guardedSession("new"), "h2", "n", noon); !errors.Is(err, guardian.ErrUsed) {
		t.Errorf("a repeated nonce: %v, want %v", err, guardian.ErrUsed)
	}
}

func TestStepsAreOneChainWhoeverAppends(t *testing.T) {
	s := open(t)
	g := s.Guarded()
	negotiate(t, g, "a")
	negotiate(t, g, "b")
	hashes := make([]sync.Map, 2)
	together(100, func(i int) {
		st, err := add(t, g, []string{"a", "b"}[i%2], fmt.Sprint("r", i), false)
		if err != nil {
			t.Error(err)
		}
		hashes[i%2].Store(st.Seq, st.Hash)
		if err := g.Answer(t.Context(), "acs", []string{"a", "b"}[i%2], guardian.Answer{Seq: st.Seq, Verdict: "allow", Codes: []string{"c"}, At: noon, Sent: fmt.Appendf(nil, `{"id":1,"result":{"request_id":%q,"decision":"allow","reason_codes":["c"],"chain_hash":%q}}`, st.Request, st.Hash)}); err != nil {
			t.Error(err)
		}
	})
	for i, id := range []string{"a", "b"} {
		c, err := guardian.Verify(t.Context(), g, "acs", id)
		if err != nil || !c.OK() || c.Steps != 50 {
			t.Errorf("session %s: %+v, %v", id, c, err)
		}
		for seq := 1; seq <= 50; seq++ {
			if _, ok := hashes[i].Load(seq); !ok {
				t.Errorf("session %s has no step %d", id, seq)
			}
		}
	}
	if err := s.do(t.Context(), func(t *tx) error {
		return t.exec(`UPDATE steps SET params = CAST(replace(params, '12:00', '13:00') AS BLOB) WHERE session = 'b' AND seq = 7`)
	}); err != nil {
		t.Fatal(err)
	}
	if c, err := guardian.Verify(t.Context(), g, "acs", "b"); err != nil || c.BrokenAt != 7 {
		t.Errorf("a step that was changed: %+v, %v", c, err)
	}
	if err := s.do(t.Context(), func(t *tx) error { return t.exec(`DELETE FROM steps WHERE session = 'a' AND seq = 50`) }); err != nil {
		t.Fatal(err)
	}
	if c, err := guardian.Verify(t.Context(), g, "acs", "a"); err != nil || c.BrokenAt != 50 {
		t.Errorf("a last step that is gone: %+v, %v", c, err)
	}
}

func TestAStepIsStoredWholeAndAnsweredOnce(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	g := s.Guarded()
	negotiate(t, g, "s")
	failed := errors.New("failed")
	if _, err := g.Append(t.Context(), "acs", "s", false, func(string, int) (guardian.Step, error) { return guardian.Step{}, failed }); !errors.Is(err, failed) {
		t.Errorf("a link that fails: %v", err)
	}
	first, err := add(t, g, "s", "r1", false)
	if err != nil || first.Seq != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	if err := g.Answer(t.Context(), "acs", "s", guardian.Answer{Seq: 1, Verdict: "deny", Codes: []string{"human_denied"}, At: noon, Sent: []byte(`{"a":1}`)}); err != nil {
		t.Error(err)
	}
	if err := g.Answer(t.Context(), "acs", "s", guardian.Answer{Seq: 1, Verdict: "allow", At: noon, Sent: []byte(`{}`)}); !errors.Is(err, guardian.ErrAnswered) {
		t.Errorf("a second answer: %v", err)
	}
	if _, err := add(t, g, "s", "r2", true); err != nil {
		t.Error(err)
	}
	if _, err := add(t, g, "s", "r3", false); !errors.Is(err, guardian.ErrSealed) {
		t.Errorf("a step after the end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	g = openAt(t, dir).Guarded() // a new life
	session, err := g.Session(t.Context(), "acs", "s")
	if err != nil || session.Steps != 2 || session.SealedAt.IsZero() || string(session.Terms) != `{"t":1}` {
		t.Errorf("%+v, %v", session, err)
	}
	var all []guardian.Step
	if err := g.Steps(t.Context(), "acs", "s", 0, func(st guardian.Step) error { all = append(all, st); return nil }); err != nil || len(all) != 2 {
		t.Fatalf("%d steps, %v", len(all), err)
	}
	if all[0].Verdict != "deny" || string(all[0].Answer) != `{"a":1}` || len(all[0].Codes) != 1 || all[1].Answer != nil || all[1].Hash != session.Head {
		t.Errorf("%+v", all)
	}
	recent, err := g.Recent(t.Context(), "acs", "s", 1)
	if err != nil || len(recent) != 1 || recent[0].Seq != 2 || len(recent[0].Params) != 0 {
		t.Errorf("recent: %+v, %v", recent, err)
	}
	if err := g.Use(t.Context(), "acs", "s", "hello-s", "", noon); !errors.Is(err, guardian.ErrUsed) {
		t.Errorf("a request of an earlier life: %v", err)
	}
}

func TestSessionsComeInPagesAndAreForgotten(t *testing.T) {
	g := open(t).Guarded()
	for i := range 7 {
		s := guardedSession(fmt.Sprint("s", i))
		if _, err := g.Negotiate(t.Context(), s, "h", "", noon.Add(time.Duration(i/2)*time.Hour)); err != nil { // some at one time
			t.Fatal(err)
		}
		for j := range 300 {
			if _, err := add(t, g, s.ID, fmt.Sprint(j), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen, cursor := map[string]bool{}, ""
	for {
		page, next, err := g.Sessions(t.Context(), 3, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			seen[s.ID] = true
		}
		if cursor = next; next == "" {
			break
		}
	}
	if len(seen) != 7 {
		t.Errorf("pages showed %v", seen)
	}
	if _, _, err := g.Sessions(t.Context(), 3, "nonsense"); err == nil {
		t.Error("a cursor that no page gave was taken")
	}
	if err := g.Purge(t.Context(), noon.Add(3*time.Hour), noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Session(t.Context(), "acs", "s5"); !errors.Is(err, guardian.ErrUnknownSession) {
		t.Errorf("an old session: %v", err)
	}
	if err := g.Steps(t.Context(), "acs", "s5", 0, func(guardian.Step) error { return errors.New("a step is left") }); err != nil {
		t.Error(err)
	}
	if _, err := g.Session(t.Context(), "acs", "s6"); err != nil {
		t.Errorf("a session that was seen since: %v", err)
	}
	if err := g.Use(t.Context(), "acs", "s6", "h", "", noon); !errors.Is(err, guardian.ErrUsed) {
		t.Errorf("a request used since: %v", err)
	}
}

// A step and its request go in together or not at all.
func TestJoin(t *testing.T) {
	g := open(t).Guarded()
	negotiate(t, g, "s")
	join := func(request, nonce string, seal bool, fail error) (guardian.Step, error) {
		return g.Join(t.Context(), "acs", "s", request, nonce, seal, noon, func(head string, seq int) (guardian.Step, error) {
			if fail != nil {
				return guardian.Step{}, fail
			}
			return guardian.Link(head, link(request, noon))
		})
	}
	failed := errors.New("failed")
	if _, err := join("r1", "n1", false, failed); !errors.Is(err, failed) {
		t.Errorf("a link that fails: %v", err)
	}
	first, err := join("r1", "n1", false, nil) // neither request nor nonce was used up by that
	if err != nil || first.Seq != 1 {
		t.Errorf("step %d, %v", first.Seq, err)
	}
	for _, again := range [][2]string{{"r1", ""}, {"r2", "n1"}} {
		if _, err := join(again[0], again[1], false, nil); !errors.Is(err, guardian.ErrUsed) {
			t.Errorf("%v again: %v", again, err)
		}
	}
	if last, err := join("r2", "", true, nil); err != nil || last.Seq != 2 {
		t.Errorf("step %d, %v", last.Seq, err)
	}
	if _, err := join("r3", "", false, nil); !errors.Is(err, guardian.ErrSealed) {
		t.Errorf("after the end: %v", err)
	}
	for _, folder := range []string{"/first", "/second"} { // this session's is known
		if err := g.SetFolder(t.Context(), "acs", "s", folder); err != nil {
			t.Error(err)
		}
	}
	if err := g.SetFolder(t.Context(), "acs", "nobody", "/"); !errors.Is(err, guardian.ErrUnknownSession) {
		t.Errorf("nobody's folder: %v", err)
	}
	if s, err := g.Session(t.Context(), "acs", "s"); err != nil || s.Folder != "/w" || s.Steps != 2 || s.SealedAt.IsZero() {
		t.Errorf("session %+v, %v", s, err)
	}
}
