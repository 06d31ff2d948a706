package inbox

import (
	"encoding/json"
	"strings"
)

// SearchText is what of an item can be searched.
type SearchText struct {
	Title, Body, Agent, Tags, Options, Answers, Comments string
}

// SearchText returns the item's searchable text. Of a sensitive item only the title, agent and tags; of any answer
// only what its schema does not call sensitive (MA2H §9.6).
func (it Item) SearchText() SearchText {
	c := it.Content
	t := SearchText{Title: it.Title, Agent: it.Agent + " " + c.Project, Tags: strings.Join(c.Tags, " ")}
	if c.Sensitive {
		return t
	}
	var body, options, answers []string
	body = append(body, c.Body)
	for _, p := range c.Context {
		if p.Text != nil {
			body = append(body, *p.Text)
		}
	}
	if a := c.Action; a != nil {
		body = append(body, a.Instructions, a.Verification)
		for _, check := range a.Checklist {
			options = append(options, check.Text)
		}
	}
	if r := c.Request; r != nil {
		for _, o := range r.Options {
			options = append(options, o.Value, o.Label, o.Description)
		}
	}
	if o := it.Outcome; o != nil {
		t.Comments = o.Comment
		answers = append(answers, searchValues(c.Request, o.Value)...)
	}
	t.Body, t.Options, t.Answers = strings.Join(body, "\n"), strings.Join(options, "\n"), strings.Join(answers, "\n")
	return t
}

// searchValues are the strings of an answer that may be searched.
func searchValues(r *Request, value json.RawMessage) []string {
	if s, ok := stringValue(value); ok {
		return []string{s}
	}
	if r == nil || len(value) == 0 {
		return nil
	}
	var values map[string]any
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(value, &values) != nil || json.Unmarshal(r.Schema, &schema) != nil {
		return nil
	}
	var found []string
	for name, v := range values {
		// A property the schema does not describe might be anything: it stays out.
		if p, described := schema.Properties[name]; described && !strings.Contains(string(p), `"x-ma2h-sensitive"`) {
			if s, ok := v.(string); ok {
				found = append(found, s)
			}
		}
	}
	return found
}
