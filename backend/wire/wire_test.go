package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestCheckAccepts(t *testing.T) {
	for _, doc := range []string{
		`null`, ` true `, "\t\r\n0", `-0`, `1.5e-7`, `1e308`, `1e-400`, `""`, `"é\u00e9\ud83d\ude00😀\/\b"`, `[]`, `{}`, `[ ]`, `{ }`,
		`[1,[2,{"a":[]}]]`, `{"a":{"a":1},"b":{"a":1}}`, `{"a":1,"A":1}`, "\"\u2028\"", `9007199254740993`, `"\u0000"`,
	} {
		if err := Check([]byte(doc), 0); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for doc, want := range map[string]SyntaxError{
		``:                             {"", 0, "unexpected end of data"},
		`{"a":[1,{"b":tru}]}`:          {"/a/1/b", 13, "unknown word"},
		`{"a":1,"b":{"x/~":1e400}}`:    {"/b/x~1~0", 18, "a number too large for a double"},
		`{"a":1,"\u0061":2}`:           {"/a", 7, "member name used twice"},
		`{"o":[{"k":1,"k":1}]}`:        {"/o/0/k", 13, "member name used twice"},
		"\"\xff\"":                     {"", 1, "invalid UTF-8"},
		"{\"\xc0\x80\":1}":             {"", 2, "invalid UTF-8"},
		"\"\xed\xa0\x80\"":             {"", 1, "invalid UTF-8"},
		`["\ud800"]`:                   {"/0", 2, "lone surrogate in a string"},
		`["\ud800\ud800"]`:             {"/0", 2, "lone surrogate in a string"},
		`["\udc00\ud800"]`:             {"/0", 2, "lone surrogate in a string"},
		`["\ud83dA"]`:                  {"/0", 2, "lone surrogate in a string"},
		`"\x"`:                         {"", 1, "unknown escape in a string"},
		`"\u12g4"`:                     {"", 1, `\u needs four hexadecimal digits`},
		"\"\n\"":                       {"", 1, "unescaped control character in a string"},
		`"abc`:                         {"", 4, "unexpected end of data"},
		`"abc\`:                        {"", 5, "unexpected end of data"},
		`1 2`:                          {"", 2, "unexpected data after the value"},
		`{} x`:                         {"", 3, "unexpected data after the value"},
		`01`:                           {"", 1, "unexpected data after the value"},
		`-`:                            {"", 1, "unexpected end of data"},
		`+1`:                           {"", 0, "unexpected character"},
		`.5`:                           {"", 0, "unexpected character"},
		`1.x`:                          {"", 2, "a number needs a digit here"},
		`1e+x`:                         {"", 3, "a number needs a digit here"},
		`[1,]`:                         {"/1", 3, "unexpected character"},
		`{"a":1,}`:                     {"", 7, "a member name must be a string"},
		`{a:1}`:                        {"", 1, "a member name must be a string"},
		`{"a" 1}`:                      {"", 5, "a colon must follow a member name"},
		`{"a":1 "b":2}`:                {"", 7, "a comma or a closing brace must follow a member"},
		`[1 2]`:                        {"", 3, "a comma or a closing bracket must follow an element"},
		"\ufeff{}":                     {"", 0, "unexpected character"},
		`NaN`:                          {"", 0, "unexpected character"},
		`[[[[1]]]]`:                    {"/0/0/0", 3, "nested too deeply"},
		`{"a":{"a":{"a":{"a":1}}}}`:    {"/a/a/a", 15, "nested too deeply"},
		"1" + strings.Repeat("0", 400): {"", 0, "a number too large for a double"},
	} {
		err := Check([]byte(doc), 3)
		var got *SyntaxError
		if !errors.As(err, &got) {
			t.Errorf("%s: accepted", doc)
		} else if *got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", doc, *got, want)
		}
	}
}

func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"n%d":{"n1":%d},`, i, i)
	}
	if err := Check([]byte(`{`+b.String()+`"last":0}`), 0); err != nil {
		t.Error(err)
	}
	if err := Check([]byte(`{`+b.String()+`"n900":0}`), 0); err == nil {
		t.Error("a name repeated after a thousand others passed")
	}
}

