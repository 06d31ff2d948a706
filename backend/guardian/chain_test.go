package guardian

import (
	"strings"
	"testing"

	"deskbell/backend/signing"
)

// The vectors of ACS §8.2, as its reference implementation publishes them.
func TestEntryHashVectors(t *testing.T) {
	previous := ""
	for i, v := range []struct{ entry, hash string }{
		{`{"entry_id":"1","step_id":"0b2f6f7e-0c1d-4e5f-8a9b-1c2d3e4f5a60","step_type":"steps/sessionStart","timestamp":"2026-09-19T10:00:00Z"}`,
			"1552a42d04ec72f9c18945400488e3f50fba5b3256537db01b705eea66e30373"},
		{`{"entry_id":"2","provenance_summary":{"entry_count":2,"entry_count_by_origin":{"tool_output":1,"user_input":1},"origins_seen":["user_input","tool_output"]},"request_hash":"1f73e15e340da6bc294e18e38557aef0241921fd3985c94266e1b7416c743058","step_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","step_type":"steps/toolCallRequest","timestamp":"2026-09-19T10:00:01Z"}`,
			"14e6d50a913e8295606bc0d86ee9cde870040e0e0a319b13ae15836128d0d111"},
		{`{"entry_id":"é-3","step_id":"c1d2e3f4-a5b6-4c7d-8e9f-0a1b2c3d4e5f","step_type":"steps/toolCallResult","timestamp":"2026-09-19T10:00:02Z"}`,
			"86e28e694a7e762f205dc0739e4764d9cb32ff2c2c03a56ca88ecbbe0f505229"},
	} {
		hash, err := entryHash(previous, []byte(v.entry))
		if err != nil || hash != v.hash {
			t.Errorf("entry %d: %s, %v; want %s", i+1, hash, err, v.hash)
		}
		previous = hash
	}
}

// Two steps as a hub links them: exactly five members, the request's hash with its signature.
func TestLinkVectors(t *testing.T) {
	start, err := Link("", Step{Request: "0b2f6f7e-0c1d-4e5f-8a9b-1c2d3e4f5a60", Method: "steps/sessionStart", SentAt: "2026-09-19T09:59:59Z",
		RequestHash: "7cd666645b876df215cf2d12d979cc9fbdd6c5eb3f0c789fbef7b4298346ea69"})
	if err != nil || start.Hash != "d2e1ad7337d863ec2cd5e6dc44c4f76c3b2c5c7dae23b692666b7d4466afcf47" {
		t.Errorf("%s, %v", start.Hash, err)
	}
	params := []byte(`{"acs_version":"0.1.0","metadata":{"agent_id":"agent","session_id":"5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"},"payload":{"arguments":{"command":{"value":"echo rm -rf /"}},"raw_command":"echo rm -rf /","tool":{"name":"Bash"}},"request_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","timestamp":"2026-09-19T10:00:00Z","signature":{"algorithm":"HMAC-SHA256","value":"yJ3BXf/Hfc3jSnSMgOoNVGQ+5LKBKakvctDwE52lrM0=","key_id":"k1"}}`)
	hash, err := RequestHash(params)
	if err != nil || hash != "e7b2c4c375320289a3567bc183457d072d6ac612afcd21d29ea4f02a4fd4f76d" {
		t.Errorf("%s, %v", hash, err)
	}
	call, err := Link(start.Hash, Step{Request: "8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10", Method: "steps/toolCallRequest", SentAt: "2026-09-19T10:00:00Z", RequestHash: hash})
	if err != nil || call.Hash != "7da9dff1a93d9c4e047e758c158b7ea4d35a5dff47146347f2b3e7133d59645a" {
		t.Errorf("%s, %v", call.Hash, err)
	}
	canonical, err := signing.Canonical(call.entry())
	if want := `{"entry_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","request_hash":"` + hash + `","step_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","step_type":"steps/toolCallRequest","timestamp":"2026-09-19T10:00:00Z"}`; err != nil || string(canonical) != want {
		t.Errorf("%s, %v", canonical, err)
	}
}

func TestLinkRefusesAHeadThatIsNone(t *testing.T) {
	for _, head := range []string{"x", "ab", strings.Repeat("a", 63), strings.Repeat("ab", 33)} {
		if _, err := Link(head, Step{}); err == nil {
			t.Errorf("head %q was taken", head)
		}
	}
}
