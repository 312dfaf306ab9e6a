// Command gen edits the CustomResourceDefinitions that controller-gen wrote:
//
//	gen FILE...
//
// It adds the bounds that no marker in our Go types can express, since they
// belong to types of Kubernetes. Without them the API server cannot tell what
// a validation rule may cost, and refuses the definition.
//
//   - A quantity has at most 32 characters, and its exponent two digits.
//   - A map of quantities has at most 64 entries.
//   - A label or scope selector has at most 64 entries with at most 64 values,
//     and no text in it is longer than a label key.
//
// A bound that is already there stays, so a marker wins, and a second run
// changes nothing.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return errors.New("no files given")
	}
	for _, file := range files {
		if err := edit(file); err != nil {
			return fmt.Errorf("edit %s: %w", file, err)
		}
	}
	return nil
}

// edit rewrites one file, unless nothing in it changes.
func edit(file string) error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after, err := boundDefinition(before)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return os.WriteFile(file, after, 0o644)
}

// boundDefinition bounds the schemas of all versions of one definition. Keys
// come out sorted, as controller-gen writes them.
func boundDefinition(in []byte) ([]byte, error) {
	var definition schema
	if err := yaml.Unmarshal(in, &definition, exactNumbers); err != nil {
		return nil, err
	}
	if kind := definition["kind"]; kind != "CustomResourceDefinition" {
		return nil, fmt.Errorf("kind is %v, not CustomResourceDefinition", kind)
	}
	versions, ok := definition.child("spec")["versions"].([]any)
	if !ok || len(versions) == 0 {
		return nil, errors.New("spec.versions is empty")
	}
	for _, version := range versions {
		object(version).child("schema").child("openAPIV3Schema").bound()
	}
	out, err := yaml.Marshal(definition)
	if err != nil {
		return nil, err
	}
	return append([]byte("---\n"), out...), nil
}

// exactNumbers keeps large integers as they are written.
func exactNumbers(decoder *json.Decoder) *json.Decoder {
	decoder.UseNumber()
	return decoder
}
