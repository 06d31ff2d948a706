package acp

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"deskbell/backend/brief"
	"deskbell/backend/crew"
	"deskbell/backend/inbox"
	"deskbell/backend/protocol"
	"deskbell/backend/supervise"
	"deskbell/backend/wire"
)

// startWait is how long the person has to let a process start: whoever asked holds its request open.
const startWait = 10 * time.Minute

// startAsked asks the person whether an agent may start as a process, and starts it. The request is held meanwhile.
func (b *Binding) startAsked(ctx context.Context, q *request, self, a crew.Agent) (outcome, error) {
	command, ok := b.Settings.Get().Roles()[a.Role]
	if !ok {
		return outcome{}, faultf(notConfigured, "the operator has configured no command for this role").at("/params/role")
	}
	if !supervise.Supported() {
		return outcome{}, faultf(internalError, "%s", supervise.ErrUnsupported)
	}
	h := b.holds.begin(self.ID, a.Parent)
	var it inbox.Item
	err := b.do(ctx, func(t *turn) (err error) {
		if _, err = t.itself(q.who); err == nil {
			err = t.mayHave(q.who, a.Parent)
		}
		if err != nil {
			return err
		}
		facts := []wire.Member{str("asked by", self.ID), {Name: "config", Value: a.Config}}
		title := "Start a process: " + a.Role
		if len(title) > maxTitle {
			facts = append(facts, str("role", a.Role))
		}
		if a.Parent != "" {
			facts = append(facts, str("below", a.Parent))
		}
		it = t.forPerson(q, self, "", says{title: brief.Clip(brief.Line(title), maxTitle), rest: data(wire.Compose(facts)),
			body: "Your command for this role would run on this machine, as you. It gets a credential with which it can act as the new agent, and it ends with the agent, or with the hub."})
		it.Kind, it.State, it.Priority, it.ExpiresAt, it.Content.Held = inbox.Question, inbox.Open, inbox.High, t.now.Add(startWait), true
		it.Content.Command = command
		it.Content.Request = &inbox.Request{Mode: inbox.Select, Options: []inbox.Option{{Value: inbox.Allow, Label: "Start it"}, {Value: inbox.Deny, Label: "Do not start it"}}}
		it, err = t.insert(it, self.Peer)
		return err
	})
	if err != nil {
		h.free()
		return outcome{}, err
	}
	return outcome{wait: func(ctx context.Context) ([]byte, error) {
		defer h.free()
		ended, err := b.await(ctx, h, q.who, self.Peer, it.ID)
		if err != nil {
			return nil, err
		}
		if err := b.Inbox.Delivered(context.WithoutCancel(ctx), it.ID); err != nil {
			return nil, err
		}
		switch {
		case ended.State == inbox.Expired:
			return nil, faultf(expired, "nobody said in time whether it may start")
		case ended.Outcome.Verdict() != inbox.Allowed:
			text := "the person did not let it start"
			if ended.Outcome.Comment != "" {
				text += ": " + ended.Outcome.Comment
			}
			return nil, faultf(declined, "%s", text)
		}
		a, err := b.start(context.WithoutCancel(ctx), q.who, a, command)
		return spawned(a, commented(ended)...), err
	}}, nil
}

// start makes an agent and starts its process.
func (b *Binding) start(ctx context.Context, w Who, a crew.Agent, command []string) (crew.Agent, error) {
	a, err := b.make(ctx, w, a)
	if err != nil {
		return a, err
	}
	token, back := b.Fleet.Lend(a.Peer)
	home, err := os.UserHomeDir()
	if at, gone := os.Stat(home); err != nil || gone != nil || !at.IsDir() {
		home = os.TempDir() // as of an account that runs a service
	}
	env := append(environment(), "ACP_URL="+b.URL()+"/acp", "ACP_TOKEN="+token, "ACP_AGENT_ID="+a.ID, "ACP_ROLE="+a.Role, "ACP_PARENT_ID="+a.Parent, "ACP_CONFIG="+string(a.Config))
	p, err := b.procs.start(a.ID, supervise.Command{Argv: command, Env: env, Dir: home}, func(how, said string) {
		back()
		b.ended(a.ID, how, said)
	})
	if err != nil {
		back()
		b.ended(a.ID, err.Error(), "")
		return a, faultf(internalError, "the process could not be started: %s", err)
	}
	// It may have been stopped between the two: then its process must not go on.
	if now, err := b.Crew.Agent(ctx, a.ID); err != nil || now.State != crew.Running {
		p.Kill()
		return a, faultf(notAuthorized, "this agent was stopped")
	}
	return a, nil
}

