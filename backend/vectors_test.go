package backend

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskbell/backend/signing"
)

// vectorsDir names a folder of the protocol's published vectors. The project keeps the facts it needs of them beside
// backend/signing and schemas; this runs the files themselves, whichever there are.
const vectorsDir = "MA2H_VECTORS"

// obligations maps the vectors that are behaviour to the tests that prove it, as docs/conformance-ma2h.md names them.
var obligations = map[string][]string{
	"dp-001": {"backend/signing.TestVectors", "backend/signing.TestReplayWindow", "backend.TestCallbacksAreSignedWhateverTheirAuth"},
	"dp-002": {"backend.TestDialogues/pull/unknown and foreign look alike", "backend.TestDialogues/resolve/cancelling"},
	"dp-003": {"backend/signing.TestVectors"},
	"dp-004": {"backend/signing.TestDigestVectors"},
	"dp-005": {"backend/signing.TestVectors", "backend.TestDirectives"},
	"dp-006": {"backend/signing.TestVectors"},
	"dp-007": {"backend.TestClaims", "backend.TestDrainVisibility"},
	"dp-008": {"backend/signing.TestVectors"},
	"dp-009": {"backend/signing.TestVectors"},
	"dp-010": {"backend.TestInboxAck", "backend.TestAckRaces", "backend.TestDialogues/pull/acknowledging: the first counts", "backend.TestPresenceIsTheOperators"},
	"dp-011": {"backend/signing.TestVectors", "backend.TestDeliveredForm"},
	"dp-012": {"backend/signing.TestVectors"},
	"dp-013": {"backend/signing.TestVectors", "backend.TestResponseEntry"},
	"dp-014": {"backend/signing.TestVectors"},
	"dp-015": {"backend/signing.TestVectors"},
	"dp-016": {"backend/signing.TestVectors", "backend.TestReceipts"},
	"dp-017": {"backend/signing.TestVectors"},
	"dp-018": {"backend/signing.TestVectors", "backend.TestClaims"},
	"dp-019": {"backend.TestRegistration", "backend.TestHashAgentsGetNoSession", "backend.TestLiveSessionCap", "backend.TestRenewal", "backend.TestTerminalTouchpoints",
		"backend.TestKillSwitch", "backend.TestMarkerRidesTheFirstEnd", "backend.TestSessionVisibility", "backend.TestStopRacesRegistration", "backend.TestStopBetweenTheTransactionsOfARegistration"},
	"dp-020": {"backend.TestDrainVisibility", "backend.TestTerminalTouchpoints", "backend.TestDrainsShareExactlyOnce", "backend.TestSiblingRescues", "backend.TestDeliveredForm",
		"backend.TestInboxAck", "backend.TestFleetMailIsReadable", "backend.TestWebhookDeliversAndTheMailboxStaysTheTruth", "backend.TestWebhookGetsDirectivesAlone"},
	"dp-021": {"backend.TestZombieSocket", "backend.TestStreamIsKeptAlive", "backend.TestStreamHold", "backend.TestLastEventIDIsNoAcknowledgment", "backend.TestStreamIsProvisional", "backend.TestMailboxCapability", "backend.TestPresenceAndReachability"},
	"dp-022": {"backend.TestMailboxTrack", "backend.TestEveryEndBetweenAgentsIsPushed", "backend.TestReceipts", "backend.TestBounceNeverRewritesAnAnswer", "backend.TestSettledInDueOrder", "backend.TestModel"},
	"dp-023": {"backend.TestTerminalTouchpoints", "backend.TestAllowlist", "backend.TestDestination", "backend.TestSubmitAcks", "backend.TestInterAgentIsOptIn", "backend.TestIdempotencyAcrossSessions"},
	"dp-024": {"backend.TestResolversOfAddressed"},
	"dp-025": {"backend/signing.TestShapeVectors"},
	"dp-026": {"backend.TestDialogues/ask/duplicate values, with different labels"},
	"dp-027": {"backend.TestDialogues/ask/input schemas nobody could answer", "backend.TestDialogues/ask/input schemas that can be answered"},
	"dp-028": {"backend.TestDialogues/ask/an edited answer travels as it is; an option is none", "backend.TestDialogues/ask/a synthesized option typed by hand is no edit"},
	"dp-029": {"backend.TestDialogues/version/corrections apply at every minor", "backend.TestDialogues/version/allow_edit is ignored below 0.6 and kept as it was sent"},
	// The audits of the text itself: what proves each of their points, version 0.3 and 0.4, then 0.5.
	"pa-001": {"backend.TestStateByteForByte", "backend.TestUnsignableIsNotDelivered", "backend.TestDialogues/pull/unknown and foreign look alike", "backend/signing.TestCanonical",
		"backend/delivery.TestDial", "backend.TestFirstEndIsLinearizable", "store.TestKilledAtEveryCommitPoint", "backend.TestEveryEndIsPushed", "backend.TestDirectives",
		"backend.TestAckRaces", "backend.TestPresenceAndReachability"},
	"pa-002": {"backend.TestAddressGates", "backend.TestTerminalTouchpoints", "backend.TestSubmitAcks", "backend.TestResolversOfAddressed", "backend.TestMailboxTrack",
		"backend.TestEveryEndBetweenAgentsIsPushed", "backend.TestInterAgentIsOptIn", "backend.TestStreamIsProvisional", "backend.TestDrainVisibility", "backend.TestDeliveredForm",
		"backend/signing.TestVectors", "backend.TestKillSwitch", "backend.TestSessionVisibility", "backend.TestWaitingDrainWakes"},
}

