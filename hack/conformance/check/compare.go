package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/hack/conformance/answer"
	"github.com/fleetquota/fleetquota/hack/conformance/gen"
	"github.com/fleetquota/fleetquota/hack/conformance/ours"
)

// Result is what a comparison has found.
type Result struct {
	Worlds, Objects, Quotas int

	// Different is the first World to which the answers differ; nil: none.
	Different *answer.World
}

func (r *Result) add(world *answer.World) {
	r.Worlds++
	r.Objects += world.Size()
	r.Quotas += len(world.Quotas)
}

// String is the numbers.
func (r *Result) String() string {
	return fmt.Sprintf("%d objects in %d namespaces, %d quotas", r.Objects, r.Worlds, r.Quotas)
}

// Exercise asks upstream alone about the Worlds of a seed, for what that covers.
func Exercise(upstream *Upstream, seed uint64, objects int) error {
	size := 0
	for i := uint64(0); size < objects; i++ {
		world := gen.World(seed, i)
		size += world.Size()
		if err := upstream.Ask(world); err != nil {
			return err
		}
		if _, err := upstream.Next(); err != nil {
			return err
		}
	}
	return nil
}

// Compare asks both sides about the Worlds of a seed until so many objects have
// been compared, or they differ. Upstream must be stopped by the caller, and can
// be asked again only if they did not differ.
func Compare(upstream *Upstream, minor string, seed uint64, objects int) (Result, error) {
	asked := make(chan *answer.World, 64)
	broken := make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(asked)
		size := 0
		for i := uint64(0); size < objects; i++ {
			world := gen.World(seed, i)
			size += world.Size()
			if err := upstream.Ask(world); err != nil {
				broken <- err
				return
			}
			select {
			case asked <- world:
			case <-done:
				return
			}
		}
	}()

	var result Result
	remembered := wire.NewCharges(0)
	for world := range asked {
		theirs, err := upstream.Next()
		if err != nil {
			return result, err
		}
		mine, err := ours.Answer(minor, decoded(world), remembered)
		if err != nil {
			return result, fmt.Errorf("%w, in\n%s", err, YAML(world))
		}
		result.add(world)
		if mine != theirs {
			result.Different = world
			return result, nil
		}
	}
	select {
	case err := <-broken:
		return result, err
	default:
		return result, nil
	}
}

// decoded is a World as upstream reads it.
func decoded(world *answer.World) *answer.World {
	line, err := json.Marshal(world)
	if err != nil {
		panic(err) // worlds are plain data
	}
	var read answer.World
	if err := json.Unmarshal(line, &read); err != nil {
		panic(err)
	}
	return &read
}

// YAML is a World for people to read: what is empty is left out.
func YAML(world *answer.World) string {
	var tree any
	line, err := json.Marshal(world)
	if err == nil {
		err = json.Unmarshal(line, &tree)
	}
	if err != nil {
		panic(err) // worlds are plain data
	}
	text, err := yaml.Marshal(withoutEmpty(tree))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// withoutEmpty leaves out of objects what is null, false, zero or without text.
// Empty lists and objects stay: they are not always the same as none.
func withoutEmpty(tree any) any {
	switch node := tree.(type) {
	case map[string]any:
		for key, value := range node {
			switch value {
			case nil, false, 0.0, "":
				delete(node, key)
			default:
				node[key] = withoutEmpty(value)
			}
		}
	case []any:
		for i := range node {
			node[i] = withoutEmpty(node[i])
		}
	}
	return tree
}

// Diff is the lines that only one of two answers has.
func Diff(mine, theirs string) string {
	var text strings.Builder
	a, b := strings.Split(mine, "\n"), strings.Split(theirs, "\n")
	for _, side := range []struct {
		name        string
		has, others []string
	}{{"fleetquota", a, b}, {"Kubernetes", b, a}} {
		for _, line := range side.has {
			if !slices.Contains(side.others, line) {
				fmt.Fprintf(&text, "%s: %s\n", side.name, line)
			}
		}
	}
	return text.String()
}
