package signing

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : [ 1.0 , true , null ] , "a" : "x" } `:                                         `{"a":"x","b":[1,true,null]}`,
		`{"\ue000":1,"\ud800\udc00":2,"a":3,"":4,"aa":5}`:                                       "{\"\":4,\"a\":3,\"aa\":5,\"\U00010000\":2,\"\ue000\":1}",
		`{"\ufb33":1,"\u20ac":2,"\r":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`:           "{\"\\r\":3,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":2,\"😀\":5,\"\ufb33\":1}",
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:                                       `"€$\u000f\nA'B\"\\\\\"/"`,
		`"<>&\u2028\u2029\u007f\b\f\t\u0000"`:                                                   "\"<>&\u2028\u2029\u007f\\b\\f\\t\\u0000\"",
		`"e\u0301"`:                                                                             "\"e\u0301\"",
		`[1E21,1e-7,0.000001,-0,-0.0,1e20,0.1e1,4.50,2e-3,1e+23,0.000000000000000000000000001]`: `[1e+21,1e-7,0.000001,0,0,100000000000000000000,1,4.5,0.002,1e+23,1e-27]`,
		`[9007199254740993,333333333.33333329,1e30,-1.5e-10,1e-400]`:                            `[9007199254740992,333333333.3333333,1e+30,-1.5e-10,0]`,
		`{"a":{"d":{"f":1,"e":2},"c":3}}`:                                                       `{"a":{"c":3,"d":{"e":2,"f":1}}}`,
		`[]`:                                                                                    `[]`, `{}`: `{}`, `[{},[]]`: `[{},[]]`,
	} {
		got, err := Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", in, got, err, want)
		}
	}
	for _, bad := range []string{``, `1e400`, `"\ud800"`, "\"\xff\"", `{"a":1,"a":1}`, `{} {}`, `nan`} {
		if got, err := Canonical([]byte(bad)); err == nil {
			t.Errorf("%s has canonical form %s", bad, got)
		}
	}
}

// The doubles of RFC 8785, appendix B.
func TestCanonicalNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992", 0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334", 0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		if got := string(appendNumber(nil, math.Float64frombits(bits))); got != want {
			t.Errorf("%016x: %s, want %s", bits, got, want)
		}
	}
}

func TestParseHeader(t *testing.T) {
	v1 := strings.Repeat("A", 43)
	want := Header{T: 1749050910, JTI: "jti_1", V1: v1}
	for _, s := range []string{want.String(), Prefixed(want.String()), "ma2h-signature:" + want.String(), " v1=" + v1 + ",t=1749050910,v2=x,jti=jti_1 "} {
		if got, err := ParseHeader(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "t=1", "t=1,jti=j", "t=1,jti=j,v1=", "t=01,jti=j,v1=" + v1, "t=-1,jti=j,v1=" + v1, "t=+1,jti=j,v1=" + v1, "t=1.0,jti=j,v1=" + v1,
		"t=1,jti=,v1=" + v1, "t=1,jti=a b,v1=" + v1, "t=1,jti=é,v1=" + v1, "t=1,t=1,jti=j,v1=" + v1, "t=1,jti=j,v1=" + v1 + ",v1=" + v1,
		"t=1,jti=j,v1=" + v1 + "==", "t=1, jti=j,v1=" + v1, "Other: t=1,jti=j,v1=" + v1, "t=1,jti=j,v1=" + v1 + ",",
		"t=99999999999999999999,jti=j,v1=" + v1, "t=1,jti=j,v1=" + v1[:20] + "\n" + v1[:24],
	} {
		if got, err := ParseHeader(s); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	key := HMACKey([]byte("k"))
	c := ResponseContext{Version: "0.6", MessageID: "msg_1"}
	for _, jti := range []string{"", "a,b", "a b", "a\n"} {
		if _, err := c.Sign(key, 1, jti); err == nil {
			t.Errorf("nonce %q passed", jti)
		}
	}
	if _, err := c.Sign(key, -1, "j"); err == nil {
		t.Error("a negative time passed")
	}
	c.State = json.RawMessage(`1,"response":2`)
	if _, err := c.Sign(key, 1, "j"); err == nil {
		t.Error("a state that is no value passed")
	}
	if _, err := (DirectiveContext{Version: "0.6", ID: "dir_\xff", Directive: []byte(`{}`)}).Sign(key, 1, "j"); err == nil {
		t.Error("an id that is not UTF-8 was signed")
	}
	if _, err := (MessageEntryContext{Message: []byte(`[]`)}).Sign(key, 1, "j"); err == nil {
		t.Error("a message that is no object was signed")
	}
}

func TestReplayWindow(t *testing.T) {
	w := NewReplayWindow(3)
	now := time.Unix(10_000, 0)
	use := func(jti string, t int64, now time.Time) error { return w.Use(Header{T: t, JTI: jti}, now) }
	if err := use("a", 10_000, now); err != nil {
		t.Error(err)
	}
	if err := use("a", 10_050, now); !errors.Is(err, ErrReplayed) {
		t.Errorf("again: %v", err)
	}
	if err := use("b", 9_000, now); !errors.Is(err, ErrStale) {
		t.Errorf("old: %v", err)
	}
	if err := errors.Join(use("b", 10_120, now), use("c", 10_000, now)); err != nil {
		t.Error(err)
	}
	if err := use("d", 10_000, now); !errors.Is(err, ErrReplayFull) {
		t.Errorf("full: %v", err)
	}
	later := now.Add(121 * time.Second)
	if err := use("d", 10_121, later); err != nil {
		t.Errorf("after the others lapsed: %v", err)
	}
	if err := use("b", 10_120, later); !errors.Is(err, ErrReplayed) {
		t.Errorf("one from the future is remembered as long as it is fresh: %v", err)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1e21,-0,"\u00e9"],"a":{"\ud83d\ude00":null}}`, `[9007199254740993,0.1]`, `{"\ue000":1,"\ud800\udc00":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := Canonical(raw)
		if err != nil {
			return
		}
		twice, err := Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%s became %s, %v", once, twice, err)
		}
		var a, b any
		if json.Unmarshal(raw, &a) != nil || json.Unmarshal(once, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) && !strings.Contains(fmt.Sprint(a), "-0") {
			t.Fatalf("%s means something else: %s", raw, once)
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	f.Add("MA2H-Signature: t=1749050910,jti=jti_01HZX7Q9Z3DEMOFIX,v1=Ryfm6kkeIKl80WEanB__dxoyL6bg5yFF33bRpu_3cxc")
	f.Add("t=1,jti=j,v1=In3evtBNZywRzuNYkphbw-_764_Wu98zWM5rZ1iN4VI=")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHeader(s)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if again, err := ParseHeader(Prefixed(h.String())); err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
		if mac, err := decodeMAC(h.V1); err != nil || len(mac) < 32 {
			t.Fatalf("%d bytes, %v", len(mac), err)
		}
	})
}

func BenchmarkSignResponse(b *testing.B) {
	at := "2026-06-04T15:48:30Z"
	c := ResponseContext{Version: "0.6", CallbackURL: "https://agent.example/resume", MessageID: "msg_1", Resolution: "answered", ResolutionID: "res_1", ResolvedAt: &at,
		Response: []byte(`{"value":"hold","actor":"human:alice","resolved_at":"2026-06-04T15:48:30Z"}`), State: []byte(`{"sealed":"` + strings.Repeat("x", 900) + `"}`)}
	key := HMACKey([]byte("secret"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Sign(key, 1, "jti_1"); err != nil {
			b.Fatal(err)
		}
	}
}
