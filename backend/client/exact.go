package client

import "github.com/go-json-experiment/json"

// exact reads JSON by its exact member names. The standard library would take "Response" for "response" too, and only
// what has the exact name is signed.
func exact(raw []byte, v any) error { return json.Unmarshal(raw, v) }
