package inbox

import (
	"encoding/json"
	"slices"
	"strings"
)

// SearchText is what of an item can be searched.
type SearchText struct {
	Title, Body, Agent, Tags, Options, Answers, Comments string
}

// SearchText returns the item's searchable text. Of a sensitive item only the title, who wrote it to whom, and tags; of
// any answer only what its schema does not call sensitive (MA2H §9.6).
func (it Item) SearchText() SearchText {
	c := it.Content
	t := SearchText{Title: it.Title, Agent: strings.Join([]string{it.Agent, strings.TrimPrefix(c.To, "agent:"), c.Project}, " "), Tags: strings.Join(c.Tags, " ")}
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
	body = append(body, c.Command...)
	if call := c.Call; call != nil {
		body = append(body, call.Tool, call.Folder, string(call.Arguments))
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
	comments := it.notes()
	if o := it.Outcome; o != nil {
		comments = append(comments, o.Comment)
		answers = append(answers, searchValues(c.Request, o.Value)...)
	}
	t.Body, t.Options, t.Answers, t.Comments = lines(body), lines(options), lines(answers), lines(comments)
	return t
}

func lines(texts []string) string { return strings.Join(texts, "\n") }

// notes are the words of acknowledgments: of an addressed item by its addressee, of the answer by the submitter.
func (it Item) notes() []string {
	notes := []string{it.Track.Note}
	if it.Mailbox != nil {
		notes = append(notes, it.Mailbox.Note)
	}
	return slices.DeleteFunc(notes, func(n string) bool { return n == "" })
}

// MoreToSearch says whether an item that became out of before has words that are not in the index yet.
func (it Item) MoreToSearch(before Item) bool {
	return (before.Outcome == nil && it.Outcome != nil) || len(it.Content.Context) != len(before.Content.Context) || lines(it.notes()) != lines(before.notes())
}

// searchValues are the strings of an answer that may be searched.
func searchValues(r *Request, value json.RawMessage) []string {
	if s, ok := stringValue(value); ok {
		return []string{s}
	}
	if r == nil || len(value) == 0 {
		return nil
	}
	var values, schema map[string]any
	if json.Unmarshal(value, &values) != nil || json.Unmarshal(r.Schema, &schema) != nil {
		return nil
	}
	properties, _ := schema["properties"].(map[string]any)
	delete(schema, "properties")
	if sensitive(schema) { // said elsewhere, of whatever it applies to
		return nil
	}
	var found []string
	for name, v := range values {
		// A property the schema does not describe might be anything: it stays out.
		if p, described := properties[name]; described && !sensitive(p) {
			if s, ok := v.(string); ok {
				found = append(found, s)
			}
		}
	}
	return found
}

// SensitiveAnswer says whether the request's schema calls any part of the answer sensitive (MA2H §9.6).
func (r *Request) SensitiveAnswer() bool {
	var schema any
	return r != nil && json.Unmarshal(r.Schema, &schema) == nil && sensitive(schema)
}

// sensitive says whether part of a schema carries the mark, at any depth.
func sensitive(schema any) bool {
	switch s := schema.(type) {
	case map[string]any:
		for name, v := range s {
			if mark, isBool := v.(bool); name == "x-ma2h-sensitive" && (mark || !isBool) {
				return true
			}
			if sensitive(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, sensitive)
	}
	return false
}
