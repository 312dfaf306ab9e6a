package check

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/hack/conformance/answer"
	"github.com/fleetquota/fleetquota/hack/conformance/ours"
)

// Shrink leaves out of a World what it can while the two sides still differ, and
// returns it with both answers. Upstream must not have been asked anything that
// it has not answered yet.
func Shrink(upstream *Upstream, minor string, world *answer.World) (smallest *answer.World, mine, theirs string) {
	differs := func(candidate any) bool {
		read, ok := asWorld(candidate)
		if !ok || upstream.Ask(read) != nil {
			return false
		}
		answered, err := upstream.Next()
		if err != nil {
			return false
		}
		own, err := ours.Answer(minor, decoded(read), wire.NewCharges(0))
		if err == nil && own != answered {
			smallest, mine, theirs = read, own, answered
			return true
		}
		return false
	}
	var tree any
	line, err := json.Marshal(world)
	if err != nil || json.Unmarshal(line, &tree) != nil || !differs(tree) {
		return world, "", ""
	}
	for reduce(tree, func() bool { return differs(tree) }) {
	}
	return smallest, mine, theirs
}

func asWorld(tree any) (*answer.World, bool) {
	line, err := json.Marshal(tree)
	if err != nil {
		return nil, false
	}
	var world answer.World
	return &world, json.Unmarshal(line, &world) == nil
}

// reduce takes out of a tree, in place, each part without which it still does
// what is asked for. It says whether it found one.
func reduce(node any, still func() bool) bool {
	found := false
	object, ok := node.(map[string]any)
	if !ok {
		return false
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		delete(object, key)
		if still() {
			found = true
			continue
		}
		object[key] = value
		if list, ok := value.([]any); ok {
			found = reduceList(object, key, list, still) || found
			continue
		}
		found = reduce(value, still) || found
	}
	return found
}

func reduceList(parent map[string]any, key string, list []any, still func() bool) bool {
	found := false
	for i := 0; i < len(list); {
		parent[key] = slices.Delete(slices.Clone(list), i, i+1)
		if still() {
			found = true
			list = slices.Delete(slices.Clone(list), i, i+1)
			continue
		}
		parent[key] = list
		found = reduce(list[i], still) || found
		i++
	}
	return found
}