func TestMembersAreRaw(t *testing.T) {
	raw := []byte(" { \"b\" : { \"z\":1 , \"a\":9007199254740993 } ,\"\\u0061\":[ 1.00 ]\t, \"n\":-0 } ")
	got, err := Members(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{{"b", []byte(`{ "z":1 , "a":9007199254740993 }`)}, {"a", []byte(`[ 1.00 ]`)}, {"n", []byte(`-0`)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if out := string(Compose(got)); out != `{"b":{ "z":1 , "a":9007199254740993 },"a":[ 1.00 ],"n":-0}` {
		t.Errorf("composed %s", out)
	}
	if _, err := Members([]byte(`[1]`)); err == nil {
		t.Error("an array has no members")
	}
	if _, err := Members([]byte(`{"a":{"x":1,"x":2}}`)); err == nil {
		t.Error("a repeated inner name passed")
	}
	if e, err := Elements([]byte(`[ 1 , {"a": 2} ]`)); err != nil || string(bytes.Join(e, []byte("|"))) != `1|{"a": 2}` {
		t.Errorf("elements %q, %v", e, err)
	}
}

func TestGet(t *testing.T) {
	raw := []byte(`{"a":{"x":1},"x":[2 ],"n":null}`)
	for name, want := range map[string]string{"a": `{"x":1}`, "x": `[2 ]`, "n": `null`} {
		if got, ok := Get(raw, name); !ok || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
	for _, bad := range []string{`[]`, ``, `{"y":1}`, `{"y":1`, `"x"`} {
		if got, ok := Get([]byte(bad), "x"); ok {
			t.Errorf("%s: found %s", bad, got)
		}
	}
}

func TestPick(t *testing.T) {
	got := Pick([]byte(`{"a":1,"b": [ 2 ],"c":null}`), "c", "x", "b")
	if out := string(Compose(got)); out != `{"c":null,"b":[ 2 ]}` {
		t.Errorf("picked %s", out)
	}
}

func TestWithout(t *testing.T) {
	raw := []byte(`{"agent":{ "id":"a", "run_id":"r","session":"s" },"title":"t","state":{ "n": 1 }}`)
	got, err := Without(raw, "agent.session", "agent.run_id", "state", "absent", "title.inner", "absent.inner")
	if err != nil || string(got) != `{"agent":{"id":"a"},"title":"t"}` {
		t.Errorf("%s, %v", got, err)
	}
	if got, _ := Without(raw); string(got) != string(raw) {
		t.Errorf("changed: %s", got)
	}
	if _, err := Without(raw, "agent.a.b"); err == nil {
		t.Error("a path of three levels passed")
	}
	if _, err := Without([]byte(`[]`), "a"); err == nil {
		t.Error("an array passed")
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a\"\\/<>&'": `"a\"\\/<>&'"`, "\b\f\n\r\t\x00\x1f\x7f": "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\"",
		"\u2028é😀": "\"\u2028é😀\"", "a\xffb": "\"a\ufffdb\"", "": `""`,
	} {
		if got := string(Quote(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	got, err := Value([]byte(` {"a":[1,-0.5,1e3,"\u00e9",true,false,null,{}],"big":90071992547409930001,"real":0.1234567890123456789} `))
	want := map[string]any{"a": []any{int64(1), -0.5, 1000.0, "é", true, false, nil, map[string]any{}}, "big": json.Number("90071992547409930001"), "real": 0.12345678901234568}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v", got, err)
	}
	for _, bad := range []string{`{"a":1,"a":1}`, `[1`, `1 1`, `[tru]`, `1e999`} {
		if v, err := Value([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, v)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\u00e9\ud83d\ude00",null,true]}`, `{"a":1,"a":2}`, `"\ud800"`, `[[[[]]]]`, `1e400`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := Check(raw, 0)
		if err == nil && !json.Valid(raw) {
			t.Fatalf("accepts what is not JSON: %q", raw)
		}
		if err != nil {
			var s *SyntaxError
			if !errors.As(err, &s) || s.Offset < 0 || s.Offset > int64(len(raw)) || s.Reason == "" {
				t.Fatalf("%q: %#v", raw, err)
			}
		}
		v, verr := Value(raw)
		if (verr == nil) != (err == nil) {
			t.Fatalf("Check says %v, Value %v", err, verr)
		}
		if err == nil {
			back, err := json.Marshal(v)
			if err != nil || Check(back, 0) != nil {
				t.Fatalf("%q decodes to %v", raw, v)
			}
		}
	})
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(` {"a" : {"b":[1 ]} ,"c":"x"}`), "a", "a.b")
	f.Add([]byte(`{"\u0000":1,"":2}`), "", "x.")
	f.Fuzz(func(t *testing.T, raw []byte, name, path string) {
		members, err := Members(raw)
		if err != nil {
			_, _ = Get(raw, name)
			return
		}
		again, err := Members(Compose(members))
		if err != nil || len(again) != len(members) {
			t.Fatalf("composed %s: %v", Compose(members), err)
		}
		for i := range members {
			if members[i].Name != again[i].Name || !bytes.Equal(members[i].Value, again[i].Value) {
				t.Fatalf("%q became %q", members[i], again[i])
			}
		}
		got, ok := Get(raw, name)
		i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
		if ok != (i >= 0) || ok && !bytes.Equal(got, members[i].Value) {
			t.Fatalf("Get %q: %q", name, got)
		}
		if out, err := Without(raw, path); err == nil && Check(out, 0) != nil {
			t.Fatalf("Without %q: %s", path, out)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\"\\\n\xff\u2028")
	f.Fuzz(func(t *testing.T, s string) {
		back, ok := String(Quote(s))
		if !ok || back != string([]rune(s)) {
			t.Fatalf("%q became %q", s, back)
		}
	})
}

// envelope is an ordinary question of about a kilobyte.
var envelope = []byte(`{"ma2h_version":"0.6","type":"ask","created_at":"2026-08-10T12:01:00Z","agent":{"id":"deploybot/dev-team","run_id":"run_01J5OVERSEER01","runtime":"cli","session":"sess_01J5OVR0001","project":"web-app","labels":{"branch":"main","host":"build-7"}},"title":"Ship release 4.2 to production?","body":"The suite is green on **main**. Two migrations are pending:\n\n- ` + "`0042_add_index`" + ` takes about 40 s\n- ` + "`0043_backfill`" + ` runs in the background\n\nRollback is one command. Traffic is low until 18:00.","priority":"high","tags":["deploy","release"],"context":[{"kind":"text","text":"Last deploy: two days ago, no incident."},{"kind":"data","data":{"tests":1834,"failed":0,"coverage":91.25,"ok":true}}],"state":{"sealed":"v1.demo.MOCK-SEALED-STATE-BLOB"},"idempotency_key":"ship-4.2","expires_at":"2026-08-10T18:00:00Z","request":{"mode":"select","options":[{"value":"ship","label":"Ship it"},{"value":"hold","label":"Hold"}],"allowed_resolvers":["human:alice"],"callback":{"mode":"pull"}}}`)

func BenchmarkCheck(b *testing.B) {
	b.SetBytes(int64(len(envelope)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(envelope, 64); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMembers(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Members(envelope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValue(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Value(envelope); err != nil {
			b.Fatal(err)
		}
	}
}
