package schemas

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mapFile is the one document that all of MAP is in.
const mapFile = "map/map"

// addMAP compiles what MAP's document defines: "map/" and the name of each request, answer and notification, as it
// stands, and "map/open/" and the name of each request, as the hub reads it.
func addMAP(set *Set, compiler *jsonschema.Compiler, id string, doc map[string]any) error {
	open, _ := opened(doc, "").(map[string]any)
	const openID = "urn:deskbell:map:open"
	open["$id"] = openID
	if err := compiler.AddResource(openID, open); err != nil {
		return fmt.Errorf("schema %s: %w", mapFile, err)
	}
	defs, _ := doc["$defs"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		request := strings.HasSuffix(name, "Request") && name != "MAPRequest"
		var err error
		if request || strings.HasSuffix(name, "Response") || strings.HasSuffix(name, "Notification") {
			set.compiled["map/"+name], err = compiler.Compile(id + "#/$defs/" + name)
		}
		if request && err == nil {
			set.compiled["map/open/"+name], err = compiler.Compile(openID + "#/$defs/" + name)
		}
		if err != nil {
			return fmt.Errorf("compile schema map/%s: %w", name, err)
		}
	}
	return nil
}

// MAPMethods is the definition of each method's request, by method.
func (s *Set) MAPMethods() map[string]string { return maps.Clone(s.mapMethods) }

func mapMethods(doc map[string]any) map[string]string {
	methods := map[string]string{}
	defs, _ := doc["$defs"].(map[string]any)
	for name, d := range defs {
		def, _ := d.(map[string]any)
		if method, ok := def["x-method"].(string); ok && strings.HasSuffix(name, "Request") {
			methods[method] = name
		}
	}
	return methods
}

// opened is a copy of the document as the hub reads requests. Published clients send more than the schema knows, in places
// where it allows nothing more, and that is ignored; event types are words that a filter may leave open; a method of
// proving oneself that is not known has an error of its own, as a version has; what clients of today say otherwise is not
// required; and addresses are read by who resolves them, strictly.
func opened(v any, def string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			switch {
			case k == "additionalProperties" && x == false:
				continue
			case k == "required" && (def == "AuthRefreshRequest.params" || def == "FederationRouteRequest.params"):
				continue
			case k == "const" && def == "ProtocolVersion", k == "enum" && def == "EventType", k == "oneOf" && (def == "ConnectRequest.method" || def == "Address"):
				continue
			}
			out[k] = opened(x, place(def, k))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = opened(x, def)
		}
		return out
	}
	return v
}

// place follows where in the document something stands, as far as opened must know.
func place(def, member string) string {
	switch {
	case member == "$defs" || member == "properties" || member == "items":
		return def
	case def == "":
		return member
	case member == "params":
		return def + ".params"
	case member == "method" && strings.HasSuffix(def, ".params"):
		return strings.TrimSuffix(def, ".params") + ".method"
	case member == "auth":
		return def
	}
	return strings.TrimSuffix(def, ".params")
}