// published is a vector as it is published; which members there are depends on what it is about.
type published struct {
	ID, Class, Target, Expect string
	Input                     json.RawMessage
	Key                       string          `json:"test_key"`
	Signed                    json.RawMessage `json:"signed_context"`
	Canonical                 string          `json:"canonical_jcs"`
	Content                   string          `json:"payload_canonical_jcs"`
	ContentDigest             string          `json:"payload_sha256"`
	Ack                       string          `json:"ack_canonical_jcs"`
	Header, V1, T, JTI        string
	Payload, Entry            json.RawMessage
	Directive                 json.RawMessage
	AckObject                 json.RawMessage `json:"ack"`
	Me                        struct {
		To string `json:"reconstructed_to"`
	} `json:"drain_identity"`
	HonestMe struct {
		To string `json:"reconstructed_to"`
	} `json:"honest_drain_identity"`
	OtherMe struct {
		To string `json:"reconstructed_to"`
	} `json:"replay_drain_identity"`
	HonestPayload     json.RawMessage `json:"honest_payload"`
	TamperedPayload   json.RawMessage `json:"tampered_payload"`
	HonestDirective   json.RawMessage `json:"honest_directive"`
	TamperedDirective json.RawMessage `json:"tampered_directive"`
	HonestAck         json.RawMessage `json:"honest_ack"`
	TamperedAck       json.RawMessage `json:"tampered_ack"`
	HonestEntry       json.RawMessage `json:"honest_entry"`
	TamperedEntries   []struct {
		Reason string
		Entry  json.RawMessage
	} `json:"tampered_entries"`
	Deliveries []struct {
		T, JTI, Header string
		Canonical      string `json:"canonical_jcs"`
	}
	Cases []struct {
		Value, Expect string
		Length        int    `json:"decoded_length"`
		Same          string `json:"decodes_identically_to"`
	}
}

type signable interface {
	Sign(signing.Key, int64, string) (string, error)
	Verify(signing.Key, string, time.Time) error
	Bytes(int64, string) ([]byte, error)
}

