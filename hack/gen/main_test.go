package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const definitions = "../../deploy/crds/fleetquota.io_*.yaml"

func TestBoundsAreAddedWhereMarkersCannotReach(t *testing.T) {
	t.Parallel()
	const quantity = `{anyOf: [{type: integer}, {type: string}], pattern: "^[0-9]+$", x-kubernetes-int-or-string: true`
	for name, c := range map[string]struct{ in, want string }{
		"a quantity is short": {
			in:   quantity + `}`,
			want: quantity + `, maxLength: 32}`,
		},
		"a map of quantities is small": {
			in:   `{type: object, additionalProperties: ` + quantity + `}}`,
			want: `{type: object, maxProperties: 64, additionalProperties: ` + quantity + `, maxLength: 32}}`,
		},
		"a bound that is there stays": {
			in:   `{type: object, maxProperties: 8, additionalProperties: ` + quantity + `, maxLength: 9}}`,
			want: `{type: object, maxProperties: 8, additionalProperties: ` + quantity + `, maxLength: 9}}`,
		},
		"an exponent has two digits": {
			in: `{pattern: '^([0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$',
				x-kubernetes-int-or-string: true, maxLength: 32}`,
			want: `{pattern: '^([0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$', x-kubernetes-int-or-string: true, maxLength: 32}`,
		},
		"a port or a percentage is not a quantity": {
			in:   `{x-kubernetes-int-or-string: true}`,
			want: `{x-kubernetes-int-or-string: true}`,
		},
		"quantities are found inside lists": {
			in:   `{type: array, items: {type: object, properties: {min: ` + quantity + `}}}}`,
			want: `{type: array, items: {type: object, properties: {min: ` + quantity + `, maxLength: 32}}}}`,
		},
		"every part of a selector is bounded": {
			in: `{type: object, properties: {
				matchLabels: {type: object, additionalProperties: {type: string}},
				matchExpressions: {type: array, items: {type: object, properties: {
					key: {type: string}, values: {type: array, items: {type: string}}}}}}}`,
			want: `{type: object, properties: {
				matchLabels: {type: object, maxProperties: 64, additionalProperties: {type: string, maxLength: 317}},
				matchExpressions: {type: array, maxItems: 64, items: {type: object, properties: {
					key: {type: string, maxLength: 317},
					values: {type: array, maxItems: 64, items: {type: string, maxLength: 317}}}}}}}`,
		},
		"a list and a text of our own are left to markers": {
			in:   `{type: array, items: {type: string}}`,
			want: `{type: array, items: {type: string}}`,
		},
		"a map may forbid further properties": {
			in:   `{type: object, additionalProperties: false}`,
			want: `{type: object, additionalProperties: false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := boundDefinition(definition(t, c.in))
			if err != nil {
				t.Fatal(err)
			}
			if want := string(definition(t, c.want)); string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestWhatIsNoDefinitionIsRefused(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"another kind":       `{kind: Service}`,
		"no version":         `{kind: CustomResourceDefinition, spec: {}}`,
		"something not YAML": `{`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := boundDefinition([]byte(in)); err == nil {
				t.Errorf("accepted as\n%s", out)
			}
		})
	}
}

func TestLargeNumbersSurvive(t *testing.T) {
	t.Parallel()
	in := definition(t, `{type: integer, maximum: 9223372036854775807}`)
	out, err := boundDefinition(in)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "maximum: 9223372036854775807\n") {
		t.Errorf("maximum changed:\n%s", out)
	}
}

func TestWhatIsCommittedIsGenerated(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		name := filepath.Base(file)
		edited := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(edited, read(t, file), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{edited}); err != nil {
			t.Fatal(err)
		}
		if string(read(t, edited)) != string(read(t, file)) {
			t.Errorf("a second run changes %s: run make generate", name)
		}
	}
}

func TestNoFilesIsAnError(t *testing.T) {
	t.Parallel()
	if err := run(nil); err == nil {
		t.Error("nothing was edited and nothing was said")
	}
}

// The API server refuses a definition whose validation rules may cost too much;
// its own check finds that here, before any server is started.
func TestTheAPIServerAcceptsOurDefinitions(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for _, file := range files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			var v1 apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(read(t, file), &v1); err != nil {
				t.Fatal(err)
			}
			scheme.Default(&v1)
			v1.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
			var internal apiextensions.CustomResourceDefinition
			if err := scheme.Convert(&v1, &internal, nil); err != nil {
				t.Fatal(err)
			}
			for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
				t.Error(err)
			}
		})
	}
}

// definition wraps one schema, in canonical form.
func definition(t *testing.T, schema string) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(`{kind: CustomResourceDefinition, spec: {versions: [{schema: {openAPIV3Schema: ` + schema + `}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err = yaml.JSONToYAML(out)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("---\n"), out...)
}

func files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(definitions)
	if err != nil || len(found) == 0 {
		t.Fatalf("no file %s: %v", definitions, err)
	}
	return found
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
