package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// blame notes why an item cannot be decoded, and where. Few decoders say which
// field they did not understand. So everything after a field is taken away: the
// first field with which the item still cannot be decoded is the one at fault.
func (in *Input) blame(i item, err error) {
	at, text := i.place(), wanted(err)
	if s, found := in.fault(i); found {
		at.Line = i.doc.at(s.line)
		if strings.Contains(text, "quantit") {
			text = strconv.Quote(s.text) + " is no quantity such as 500m, 2 or 1.5Gi"
		}
		text = s.path + ": " + text
	}
	in.bad(at, "%s: %s", i.title(), text)
}

// wanted is why a decoder does not take a value, in words.
func wanted(err error) string {
	found := regexp.MustCompile(`json: cannot unmarshal (\w+).* into Go .*of type (\S+)`).FindStringSubmatch(err.Error())
	if found == nil {
		return err.Error()
	}
	have, want := found[1], found[2]
	switch {
	case strings.HasPrefix(want, "[]"):
		want = "a list"
	case strings.HasPrefix(want, "int"), strings.HasPrefix(want, "float"):
		want = "a number"
	case want == "bool":
		want = "true or false"
	case want != "string":
		want = "an object"
	}
	words := map[string]string{"array": "a list", "bool": "true or false", "number": "a number", "object": "an object"}
	return fmt.Sprintf("want %s, not %s", strings.Replace(want, "string", "a string", 1), cmp.Or(words[have], "a "+have))
}

// title is the kind and the name of an item that cannot be decoded, as far as
// they can be.
func (i item) title() string {
	var named struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := utiljson.Unmarshal(i.json, &named); err != nil {
		return i.kind.Kind
	}
	return strings.TrimSpace(i.kind.Kind + " " + strings.TrimPrefix(named.Metadata.Namespace+"/"+named.Metadata.Name, "/"))
}

// fault finds the first field that keeps an item from being decoded.
func (in *Input) fault(i item) (step, bool) {
	var whole any
	node := find(i.doc.node(), i.path)
	if node == nil || utiljson.Unmarshal(i.json, &whole) != nil {
		return step{}, false
	}
	steps := walk(node, "", nil)
	order := make(map[string]int, len(steps))
	for n := range steps {
		steps[n].order = n
		order[steps[n].path] = n
	}
	first, found := slices.BinarySearchFunc(steps, true, func(s step, _ bool) int {
		raw, err := json.Marshal(cut(whole, "", order, s.order))
		if err != nil {
			return -1
		}
		if _, _, err := in.kinds.parse(item{doc: i.doc, json: raw, kind: i.kind}); err != nil {
			return 0
		}
		return -1
	})
	if !found || steps[first].path == "" {
		return step{}, false
	}
	return steps[first], true
}

// step is one value of a document, in the order of the text.
type step struct {
	order int
	path  string // such as spec.containers[0].name
	line  int    // within the document
	text  string // of a scalar
}

// walk lists the values of a tree in the order of the text. What an alias
// stands for belongs to its anchor.
func walk(node *yamlnode.Node, path string, steps []step) []step {
	steps = append(steps, step{path: path, line: node.Line, text: node.Value})
	switch node.Kind {
	case yamlnode.MappingNode:
		for n := 0; n+1 < len(node.Content); n += 2 {
			steps = walk(node.Content[n+1], join(path, node.Content[n].Value), steps)
		}
	case yamlnode.SequenceNode:
		for n, child := range node.Content {
			steps = walk(child, path+index(n), steps)
		}
	case yamlnode.DocumentNode, yamlnode.ScalarNode, yamlnode.AliasNode:
	}
	return steps
}

// cut is a value without what comes after the last step to keep.
func cut(value any, path string, order map[string]int, last int) any {
	if n, known := order[path]; known && n > last {
		return nil
	}
	switch typed := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(typed))
		for name, child := range typed {
			kept[name] = cut(child, join(path, name), order, last)
		}
		return kept
	case []any:
		kept := make([]any, len(typed))
		for n, child := range typed {
			kept[n] = cut(child, path+index(n), order, last)
		}
		return kept
	}
	return value
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(n int) string {
	return fmt.Sprintf("[%d]", n)
}

// find is the node at a path; nil where there is none.
func find(node *yamlnode.Node, path []string) *yamlnode.Node {
	for _, name := range path {
		if node == nil {
			return nil
		}
		node = child(node, name)
	}
	return node
}

// child is the node under a name, or under a number in brackets.
func child(node *yamlnode.Node, name string) *yamlnode.Node {
	switch node.Kind {
	case yamlnode.AliasNode:
		return child(node.Alias, name)
	case yamlnode.MappingNode:
		for n := 0; n+1 < len(node.Content); n += 2 {
			if node.Content[n].Value == name {
				return node.Content[n+1]
			}
		}
	case yamlnode.SequenceNode:
		n, err := strconv.Atoi(strings.Trim(name, "[]"))
		if err == nil && n >= 0 && n < len(node.Content) {
			return node.Content[n]
		}
	case yamlnode.DocumentNode, yamlnode.ScalarNode:
	}
	return nil
}

// lineOf is the place of a field such as spec.containers[0].name.
func (i item) lineOf(field string) Place {
	names := strings.Split(strings.ReplaceAll(field, "[", ".["), ".")
	node := find(i.doc.node(), append(slices.Clone(i.path), names...))
	if node == nil {
		return i.place()
	}
	return Place{i.doc.file, i.doc.at(node.Line)}
}
