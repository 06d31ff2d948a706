package mapv1

import (
	"errors"
	"testing"

	"deskbell/backend/mapnet"
)

// What another hub sends is an answer or nothing, and its refusals stay within what is ours to say.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"result":{"routed":true}}`, `{"id":1,"error":{"code":2001,"message":"no"}}`, `{"id":1,"error":{"code":-1}}`, `{"id":1}`,
		`{"id":"1","result":null,"error":null}`, `[]`, `{"method":"map/message"}`, `{"id":1,"result":{},"error":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, a, ok := readAnswer(raw)
		if !ok {
			return
		}
		if id == "" || (a.Error == nil) == (len(a.Result) == 0) {
			t.Errorf("%q: %+v", id, a)
		}
		if a.Error == nil {
			return
		}
		var e *mapnet.Error
		if err := (&link{}).refused(Peer{System: "hub-b"}, a); !errors.As(err, &e) || e.Code < 2000 || e.Code >= 6000 || len(e.Message) > 400 {
			t.Errorf("%s: %+v", raw, e)
		}
	})
}

// A way is refused that goes round in circles, comes too far, or says what cannot be.
func TestWays(t *testing.T) {
	for _, c := range []struct {
		way  federation
		code int
	}{
		{federation{}, 0},
		{federation{Hops: 9, Path: []string{"a", "b"}}, 0},
		{federation{Hops: 10}, 5011},
		{federation{Hops: 50, Max: 100}, 5011},
		{federation{Hops: 3, Max: 3}, 5011},
		{federation{Hops: -1}, 5011},
		{federation{Path: make([]string, 10)}, 5011},
		{federation{Path: []string{"a", "own", "b"}}, 5010},
	} {
		err := c.way.check("own")
		var e *mapnet.Error
		if (err == nil) != (c.code == 0) || err != nil && (!errors.As(err, &e) || e.Code != c.code) {
			t.Errorf("%+v: %v", c.way, err)
		}
	}
}
