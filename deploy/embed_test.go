package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/deploy"
)

func TestEveryManifestDecodesStrictly(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, appsv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files := manifestFiles(t)
	if len(files) < 10 {
		t.Fatalf("found only %v", files)
	}
	for _, file := range files {
		for _, document := range documents(t, file) {
			if _, _, err := decoder.Decode(document, nil, nil); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func TestNoRuleHoldsAWildcard(t *testing.T) {
	for _, rules := range allRules(t) {
		for _, rule := range rules.rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs} {
				if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
					t.Errorf("%s has a wildcard: %v", rules.name, rule)
				}
			}
		}
	}
}

func TestMemberRolesWriteOnlyWhatTheirNameSays(t *testing.T) {
	writes := map[string]string{
		deploy.RoleObserve:        "",
		deploy.RoleObserveBase:    "",
		deploy.RoleObserveSecrets: "",
		deploy.RoleLocalStatus:    "resourcequotas/status: update patch",
		deploy.RoleDistribute:     "resourcequotas: create patch delete",

		deploy.RoleCreateNamespaces: "namespaces: create",
	}
	roles, err := deploy.MemberRoles()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		want, known := writes[role.Name]
		delete(writes, role.Name)
		if got := writesOf(role.Rules); !known || got != want {
			t.Errorf("%s writes %q, want %q", role.Name, got, want)
		}
	}
	if len(writes) > 0 {
		t.Errorf("missing roles: %v", writes)
	}
}

func TestObserveIsPutTogetherByItsLabel(t *testing.T) {
	roles, err := deploy.MemberRoles()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*rbacv1.ClusterRole{}
	for _, role := range roles {
		byName[role.Name] = role
	}
	selectors := byName[deploy.RoleObserve].AggregationRule.ClusterRoleSelectors
	for key, value := range selectors[0].MatchLabels {
		for _, role := range roles {
			if selected := role.Labels[key] == value; selected != (role.Name == deploy.RoleObserveBase) {
				t.Errorf("%s selected by %s=%s: %t", role.Name, key, value, selected)
			}
		}
	}
}

func TestTheHubReadsSecretsOnlyInItsNamespace(t *testing.T) {
	objects, err := deploy.HubRBAC()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "secrets") {
				t.Errorf("%s reaches secrets of every namespace", role.Name)
			}
		}
	}
}

func TestCRDsAreTheThreeTypes(t *testing.T) {
	crds, err := deploy.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, crd := range crds {
		kinds = append(kinds, crd.Spec.Names.Kind)
	}
	if got := strings.Join(kinds, " "); got != "FleetGrant FleetMember FleetQuota" {
		t.Errorf("got %s", got)
	}
}

func TestKustomizationsNameTheFilesBesideThem(t *testing.T) {
	for _, dir := range []string{"crds", "hub", filepath.Join("roles", "member")} {
		data, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var kustomization struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Resources  []string `json:"resources"`
		}
		if err := yaml.UnmarshalStrict(data, &kustomization); err != nil {
			t.Fatal(err)
		}
		for _, file := range manifestFiles(t) {
			if filepath.Dir(file) == dir && !slices.Contains(kustomization.Resources, filepath.Base(file)) {
				t.Errorf("%s is not in the kustomization", file)
			}
		}
		for _, name := range kustomization.Resources {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
}

type rulesOf struct {
	name  string
	rules []rbacv1.PolicyRule
}

func allRules(t *testing.T) []rulesOf {
	t.Helper()
	var all []rulesOf
	for _, file := range manifestFiles(t) {
		for _, document := range documents(t, file) {
			var role rbacv1.ClusterRole // of a Role, too, it has the rules
			if err := yaml.Unmarshal(document, &role); err != nil {
				t.Fatal(err)
			}
			if role.Kind == "ClusterRole" || role.Kind == "Role" {
				all = append(all, rulesOf{name: file + " " + role.Name, rules: role.Rules})
			}
		}
	}
	if len(all) < 8 {
		t.Fatalf("found only %d roles", len(all))
	}
	return all
}

func writesOf(rules []rbacv1.PolicyRule) string {
	var writes []string
	for _, rule := range rules {
		verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
			return slices.Contains([]string{"get", "list", "watch"}, verb)
		})
		if len(verbs) > 0 {
			writes = append(writes, strings.Join(rule.Resources, " ")+": "+strings.Join(verbs, " "))
		}
	}
	return strings.Join(writes, "; ")
}

// manifestFiles are the manifests of this folder; kustomizations are none.
func manifestFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"crds/*.yaml", "hub/*.yaml", "roles/*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "kustomization.yaml" })
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.TrimPrefix(data, []byte("---\n"))
	return bytes.Split(data, []byte("\n---\n"))
}
