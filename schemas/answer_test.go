package schemas

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCompileAnswerAccepts(t *testing.T) {
	for _, c := range []struct{ schema, good, bad, why string }{
		{`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`, `{"n":2}`, `{"n":0}`, "/n must be at least 1"},
		{`{"properties":{"e":{"enum":["a",1]}},"additionalProperties":false}`, `{"e":1.0}`, `{"e":2,"f":1}`, `/e must be one of "a", 1`},
		{`{"properties":{"n":{"type":"integer","maximum":9007199254740991}}}`, `{"n":9007199254740991}`, `{"n":9007199254740992}`, "/n must be at most 9007199254740991"},
		{`{"properties":{"n":{"minimum":-1e20}}}`, `{"n":0}`, `{"n":-1e21}`, "/n must be at least -100000000000000000000"},
		{`{"properties":{"n":{"type":"number","multipleOf":0.1}}}`, `{"n":0.3}`, `{"n":0.35}`, "/n must be a multiple of 0.1"},
		{`{"$defs":{"s":{"type":"string","pattern":"^[a-z]+$"}},"properties":{"a":{"$ref":"#/$defs/s"},"b":{"$ref":"#/$defs/s"}}}`,
			`{"a":"x","b":"y"}`, `{"a":"X"}`, "/a must match the pattern ^[a-z]+$"},
		{`{"properties":{"d":{"type":"string","format":"date"},"x":{"x-ma2h-sensitive":true}}}`, `{"d":"2026-01-31"}`, `{"d":"31.1."}`,
			"/d must be a date such as 2026-01-31"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/x","definitions":{"a":{"type":"null"}},"properties":{"a":{"$ref":"#/definitions/a"}}}`,
			`{"a":null}`, `{"a":1}`, "/a must be null"},
		{`{"properties":{"$ref":{"type":"string"},"default":{"type":"string"}},"default":{"$ref":"http://x"}}`, `{"$ref":"x"}`, `{"default":1}`,
			"/default must be a string"},
	} {
		a, err := CompileAnswer([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if got := a.Validate([]byte(c.good)); got != nil {
			t.Errorf("%s: %v", c.good, got)
		}
		got := a.Validate([]byte(c.bad))
		if len(got) == 0 || got[0].Pointer+" "+got[0].Message != c.why {
			t.Errorf("%s: %v, want %s", c.bad, got, c.why)
		}
		if got := a.Validate([]byte(`{"a":1,"a":1}`)); len(got) != 1 {
			t.Errorf("repeated names: %v", got)
		}
	}
}

func TestCompileAnswerRefuses(t *testing.T) {
	bomb := `{"$defs":{"d0":{"type":"string"}`
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	bomb += `},"properties":{"a":{"$ref":"#/$defs/d39"}}}`
	var took time.Duration
	for about, schema := range map[string]string{
		"not JSON":              `{`,
		"not an object":         `true`,
		"too large":             `{"description":"` + strings.Repeat("x", 64<<10) + `"}`,
		"too deep":              strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40),
		"web reference":         `{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`,
		"file reference":        `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		"relative reference":    `{"properties":{"a":{"$ref":"other.json"}}}`,
		"reference to a number": `{"properties":{"a":{"$ref":7}}}`,
		"dangling reference":    `{"properties":{"a":{"$ref":"#/$defs/none"}}}`,
		"anchor":                `{"$defs":{"a":{"$anchor":"x"}},"properties":{"a":{"$ref":"#x"}}}`,
		"inner name":            `{"properties":{"a":{"$id":"https://example.com/y","$ref":"#"}}}`,
		"dynamic reference":     `{"properties":{"a":{"$dynamicRef":"#x"}}}`,
		"self":                  `{"properties":{"a":{"$ref":"#"}}}`,
		"loop":                  `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
		"bomb":                  bomb,
		"bad type":              `{"properties":{"a":{"type":"text"}}}`,
		"bad pattern":           `{"properties":{"a":{"pattern":"(?=x)"}}}`,
		"huge pattern":          `{"properties":{"a":{"pattern":"` + strings.Repeat(`.{0,999}`, 30) + `"}}}`,
		"draft 4":               `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{}}`,
		"own dialect":           `{"$schema":"https://example.com/dialect","properties":{}}`,
	} {
		var err error
		took += worked(t, func() { _, err = CompileAnswer([]byte(schema)) })
		if err == nil {
			t.Errorf("%s passed", about)
		} else if len(err.Error()) > 300 {
			t.Errorf("%s: the reason is too long: %v", about, err)
		}
	}
	if took > 2*time.Second {
		t.Errorf("refusing took %v", took)
	}
}

func TestAnswerWorkIsBounded(t *testing.T) {
	schema := `{"properties":{"a":{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"x*x*y"},`, 900), ",") + `]}}}}`
	a, err := CompileAnswer([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	value := `{"a":[` + strings.TrimSuffix(strings.Repeat(`"xxxxxxxxxxxxxxx",`, 3500), ",") + `]}`
	took := worked(t, func() {
		if got := a.Validate([]byte(value)); len(got) == 0 {
			t.Error("passed")
		}
	})
	if took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestAnswerable(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"properties":{"a":{}}}`:                                          true,
		`{"type":"object","properties":{"a":{}}}`:                          true,
		`{"type":["object","null"],"properties":{"a":true}}`:               true,
		`{"type":["null","object","array"],"properties":{"a":1}}`:          true,
		`{"type":"object","properties":{"a":{"type":"string","const":1}}}`: true,
		`{"type":"string","properties":{"a":{}}}`:                          false,
		`{"type":["string","null"],"properties":{"a":{}}}`:                 false,
		`{"type":[],"properties":{"a":{}}}`:                                false,
		`{"type":["object","object"],"properties":{"a":{}}}`:               false,
		`{"type":["object",42],"properties":{"a":{}}}`:                     false,
		`{"type":["object","Object"],"properties":{"a":{}}}`:               false,
		`{"type":null,"properties":{"a":{}}}`:                              false,
		`{"type":{"object":1},"properties":{"a":{}}}`:                      false,
		`{"type":"object"}`:                                                false,
		`{"properties":{}}`:                                                false,
		`{"properties":[{}]}`:                                              false,
		`true`:                                                             false,
		`[]`:                                                               false,
		``:                                                                 false,
	} {
		if err := Answerable([]byte(schema)); (err == nil) != want {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func FuzzCompileAnswer(f *testing.F) {
	f.Add([]byte(`{"$defs":{"s":{"pattern":"^a+$"}},"properties":{"a":{"$ref":"#/$defs/s"}},"required":["a"]}`), []byte(`{"a":"aa"}`))
	f.Add([]byte(`{"properties":{"a":{"multipleOf":1e-300,"minimum":-1e300}}}`), []byte(`{"a":1e308}`))
	f.Add([]byte(`{"allOf":[{"$ref":"#/properties/a"}],"properties":{"a":{"items":{"type":["null","string"]},"uniqueItems":true}}}`), []byte(`[null,"x"]`))
	f.Add([]byte(`{"dependentSchemas":{"a":{"not":{"required":["b"]}}},"unevaluatedProperties":false}`), []byte(`{"a":1,"b":2}`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		a, err := CompileAnswer(schema)
		if err != nil {
			return
		}
		for _, e := range a.Validate(value) {
			if e.Message == "" {
				t.Fatalf("no message for %q", e.Pointer)
			}
		}
	})
}

// Two numbers that differ in their last digit are two, however long they are.
func TestAnswersAreJudgedToTheLastDigit(t *testing.T) {
	answer, err := CompileAnswer([]byte(`{"type":"object","properties":{"n":{"enum":[90071992547409930001]},"m":{"maximum":90071992547409930001}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, fits := range map[string]bool{
		`{"n":90071992547409930001}`: true, `{"n":90071992547409930002}`: false, `{"m":90071992547409930001}`: true, `{"m":90071992547409930002}`: false,
	} {
		if bad := answer.Validate([]byte(value)); (len(bad) == 0) != fits {
			t.Errorf("%s: %v", value, bad)
		}
	}
}