func TestPublishedVectors(t *testing.T) {
	dir := os.Getenv(vectorsDir)
	if dir == "" {
		t.Skipf("%s names no folder of published vectors", vectorsDir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d vectors, %v", dir, len(files), err)
	}
	proofs := testsOf(t)
	entries := map[string]json.RawMessage{} // of the vectors that others refer to
	for _, file := range files {
		var v published
		readVector(t, file, &v)
		if v.Entry != nil {
			entries[v.ID] = v.Entry
		}
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var v published
			readVector(t, file, &v)
			if len(name) < 6 {
				t.Fatal("not the name of a vector")
			}
			if name[:3] == "sv-" {
				runSchemaVector(t, v)
				return
			}
			tests, known := obligations[name[:6]]
			if !known || len(tests) == 0 {
				t.Fatal("no test is known to prove it: add it to the table of obligations")
			}
			for _, test := range tests {
				if !proofs.canFail[test] {
					t.Errorf("there is no test %s", test)
				}
			}
			runFixture(t, v, entries)
		})
	}
	examples, err := filepath.Glob(filepath.Join(dir, "examples", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range examples {
		t.Run("examples/"+filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var v struct{ Type, Resolution string }
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			switch {
			case v.Resolution != "":
				fits(t, "ma2h/response", raw)
			case v.Type == "directive" || v.Type == "receipt":
				fits(t, "ma2h/inbound-message", raw)
			default:
				fits(t, "ma2h/message", raw)
			}
		})
	}
}

func readVector(t *testing.T, file string, v *published) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

var versionFolder = regexp.MustCompile(`^v\d+\.\d+/`)

func runSchemaVector(t *testing.T, v published) {
	file, part, _ := strings.Cut(versionFolder.ReplaceAllString(v.Target, ""), "#/$defs/")
	name := "ma2h/" + strings.TrimSuffix(file, ".schema.json")
	if part != "" {
		name = map[string]string{"sessionList": "ma2h/session-list", "sessionEnvelope": "ma2h/session-envelope", "registerRequest": "ma2h/session-register"}[part]
	}
	set, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	bad, err := set.Validate(name, v.Input)
	if err != nil {
		t.Fatal(err)
	}
	if v.Expect != "valid" && v.Expect != "invalid" || (len(bad) == 0) != (v.Expect == "valid") {
		t.Errorf("expected %s, got %v", v.Expect, bad)
	}
}

