package signing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// signable is what the six contexts have in common.
type signable interface {
	context
	Sign(k Key, t int64, jti string) (string, error)
	Verify(k Key, header string, now time.Time) error
}

type variant struct {
	About       string
	CallbackURL string `json:"callback_url"`
	To          string
	Object      json.RawMessage
}

type vector struct {
	variant
	Kind, Secret, JTI           string
	T                           int64
	Content, Digest, Signed, V1 string
	Ed25519                     string
	Tampered                    []variant
}

func (v variant) context(kind string) (signable, error) {
	switch kind {
	case "response":
		return ResponseOf(v.Object, v.CallbackURL)
	case "response-entry":
		return ResponseEntryOf(v.Object, v.To)
	case "directive":
		return DirectiveOf(v.Object)
	case "message":
		return MessageEntryOf(v.Object)
	case "receipt":
		return ReceiptOf(v.Object, v.To)
	case "ack":
		return AckOf(v.Object)
	}
	return nil, fmt.Errorf("no context is called %q", kind)
}

func read(t testing.TB, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// testKey is the Ed25519 key whose seed counts from 0 to 31.
func testKey() Key {
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	return Ed25519Key(ed25519.NewKeyFromSeed(seed))
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d vectors, %v: some are missing", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var v vector
			read(t, file, &v)
			c, err := v.context(v.Kind)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Bytes(v.T, v.JTI); err != nil || string(got) != v.Signed {
				t.Errorf("signed bytes\n got %s, %v\nwant %s", got, err, v.Signed)
			}
			if got, err := Digest([]byte(v.Content)); err != nil || got != v.Digest {
				t.Errorf("digest %s, %v", got, err)
			}
			keys := map[string]Key{v.V1: HMACKey([]byte(v.Secret))}
			if v.Ed25519 != "" {
				keys[v.Ed25519] = testKey()
			}
			for v1, key := range keys {
				checkSignature(t, v, c, key, v1)
			}
		})
	}
}

func checkSignature(t *testing.T, v vector, c signable, key Key, v1 string) {
	want := fmt.Sprintf("t=%d,jti=%s,v1=%s", v.T, v.JTI, v1)
	header, err := c.Sign(key, v.T, v.JTI)
	if err != nil || header != want {
		t.Errorf("%s: header\n got %s, %v\nwant %s", key.Alg(), header, err, want)
	}
	now := time.Unix(v.T, 0)
	if err := c.Verify(key, Prefixed(want), now.Add(Window)); err != nil {
		t.Errorf("%s: own signature: %v", key.Alg(), err)
	}
	if err := c.Verify(key, want, now.Add(Window+time.Second)); !errors.Is(err, ErrStale) {
		t.Errorf("%s: late: %v", key.Alg(), err)
	}
	if err := c.Verify(key, want, now.Add(-Window-time.Second)); !errors.Is(err, ErrStale) {
		t.Errorf("%s: early: %v", key.Alg(), err)
	}
	if err := c.Verify(key, want+"!", now); !errors.Is(err, ErrMalformed) {
		t.Errorf("%s: malformed: %v", key.Alg(), err)
	}
	if err := c.Verify(HMACKey([]byte("another")), want, now); !errors.Is(err, ErrMismatch) {
		t.Errorf("%s: another key: %v", key.Alg(), err)
	}
	moved := fmt.Sprintf("t=%d,jti=%s,v1=%s", v.T+1, v.JTI, v1)
	if err := c.Verify(key, moved, now); !errors.Is(err, ErrMismatch) {
		t.Errorf("%s: another time: %v", key.Alg(), err)
	}
	for _, bad := range v.Tampered {
		if bad.CallbackURL == "" {
			bad.CallbackURL = v.CallbackURL
		}
		if bad.To == "" {
			bad.To = v.To
		}
		c, err := bad.context(v.Kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Verify(key, want, now); !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %s: %v, want a mismatch", key.Alg(), bad.About, err)
		}
	}
}

func TestDigestVectors(t *testing.T) {
	var sets []struct{ About, JSON, Canonical, Digest string }
	read(t, "testdata/sets/digests.json", &sets)
	if len(sets) < 7 {
		t.Fatalf("%d digests: some are missing", len(sets))
	}
	for _, s := range sets {
		got, err := Canonical([]byte(s.JSON))
		if err != nil || s.Canonical != "" && string(got) != s.Canonical {
			t.Errorf("%s: %s, %v", s.About, got, err)
		}
		if got, err := Digest([]byte(s.JSON)); err != nil || got != s.Digest {
			t.Errorf("%s: %s, %v", s.About, got, err)
		}
	}
}

func TestShapeVectors(t *testing.T) {
	var set struct {
		Signed, Secret, V1 string
		Shapes             []struct {
			About, V1 string
			Bytes     int
		}
	}
	read(t, "testdata/sets/shapes.json", &set)
	if len(set.Shapes) < 9 {
		t.Fatalf("%d shapes: some are missing", len(set.Shapes))
	}
	mac, err := HMACKey([]byte(set.Secret)).sign([]byte(set.Signed))
	if err != nil || base64.RawURLEncoding.EncodeToString(mac) != set.V1 {
		t.Errorf("v1 %x, %v", mac, err)
	}
	for _, s := range set.Shapes {
		got, err := decodeMAC(s.V1)
		if len(got) != s.Bytes || (err == nil) != (s.Bytes > 0) || WellFormed(s.V1) != (s.Bytes > 0) {
			t.Errorf("%s: %d bytes, %v", s.About, len(got), err)
		}
		if _, err := ParseHeader("t=1,jti=j,v1=" + s.V1); (err == nil) != (s.Bytes > 0) {
			t.Errorf("%s in a header: %v", s.About, err)
		}
	}
	if padded, _ := decodeMAC(set.V1 + "="); !bytes.Equal(padded, mac) {
		t.Error("padding changes the bytes")
	}
}

func TestEd25519PublicKey(t *testing.T) {
	key := testKey()
	if got := hex.EncodeToString(key.public); got != "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8" {
		t.Errorf("public key %s", got)
	}
	c := AckContext{Version: "0.6", InReplyTo: "msg_1", By: "agent:a", AckedAt: "2026-01-01T00:00:00Z"}
	header, err := c.Sign(key, 1000, "j")
	if err != nil {
		t.Fatal(err)
	}
	public := Ed25519Verifier(key.public)
	if err := c.Verify(public, header, time.Unix(1000, 0)); err != nil {
		t.Error(err)
	}
	if _, err := c.Sign(public, 1000, "j"); err == nil {
		t.Error("a public key signed")
	}
	if key.Alg() != AlgEd25519 || public.Alg() != AlgEd25519 || HMACKey([]byte("x")).Alg() != AlgHMAC || (Key{}).Alg() != "" {
		t.Error("wrong algorithm names")
	}
	for _, k := range []Key{{}, HMACKey(nil), Ed25519Key(nil), Ed25519Verifier(nil)} {
		if _, err := c.Sign(k, 1, "j"); err == nil {
			t.Error("an empty key signed")
		}
		if err := c.Verify(k, header, time.Unix(1000, 0)); !errors.Is(err, ErrMismatch) {
			t.Errorf("an empty key verified: %v", err)
		}
	}
}
