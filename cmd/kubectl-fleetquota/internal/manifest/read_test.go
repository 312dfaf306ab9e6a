package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/cmd/kubectl-fleetquota/internal/manifest"
)

// read reads one text from standard input.
func read(text string) *manifest.Input {
	return manifest.Read([]string{"-"}, manifest.Options{In: strings.NewReader(text)})
}

// says compares problems with what they should say.
func says(t *testing.T, problems []manifest.Problem, want ...string) {
	t.Helper()
	got := make([]string, 0, len(problems))
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Text))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDocuments(t *testing.T) {
	const a, b = "{apiVersion: v1, kind: Secret, metadata: {name: a}}", "{apiVersion: v1, kind: Secret, metadata: {name: b}}"
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"nothing at all":                     {"", 0},
		"only comments and separators":       {"# none\n---\n---\n# none\n", 0},
		"separators before, between, after":  {"---\n" + a + "\n---\n" + b + "\n---\n", 2},
		"a document on the separator's line": {"--- " + a + "\n--- # a comment\n" + b, 2},
		"dashes that separate nothing":       {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    ---x\n", 1},
		"a byte order mark":                  {"\xef\xbb\xbf" + a, 1},
		"Windows line ends":                  {a + "\r\n---\r\n" + b + "\r\n", 2},
		"JSON, one after the other":          {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}`, 2},
		"YAML that begins like JSON":         {a + "\n---\n" + b, 2},
		"anchors and merges":                 {"apiVersion: v1\nkind: List\nitems:\n- &x {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- {<<: *x, metadata: {name: b}}\n", 2},
		"lists in lists":                     {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}}]}, " + b + "]}", 2},
		"an empty list":                      {"{apiVersion: v1, kind: List}", 0},
		"a kind that only ends in List":      {"{apiVersion: example.com/v1, kind: ShoppingList, metadata: {name: a}}", 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := read(c.text)
			says(t, in.Bad)
			if len(in.Objects) != c.want {
				t.Errorf("%d objects, want %d", len(in.Objects), c.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"in the second document":   {"{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec:\n  containers: 3", "8: Pod b: spec.containers: want a list, not a number"},
		"in a list":                {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: b, labels: [x]}", "7: Secret b: metadata.labels: want an object, not a list"},
		"in JSON":                  {"{\"apiVersion\": \"v1\",\n\"kind\": \"Pod\",\n\"metadata\": {\"name\": 1}}", "3: Pod: metadata.name: want a string, not a number"},
		"after an anchor":          {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeSelector: &x {a: b}\n  tolerations: *x\n", "6: Pod a: spec.tolerations: want a list, not an object"},
		"a time":                   {"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  deletionTimestamp: noon\n", "5: Pod a: metadata.deletionTimestamp: parsing time \"noon\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"noon\" as \"2006\""},
		"the first of two":         {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: []\n  overhead:\n    cpu: much\n    memory: more\n", "7: Pod a: spec.overhead.cpu: \"much\" is no quantity such as 500m, 2 or 1.5Gi"},
		"a kind that is misspelt":  {"{apiVersion: apps/v1, kind: Deploymnt, metadata: {name: a}}", "1: Deploymnt a: Kubernetes has no such kind in apps/v1"},
		"metadata that is no map":  {"{apiVersion: x.io/v1, kind: X, metadata: 3}", "1: X: metadata: metadata is a int64: want an object"},
		"a version that is absent": {"{apiVersion: /, kind: X}", "1: no object: apiVersion is missing"},
	} {
		t.Run(name, func(t *testing.T) { says(t, read(c.text).Bad, c.want) })
	}
}

func TestPlurals(t *testing.T) {
	for kind, want := range map[string]string{
		"v1/Endpoints": "endpoints", "networking.k8s.io/v1/NetworkPolicy": "networkpolicies.networking.k8s.io",
		"networking.k8s.io/v1/Ingress": "ingresses.networking.k8s.io", "gateway.networking.k8s.io/v1/Gateway": "gateways.gateway.networking.k8s.io",
		"example.com/v1/Box": "boxs.example.com", "example.com/v1/Day": "days.example.com", "example.com/v1/City": "cities.example.com",
	} {
		at := strings.LastIndex(kind, "/")
		in := read(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: a, namespace: b}}", kind[:at], kind[at+1:]))
		if got := in.Objects[0].Resource.String(); got != want {
			t.Errorf("%s is counted as %s, want %s", kind, got, want)
		}
	}
}

// A quantity of a pod that is made bad is the one that is blamed, wherever it is.
func TestBlameFindsTheField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "containers")
		bad := rapid.IntRange(0, 2*n-1).Draw(t, "bad")
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
		for i := range 2 * n {
			if i%2 == 0 {
				text += fmt.Sprintf("  - name: c%d\n    resources:\n      requests:\n        cpu: %%[%d]s\n", i/2, i+1)
			} else {
				text += fmt.Sprintf("      limits:\n        memory: %%[%d]s\n", i+1)
			}
		}
		values := make([]any, 2*n)
		for i := range values {
			values[i] = "1"
		}
		values[bad] = "bad"
		in := read(fmt.Sprintf(text, values...))
		line := 5 + 6*(bad/2) + 4 + 2*(bad%2)
		if len(in.Bad) != 1 || in.Bad[0].Line != line || !strings.Contains(in.Bad[0].Text, `"bad" is no quantity`) {
			t.Fatalf("%v, want line %d", in.Bad, line)
		}
	})
}

// A workload costs what its pods cost, written out one by one.
func TestExpandIsTheSameAsWrittenOut(t *testing.T) {
	in := read("{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a}, spec: {replicas: 3, template: {spec: " +
		"{containers: [{name: c, resources: {limits: {cpu: 1}}}]}}}}")
	in.Expand(manifest.NodesUnknown)
	written := read("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}")
	pods := in.Objects[1]
	if len(pods.Names) != 3 || pods.From != "ReplicaSet a/r" || pods.Namespace != "a" {
		t.Errorf("%+v", pods)
	}
	if got, want := spec(t, pods), spec(t, written.Objects[0]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExpandRefusesNegativeCounts(t *testing.T) {
	for workload, want := range map[string]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: -1}}":                         "spec.replicas: -1 is negative",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w}, spec: {replicas: -2}}":                        "spec.replicas: -2 is negative",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: w}, spec: {parallelism: -3}}":                            "spec.parallelism: -3 is negative",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: w}, spec: {jobTemplate: {spec: {parallelism: -4}}}}": "spec.jobTemplate.spec.parallelism: -4 is negative",
	} {
		in := read(workload)
		in.Expand(1)
		if len(in.Bad) != 1 || !strings.Contains(in.Bad[0].String(), want) {
			t.Errorf("%s: %v", workload, in.Bad)
		}
	}
}

func spec(t *testing.T, o *manifest.Object) string {
	t.Helper()
	pod, ok := o.Value.(*corev1.Pod)
	if !ok {
		t.Fatalf("%T is no pod", o.Value)
	}
	text, err := yaml.Marshal(pod.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzRead feeds anything: nothing panics, and every problem has a line of the text.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../../testdata/usage/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	more, err := filepath.Glob("../../testdata/usage/bad/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(files, more...) {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := read(text)
		if len(in.Bad) == 0 {
			in.Expand(1)
		}
		lines := strings.Count(text, "\n") + 1
		for _, p := range append(in.Bad, in.Notes...) {
			if p.Line < 0 || p.Line > lines {
				t.Errorf("%s: there are %d lines", p, lines)
			}
		}
	})
}
