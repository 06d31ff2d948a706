package schemas

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// bounder measures what a schema unfolds to. A subschema used from two places counts twice, because a validator visits it twice; one that
// uses itself has no size at all.
type bounder struct {
	root  any
	sizes map[string]int // unfolded size by local reference; 0 while it is being measured
}

// bound returns the unfolded size of a schema, and refuses one whose references leave it, go in circles or multiply beyond maxUnfolded.
func bound(doc any) (int, error) {
	b := bounder{root: doc, sizes: map[string]int{}}
	return b.schema(doc)
}

// schema measures one subschema. Everything in it counts, also what turns out to be data: a bound that is a little too careful costs nothing.
func (b *bounder) schema(node any) (int, error) {
	object, ok := node.(map[string]any)
	if !ok {
		return 1, nil // true or false
	}
	size := 1
	for keyword, value := range object {
		n, err := 1, error(nil)
		switch keyword {
		case "$ref":
			ref, _ := value.(string)
			n, err = b.follow(ref)
		case "$dynamicRef", "$recursiveRef", "$id":
			err = fmt.Errorf("%s is not supported here", keyword)
		case "const", "default", "enum", "examples":
			n = weight(value)
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies":
			n, err = b.named(value)
		default:
			n, err = b.keyword(value)
		}
		if err != nil {
			return 0, err
		}
		if size += n; size > maxUnfolded {
			return 0, fmt.Errorf("unfolds to more than %d parts", maxUnfolded)
		}
	}
	return size, nil
}

// keyword measures a value that is a schema, a list of schemas, or neither; what is neither costs its weight.
func (b *bounder) keyword(value any) (int, error) {
	switch value := value.(type) {
	case map[string]any:
		return b.schema(value)
	case []any:
		return b.sum(slices.Values(value))
	}
	return 1, nil
}

// named measures a map whose names are not keywords.
func (b *bounder) named(value any) (int, error) {
	object, _ := value.(map[string]any)
	return b.sum(maps.Values(object))
}

func (b *bounder) sum(values iter.Seq[any]) (int, error) {
	size := 1
	for v := range values {
		n, err := b.keyword(v)
		if err != nil {
			return 0, err
		}
		if size += n; size > maxUnfolded {
			return 0, fmt.Errorf("unfolds to more than %d parts", maxUnfolded)
		}
	}
	return size, nil
}

// weight counts the parts of plain data.
func weight(value any) int {
	size := 1
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			size += weight(v)
		}
	case map[string]any:
		for _, v := range value {
			size += weight(v)
		}
	}
	return size
}

// follow measures what a local reference leads to.
func (b *bounder) follow(ref string) (int, error) {
	if !strings.HasPrefix(ref, "#") {
		return 0, fmt.Errorf("reference %q leaves the schema", clip(ref))
	}
	if size, ok := b.sizes[ref]; ok {
		if size == 0 {
			return 0, errors.New("a reference leads back to itself, which this hub does not follow")
		}
		return size, nil
	}
	target, err := b.find(ref[1:])
	if err != nil {
		return 0, err
	}
	b.sizes[ref] = 0
	size, err := b.schema(target)
	b.sizes[ref] = size
	return size, err
}

// find looks up a JSON Pointer written as a URI fragment.
func (b *bounder) find(fragment string) (any, error) {
	path, err := url.PathUnescape(fragment)
	if err != nil || path != "" && path[0] != '/' {
		return nil, fmt.Errorf("reference %q is not a JSON Pointer", clip("#"+fragment))
	}
	node := b.root
	if path == "" {
		return node, nil
	}
	for step := range strings.SplitSeq(path[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		var next any
		ok := false
		switch node := node.(type) {
		case map[string]any:
			next, ok = node[step]
		case []any:
			if i, err := strconv.Atoi(step); err == nil && 0 <= i && i < len(node) {
				next, ok = node[i], true
			}
		}
		if !ok {
			return nil, fmt.Errorf("reference %q leads nowhere", clip("#"+fragment))
		}
		node = next
	}
	return node, nil
}