// passed are the variables of the hub's environment that a process gets. Everything else, secrets above all, stays here.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"}

func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		for _, p := range passed {
			if name == p || strings.HasPrefix(name, "LC_") {
				env = append(env, v)
				break
			}
		}
	}
	return env
}

// ended notes that an agent's process has ended. Where it failed by itself the person is told.
func (b *Binding) ended(id, how, said string) {
	ctx := context.Background()
	err := b.do(ctx, func(t *turn) error {
		a, err := t.CrewAgent(id)
		if err != nil || a.State != crew.Running { // it was killed
			return err
		}
		reason := "its process ended"
		if b.procs.over() {
			reason, how = "the hub that ran its process ended", ""
		}
		if how != "" {
			reason = "its process failed: " + how
		}
		if _, err = t.stop(a, reason); err != nil || how == "" {
			return err
		}
		it := t.forPerson(&request{raw: note("agent.status")}, a, "", says{title: "The process of " + a.ID + " failed: " + how})
		if said != "" {
			it.Content.Body, it.Content.Context = "The last that it wrote to its standard error:", data(wire.Compose([]wire.Member{str("stderr", said)}))
		}
		it.Kind, it.State = inbox.Notice, inbox.Delivered
		_, err = t.insert(it, a.Peer)
		return err
	})
	if err != nil && !errors.Is(err, crew.ErrUnknownAgent) {
		b.Log.Error("the end of a process could not be noted", "agent", id, "err", err)
	}
}

// processes are those that run, by agent. The zero value is ready.
type processes struct {
	mu     sync.Mutex
	all    map[string]*supervise.Process
	closed bool
	under  sync.WaitGroup // those who wait for an end
}

// start starts a process; ended is told, once, when nothing of it is left.
func (ps *processes) start(agent string, c supervise.Command, ended func(how, said string)) (*supervise.Process, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed {
		return nil, protocol.ErrStopping
	}
	p, err := supervise.Start(c)
	if err != nil {
		return nil, err
	}
	if ps.all == nil {
		ps.all = map[string]*supervise.Process{}
	}
	ps.all[agent] = p
	ps.under.Go(func() {
		how, said := p.Failure()
		ps.mu.Lock()
		delete(ps.all, agent)
		ps.mu.Unlock()
		ended(how, said)
	})
	return p, nil
}

// over says whether all processes are being ended because the hub ends.
func (ps *processes) over() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.closed
}

// end begins to end the processes of agents, those that have one, all at once. It does not wait for that: see gone.
func (ps *processes) end(agents []string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed {
		return // all are being ended
	}
	for _, p := range ps.of(agents) {
		ps.under.Go(p.Kill)
	}
}

// gone returns when nothing is left of the processes of agents that are being ended.
func (ps *processes) gone(agents []string) {
	ps.mu.Lock()
	found := ps.of(agents)
	ps.mu.Unlock()
	for _, p := range found {
		<-p.Done()
	}
}

// of are the processes of agents; it wants the lock.
func (ps *processes) of(agents []string) []*supervise.Process {
	var found []*supervise.Process
	for _, id := range agents {
		if p := ps.all[id]; p != nil {
			found = append(found, p)
		}
	}
	return found
}

// close ends all processes and starts none any more.
func (ps *processes) close() {
	ps.mu.Lock()
	ps.closed = true
	for _, p := range ps.all {
		ps.under.Go(p.Kill)
	}
	ps.mu.Unlock()
	ps.under.Wait()
}
