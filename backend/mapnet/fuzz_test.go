package mapnet

import (
	"encoding/json"
	"testing"
)

// No address breaks the one who reads it, and one that is taken has one meaning.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{`"a"`, `{"agent":"a"}`, `{"agents":["a","b"]}`, `{"scope":"s"}`, `{"role":"r","within":"s"}`, `{"children":true,"depth":2}`, `{"broadcast":true}`,
		`{"system":true}`, `{"participants":"all"}`, `{"system":"x","agent":"a"}`, `{"agent":1}`, `null`, `[]`, `{"depth":0,"parent":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := parseAddress(raw)
		if err == nil && a.form == "" {
			t.Errorf("%s has no form", raw)
		}
		if err == nil && !json.Valid(raw) {
			t.Errorf("%q is no JSON and was taken", raw)
		}
	})
}

// No filter and no event break the comparison, and a filter without words wants everything.
func FuzzFilter(f *testing.F) {
	f.Add([]byte(`{"eventTypes":["agent.*"],"agents":["a"]}`), []byte(`{"agentId":"a","message":{"meta":{"priority":"urgent"}}}`))
	f.Add([]byte(`{"mail":{"conversationId":"c"},"environmentMatch":{"os.type":"linux"}}`), []byte(`{"turn":{"threadId":"t"}}`))
	f.Fuzz(func(t *testing.T, filter, data []byte) {
		var x Filter
		if json.Unmarshal(filter, &x) != nil {
			t.Skip() // never gets as far
		}
		tx := &Tx{st: newState()}
		e := Logged{Event: Event{Type: "agent_registered", Source: "a", Data: data}}
		tx.matches(&x, e)
		if !tx.matches(nil, e) || !tx.matches(&Filter{}, e) {
			t.Error("nothing asked for, and not everything came")
		}
	})
}