// runFixture reproduces the bytes of a vector that has some.
func runFixture(t *testing.T, v published, entries map[string]json.RawMessage) {
	key := signing.HMACKey([]byte(v.Key))
	var signed struct {
		URL string `json:"callback_url"`
		T   string
		JTI string
	}
	if v.Signed != nil {
		if err := json.Unmarshal(v.Signed, &signed); err != nil {
			t.Fatal(err)
		}
		if v.T == "" {
			v.T, v.JTI = signed.T, signed.JTI
		}
		canonical, err := signing.Canonical(v.Signed)
		if err != nil || (v.Canonical != "" && string(canonical) != v.Canonical) {
			t.Errorf("canonical context\n got %s, %v\nwant %s", canonical, err, v.Canonical)
		}
		mac := hmac.New(sha256.New, []byte(v.Key))
		mac.Write(canonical)
		if got := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)); got != v.V1 {
			t.Errorf("v1 %s, want %s", got, v.V1)
		}
	}
	// of is the context of an object, whichever kind it is.
	of := func(object json.RawMessage, to string) signable {
		var kind struct{ Type, Resolution string }
		if err := json.Unmarshal(object, &kind); err != nil {
			t.Fatal(err)
		}
		var c signable
		var err error
		switch {
		case kind.Resolution != "":
			c, err = signing.ResponseEntryOf(object, to)
		case kind.Type == "receipt":
			c, err = signing.ReceiptOf(object, to)
		case kind.Type == "directive":
			c, err = signing.DirectiveOf(object)
		case kind.Type == "ack":
			c, err = signing.AckOf(object)
		default:
			c, err = signing.MessageEntryOf(object)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pushed := func(payload json.RawMessage) signable {
		var p struct{ Response, State json.RawMessage }
		var s struct {
			Version    string  `json:"ma2h_version"`
			ID         string  `json:"id"`
			Resolution string  `json:"resolution"`
			OutcomeID  string  `json:"resolution_id"`
			At         *string `json:"resolved_at"`
		}
		if err := errors.Join(json.Unmarshal(payload, &p), json.Unmarshal(v.Signed, &s)); err != nil {
			t.Fatal(err)
		}
		return signing.ResponseContext{Version: s.Version, CallbackURL: signed.URL, MessageID: s.ID, Resolution: s.Resolution, ResolutionID: s.OutcomeID,
			ResolvedAt: s.At, Response: p.Response, State: p.State}
	}
	seconds := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	honest := func(c signable, t0, jti, canonical, header string) {
		t.Helper()
		at := seconds(t0)
		got, err := c.Bytes(at, jti)
		if err != nil || (canonical != "" && string(got) != canonical) {
			t.Errorf("context\n got %s, %v\nwant %s", got, err, canonical)
		}
		h, err := c.Sign(key, at, jti)
		if want := strings.TrimPrefix(header, signing.HeaderName+": "); err != nil || h != want {
			t.Errorf("header\n got %s, %v\nwant %s", h, err, want)
		}
		if err := c.Verify(key, header, time.Unix(at, 0)); err != nil {
			t.Errorf("its own signature: %v", err)
		}
	}
	header := v.Header
	if header == "" && v.V1 != "" && v.T != "" {
		header = "t=" + v.T + ",jti=" + v.JTI + ",v1=" + v.V1
	}
	tampered := func(what string, c signable) {
		t.Helper()
		if err := c.Verify(key, header, time.Unix(seconds(v.T), 0)); !errors.Is(err, signing.ErrMismatch) {
			t.Errorf("%s: %v, want a mismatch", what, err)
		}
	}
	done := false
	check := func(object json.RawMessage, f func()) {
		if object != nil {
			done = true
			f()
		}
	}
	check(v.Payload, func() {
		if v.Content != "" {
			got, err := signing.Canonical(v.Payload)
			digest, derr := signing.Digest(v.Payload)
			if err != nil || derr != nil || string(got) != v.Content || digest != v.ContentDigest {
				t.Errorf("payload\n got %s %s, %v %v\nwant %s %s", got, digest, err, derr, v.Content, v.ContentDigest)
			}
		}
		if v.Signed != nil {
			honest(pushed(v.Payload), v.T, v.JTI, v.Canonical, header)
		}
	})
	check(v.Directive, func() { honest(of(v.Directive, ""), v.T, v.JTI, v.Canonical, header) })
	check(v.AckObject, func() { honest(of(v.AckObject, ""), v.T, v.JTI, v.Canonical, header) })
	check(v.Entry, func() { honest(of(v.Entry, v.Me.To), v.T, v.JTI, v.Canonical, header) })
	check(v.HonestPayload, func() {
		honest(pushed(v.HonestPayload), v.T, v.JTI, "", header)
		tampered("payload", pushed(v.TamperedPayload))
	})
	check(v.HonestDirective, func() {
		honest(of(v.HonestDirective, ""), v.T, v.JTI, "", header)
		tampered("directive", of(v.TamperedDirective, ""))
	})
	check(v.HonestAck, func() {
		honest(of(v.HonestAck, ""), v.T, v.JTI, "", header)
		tampered("ack", of(v.TamperedAck, ""))
	})
	check(v.HonestEntry, func() {
		honest(of(v.HonestEntry, v.HonestMe.To), v.T, v.JTI, "", header)
		for _, x := range v.TamperedEntries {
			tampered(x.Reason, of(x.Entry, v.HonestMe.To))
		}
		if v.OtherMe.To != "" {
			tampered("another session", of(v.HonestEntry, v.OtherMe.To))
		}
	})
	for _, d := range v.Deliveries {
		done = true
		honest(of(entries["dp-011-entry-message-signature"], ""), d.T, d.JTI, d.Canonical, d.Header)
	}
	for _, c := range v.Cases {
		done = true
		bytes, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(c.Value, "="))
		_, herr := signing.ParseHeader("t=1,jti=j,v1=" + c.Value)
		if well := c.Expect == "well-formed"; signing.WellFormed(c.Value) != well || (herr == nil) != well || (well && (err != nil || (c.Length > 0 && len(bytes) != c.Length))) {
			t.Errorf("%s: well-formed %v, %v, %d bytes; want %s", c.Value, signing.WellFormed(c.Value), herr, len(bytes), c.Expect)
		}
	}
	if v.V1 != "" && !done {
		t.Error("it has a signature that nothing here looked at")
	}
}
