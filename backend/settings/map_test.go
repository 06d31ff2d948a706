package settings

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deskbell/backend/inbox"
)

type nothing struct{}

func (nothing) Settings(context.Context) (map[string]string, error) { return nil, nil }

func load(t testing.TB) *Settings {
	t.Helper()
	s, err := Load(t.Context(), nothing{}, "me", func(context.Context, map[string]string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A list is taken whole or refused with the entry that is wrong.
func TestMAPLists(t *testing.T) {
	s := load(t)
	for _, c := range []struct{ key, value, want string }{
		{MAPSecrets, `["github:repo=write=TOKEN"]`, ""},
		{MAPSecrets, `["a=B","c=D:api_key"]`, ""},
		{MAPSecrets, `["a=B","nope"]`, "entry 2 must be SCOPE=NAME"},
		{MAPSecrets, `["a=B:password"]`, "none of bearer_token"},
		{MAPSecrets, `["a=no name"]`, "name of a secret"},
		{MAPSecrets, `["a=B","a=C"]`, `"a" is there twice`},
		{MAPSecrets, `"a=B"`, "list of texts"},
		{MAPSecrets, `null`, "list of texts"},
		{MAPSecrets, `["a\nb=C"]`, "one line"},
		{MAPWorkspaces, `["planner=/srv/a=b"]`, ""},
		{MAPWorkspaces, `["planner=srv"]`, "absolute path"},
		{MAPWorkspaces, `["/srv"]`, "AGENT=FOLDER"},
		{MAPPeers, `["hub-b=ws://127.0.0.1:7000/map","hub-c=wss://example.org/map secret:C"]`, ""},
		{MAPPeers, `["hub-b=ws://example.org/map"]`, "wss"},
		{MAPPeers, `["hub-b=https://example.org/map"]`, "wss"},
		{MAPPeers, `["hub-b=wss://me:pw@example.org/map"]`, "without a user"},
		{MAPPeers, `["hub-b=wss://example.org/map token"]`, "secret:NAME"},
		{MAPPeers, `["hub b=wss://example.org/map"]`, "SYSTEM=URL"},
	} {
		err := s.Patch(t.Context(), map[string]json.RawMessage{c.key: json.RawMessage(c.value)})
		var bad *inbox.InvalidError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %s: %v", c.key, c.value, err)
		case c.want != "" && (!errors.As(err, &bad) || bad.Fields[0].Pointer != "/"+c.key || !strings.Contains(bad.Fields[0].Message, c.want)):
			t.Errorf("%s %s: %v, want %s", c.key, c.value, err, c.want)
		}
	}
	v := s.Get()
	if got := v.MAPSecrets(); len(got) != 2 || got[1] != (MAPSecret{"c", "D", "api_key"}) {
		t.Errorf("%+v", got)
	}
	if got := v.MAPWorkspaces(); len(got) != 1 || got[0] != (MAPWorkspace{"planner", "/srv/a=b"}) {
		t.Errorf("%+v", got)
	}
	if got := v.MAPPeers(); len(got) != 2 || got[1] != (MAPPeer{"hub-c", "wss://example.org/map", "C"}) {
		t.Errorf("%+v", got)
	}
}

// No entry, whatever it is, is anything but taken or refused; what is taken is what was meant.
func FuzzMAPEntries(f *testing.F) {
	for _, seed := range []string{"a=B", "a=B:api_key", "planner=/srv", "hub=wss://example.org/map secret:X", "=", "a=", "hub=ws://[::1]:1/map"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		if x, problem := parseMAPSecret(entry); problem == "" && (x.Scope == "" || x.Secret == "" || !mapTypes[x.Type]) {
			t.Errorf("%q: %+v", entry, x)
		}
		if x, problem := parseMAPWorkspace(entry); problem == "" && (x.Agent == "" || !strings.HasPrefix(x.Dir, "/")) {
			t.Errorf("%q: %+v", entry, x)
		}
		if x, problem := parseMAPPeer(entry); problem == "" && !strings.HasPrefix(x.URL, "ws") {
			t.Errorf("%q: %+v", entry, x)
		}
	})
}
