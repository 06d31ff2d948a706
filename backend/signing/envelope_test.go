package signing

import (
	"encoding/hex"
	"strings"
	"testing"

	"deskbell/backend/wire"
)

const (
	vectorSession = "5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"
	vectorRequest = `{"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0","method":"steps/toolCallRequest","params":{"acs_version":"0.1.0","metadata":{"agent_id":"agent","session_id":"5c3f1b8e-9a0d-4c2e-8f4b-2d6a7e9c1b30"},"payload":{"arguments":{"command":{"value":"echo rm -rf /"}},"raw_command":"echo rm -rf /","tool":{"name":"Bash"}},"request_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","timestamp":"2026-09-19T10:00:00Z"}}`
	vectorAnswer  = `{"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0","result":{"acs_version":"0.1.0","chain_hash":"14e6d50a913e8295606bc0d86ee9cde870040e0e0a319b13ae15836128d0d111","decision":"deny","reason_codes":["destructive_shell_command_blocked"],"reasoning":"blocked","request_id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","type":"final"}}`
	vectorError   = `{"error":{"code":-32005,"data":{"message":"request_id already used in this session","reason":"duplicate_request_id"},"message":"REPLAY_DETECTED"},"id":"8d0b6b0e-4d6b-4f7a-9d1c-1f1c7f0e2a10","jsonrpc":"2.0"}`
)

// vectorSecret is 00 01 … 1f.
func vectorSecret() []byte {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	return secret
}

func vectorKey(t *testing.T) []byte {
	t.Helper()
	key, err := SessionKey(vectorSecret(), vectorSession)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The published vectors, byte for byte.
func TestEnvelopeVectors(t *testing.T) {
	key := vectorKey(t)
	if got := hex.EncodeToString(key); got != "4e86230ba407bc623132e84189722dc2b4ab73f217ff67e0492c82fdf0d66309" {
		t.Errorf("session key %s", got)
	}
	for _, v := range []struct{ box, envelope, value string }{
		{"params", vectorRequest, "yJ3BXf/Hfc3jSnSMgOoNVGQ+5LKBKakvctDwE52lrM0="},
		{"result", vectorAnswer, "Shh4i+RWlfCNfAoFlE7gp5QUoyCI8jz3HMKHzH/2gG0="},
		{"error", vectorError, "AMU8w4bg7BqPglQ/J4nJOGo0M/qb75qE+yRijhJxIr8="},
	} {
		input, err := envelopeInput([]byte(v.envelope), v.box)
		if err != nil || string(input) != v.envelope {
			t.Errorf("%s: signed input %s, %v", v.box, input, err)
		}
		signed, err := SignEnvelope(key, "k1", []byte(v.envelope), v.box)
		if err != nil {
			t.Fatal(err)
		}
		box, _ := wire.Get(signed, v.box)
		if signature, _ := wire.Get(box, "signature"); wire.Text(signature, "value") != v.value {
			t.Errorf("%s: signed %s", v.box, signed)
		}
		if !VerifyEnvelope(key, signed, v.box) {
			t.Errorf("%s: its own signature is refused", v.box)
		}
		for _, wrong := range []string{
			strings.Replace(string(signed), v.value, strings.ToLower(v.value), 1),
			strings.Replace(string(signed), `"id":"8`, `"id":"9`, 1),
			strings.Replace(string(signed), `"HMAC-SHA256"`, `"none"`, 1),
			strings.Replace(string(signed), `"k1"`, `""`, 1),
			strings.Replace(string(signed), v.value, v.value+"\\n", 1),
		} {
			if wrong == string(signed) || VerifyEnvelope(key, []byte(wrong), v.box) {
				t.Errorf("%s: taken: %s", v.box, wrong)
			}
		}
	}
}

// The secret is a text: its characters are the key material, whatever they could be read as.
func TestEnvelopeSecretIsText(t *testing.T) {
	text := hex.EncodeToString(vectorSecret())
	for _, v := range []struct{ session, key string }{
		{vectorSession, "c8946392f5cf400ec4859ab776874d637b21752549ff86558d71ba4ad5d765e1"},
		{"77777777-7777-4777-8777-777777777777", "ebb3726c09c548bc36f3d8f9e41a4649c610be607ea0b09b1b858ccad3fba1a8"},
	} {
		if key, err := SessionKey([]byte(text), v.session); err != nil || hex.EncodeToString(key) != v.key {
			t.Errorf("%s: key %x, %v", v.session, key, err)
		}
	}
}

// Numbers and text of a real adapter's request, in canonical form.
func TestCanonicalACSArguments(t *testing.T) {
	got, err := Canonical([]byte(`{"z": {"value": [true, {"b": 1, "a": 2}]}, "f": {"value": 1.0}, "g": {"value": 0.1}, "h": {"value": 1e+21}, "n": {"value": null}, "s": {"value": "<\u00e9\u2028\ud83d\ude00&>"}}`))
	want := "{\"f\":{\"value\":1},\"g\":{\"value\":0.1},\"h\":{\"value\":1e+21},\"n\":{\"value\":null},\"s\":{\"value\":\"<é\u2028😀&>\"},\"z\":{\"value\":[true,{\"a\":2,\"b\":1}]}}"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
