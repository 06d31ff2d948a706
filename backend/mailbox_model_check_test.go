package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"

	"deskbell/backend/fleet"
	"deskbell/backend/inbox"
	"deskbell/backend/mailbox"
)

// check compares everything there is.
func (m *model) check() {
	ctx, hub := context.Background(), m.world.hub
	m.settle()
	if err := hub.mailbox.Settle(ctx); err != nil {
		m.t.Fatal(err)
	}
	for _, x := range m.messages {
		it, err := hub.store.Item(ctx, x.id)
		if x.gone {
			m.same("a message whose retention ended", err, inbox.ErrGone)
			continue
		}
		if err != nil {
			m.t.Fatalf("%s is lost: %v", x.id, err)
		}
		got, want := fmt.Sprint(it.State, "/", it.Track.State), fmt.Sprint(x.status, "/", x.track)
		if x.to != "" {
			want += fmt.Sprint("/", x.box, "/", x.prior)
			got += fmt.Sprint("/", it.Mailbox.State, "/", it.Mailbox.Prior)
			if (x.box == "expired" || (x.box == "bounced" && x.prior == "queued")) && !it.Mailbox.DeliveredAt.IsZero() {
				m.t.Fatalf("%s: %s and delivered at %v", x.id, got, it.Mailbox.DeliveredAt)
			}
		}
		if x.terminal() {
			want += fmt.Sprint("/", x.actor, "/", x.resolved)
			if it.Outcome == nil {
				m.t.Fatalf("%s has no outcome", x.id)
			}
			got += fmt.Sprint("/", it.Outcome.Actor, "/", it.Outcome.At)
			m.named(it.Outcome.ID, "response of "+x.id)
			if x.outcome == "" {
				x.outcome = it.Outcome.ID
			}
			def := ""
			if x.status == "expired" && x.def != "" {
				def = strconv.Quote(x.def)
			}
			if x.status == "expired" && (string(it.Outcome.Value) != def || it.Outcome.Defaulted != (def != "")) {
				m.t.Fatalf("%s expired with %s, defaulted %v; its default is %q", x.id, it.Outcome.Value, it.Outcome.Defaulted, x.def)
			}
			if x.outcome != it.Outcome.ID || !strings.HasPrefix(x.outcome, "res_") {
				m.t.Fatalf("%s: outcome %s became %s", x.id, x.outcome, it.Outcome.ID)
			}
		}
		if got != want {
			m.t.Fatalf("%s %s: is %s, want %s", x.kind, x.id, got, want)
		}
		m.checkMail(x)
		m.checkPush(x)
	}
	for _, s := range m.sessions {
		got, err := hub.mailbox.Session(ctx, s.id)
		if m.forgotten(s) {
			m.same("a forgotten session", err, fleet.ErrUnknownSession)
			continue
		}
		if err != nil || string(got.State) != s.state || !got.LeaseEnd.Equal(s.lease) || !got.LastSeen.Equal(s.seen) || got.ByOperator != s.byOperator || !got.ClosedAt.Equal(s.closed) {
			m.t.Fatalf("session %+v, %v; want %+v", got, err, *s)
		}
	}
	err := hub.store.Do(ctx, func(tx mailbox.Tx) error {
		for _, e := range m.entries {
			if e.kind != mailbox.Directive {
				continue // by its message, seen or not: checkMail
			}
			got, err := tx.Entry(e.agent, e.key)
			if err != nil {
				return fmt.Errorf("entry %s is lost: %w", e.key, err)
			}
			if string(got.State) != e.state || string(got.Prior) != e.prior || got.Live != e.live {
				return fmt.Errorf("entry %s: %s prior %q live %v, want %s %q %v", e.key, got.State, got.Prior, got.Live, e.state, e.prior, e.live)
			}
		}
		for _, s := range m.sessions { // and nothing waits for somebody who can never come
			left, err := tx.OfSession(s.id)
			if err != nil {
				return err
			}
			if s.state != "active" && len(left) > 0 {
				return fmt.Errorf("%d entries wait for a session that ended", len(left))
			}
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range m.entries {
		if e.kind == mailbox.Directive {
			m.checkOwed(e.key, e.owed)
		}
	}
}

// checkMail compares all entries about a message, those included that nobody ever saw.
func (m *model) checkMail(x *mMessage) {
	m.t.Helper()
	rows, err := m.world.db.Query(`SELECT entries.kind, entries.agent, entries.session, entries.state, entries.prior, entries.live, entries.key
		FROM entries JOIN items ON items.n = entries.item WHERE items.id = ?`, x.id)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	var got, want []string
	line := func(kind, agent, session, state, prior string, live bool) string {
		return fmt.Sprintf("%s to %s#%s: %s prior %q live %v", kind, agent, session, state, prior, live)
	}
	// Two leases that end in the same instant: which of them lapses first, and so whether the sender's session still gets
	// what ends with it at once, is left open.
	atOnce := func(kind, session string) bool {
		s := m.session(session)
		return (kind == "response" || kind == "receipt") && s.state == "expired" && (x.resolved == stamp(s.closed) ||
			slices.ContainsFunc(m.entries, func(e *mEntry) bool { return e.m == x && e.kind == mailbox.Message && e.end.Equal(s.closed) }))
	}
	for rows.Next() {
		var kind, agent, session, state, prior, key string
		var live bool
		if err := rows.Scan(&kind, &agent, &session, &state, &prior, &live, &key); err != nil {
			m.t.Fatal(err)
		}
		if kind == "response" && x.track == "expired" && (live || state == "dropped") {
			state, live = "let go", false // the hub drops it when somebody comes for it
		}
		m.named(key, kind+" of "+x.id)
		if atOnce(kind, session) {
			continue
		}
		got = append(got, line(kind, agent, session, state, prior, live))
	}
	if err := rows.Err(); err != nil {
		m.t.Fatal(err)
	}
	for _, e := range m.entries {
		if e.m == x && !atOnce(string(e.kind), e.session) {
			state, live := e.state, e.live
			if e.kind == mailbox.Response && x.track == "expired" && (live || state == "dropped") {
				state, live = "let go", false
			}
			want = append(want, line(string(e.kind), e.agent, e.session, state, e.prior, live))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		m.t.Fatalf("mail about %s:\n%s\nwant\n%s", x.id, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkPush says whether an answer is owed exactly when there is one.
func (m *model) checkPush(x *mMessage) {
	m.t.Helper()
	o, _, err := m.world.hub.store.OwedOf(context.Background(), x.id)
	if !x.push || !x.terminal() {
		m.same("what is owed for "+x.id, err, inbox.ErrNotFound)
		return
	}
	want := inbox.OwedPending
	switch {
	case x.pushed:
		want = inbox.OwedDone
	case x.track == "expired":
		want = inbox.OwedGaveUp
	case x.track == "acknowledged":
		want = inbox.OwedMoot // its submitter has it: it is sent no more
	}
	if err != nil || o.State != want || o.Agent != x.agent {
		m.t.Fatalf("%s: the push is %s of %s, %v; want %s", x.id, o.State, o.Agent, err, want)
	}
}

// checkOwed says whether a directive is owed to its webhook.
func (m *model) checkOwed(key, webhook string) {
	m.t.Helper()
	o, _, err := m.world.hub.store.OwedOfEntry(context.Background(), key)
	switch {
	case webhook == "" && errors.Is(err, inbox.ErrNotFound), err == nil && webhook == "" && (o.State == inbox.OwedDone || o.State == inbox.OwedRefused):
	case err != nil || o.State != inbox.OwedPending || o.URL != webhook:
		m.t.Fatalf("%s: owed %s to %s, %v; want it pending to %q", key, o.State, o.URL, err, webhook)
	}
}

// documents holds every message, as the hub writes it, against its schema.
func (m *model) documents() {
	for _, x := range m.messages {
		if x.gone {
			continue
		}
		w := httptest.NewRecorder()
		m.world.hub.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/messages/"+x.id, nil))
		if w.Code != 200 {
			m.t.Fatal(w.Code, w.Body)
		}
		m.fits("ma2h/get-message", w.Body.Bytes())
	}
}
