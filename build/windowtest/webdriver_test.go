//go:build window

package windowtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// driver speaks W3C WebDriver to WebKitWebDriver.
type driver struct {
	t    *testing.T
	base string // of the session
}

func (d *driver) call(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct{ Value json.RawMessage }{}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, answer.Value)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

// script runs the body of an async function in the page and stores what it returns in out.
func (d *driver) script(out any, body string, args ...any) {
	d.t.Helper()
	if args == nil {
		args = []any{}
	}
	var got struct {
		OK    json.RawMessage
		Error string
	}
	err := d.call("POST", "/execute/async", map[string]any{"args": args, "script": `
		const done = arguments[arguments.length - 1], args = [...arguments].slice(0, -1);
		(async function () {` + body + `}).apply(null, args).then(v => done({OK: v === undefined ? null : v}), e => done({Error: String(e)}))`}, &got)
	if err != nil {
		d.t.Fatalf("script: %v\n%s", err, body)
	}
	if got.Error != "" {
		d.t.Fatalf("script: %s\n%s", got.Error, body)
	}
	if out != nil {
		if err := json.Unmarshal(got.OK, out); err != nil {
			d.t.Fatalf("script: %v\n%s", err, body)
		}
	}
}

// text is what an element shows, or nothing if there is no such element.
func (d *driver) text(selector string) string {
	d.t.Helper()
	var s string
	d.script(&s, "const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector)
	return s
}

// keys presses keys one after the other, as a keyboard would.
func (d *driver) keys(keys ...string) {
	d.t.Helper()
	var actions []map[string]string
	for _, k := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": k}, map[string]string{"type": "keyUp", "value": k})
	}
	err := d.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
	if err != nil {
		d.t.Fatalf("keys: %v", err)
	}
}
