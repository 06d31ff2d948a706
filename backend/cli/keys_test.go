package cli

import (
	"testing"

	"deskbell/backend/secrets"
)

// An agent's keys are its own, also beside one whose id begins like its own; of a file they are what stands in it.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	kept, err := secrets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent:a:0123", "agent:a:4567", "agent:a:b:89ab", "agent:ab:cdef", "secret:a"} {
		if err := kept.Set(name, "of "+name); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]int{"a": 2, "a:b": 1, "ab": 1, "b": 0} {
		list, err := agentKeys(dir, id)
		if err != nil || len(list) != want {
			t.Errorf("%s: %d keys, %v; want %d", id, len(list), err, want)
		}
	}
	for text, want := range map[string]int{
		"dbs_one\n":            1,
		"dbs_one\r\ndbs_two\n": 2,
		`{"agent_id":"a","token":"dbt_x","signing_secret":"dbs_x","ed25519_public_key":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}`: 2,
		"": 0, "{}": 0, `{"signing_secret":"x","ed25519_public_key":"short"}`: 0,
	} {
		list, err := keysIn([]byte(text))
		if len(list) != want && err == nil || (err != nil) != (want == 0) {
			t.Errorf("%q: %d keys, %v; want %d", text, len(list), err, want)
		}
	}
}
