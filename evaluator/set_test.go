package evaluator_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

func TestSetRules(t *testing.T) {
	tests := map[string]struct {
		rules string
		exact bool
	}{
		"v1.37.2":                 {"1.37", true},
		"1.36+":                   {"1.36", true},
		"v1.34.4-gke.100":         {"1.34", true},
		"v1.35":                   {"1.35", true},
		"v1.35.0-alpha.1":         {"1.35", true},
		"v1.33.9":                 {"1.34", false},
		"v1.9.0":                  {"1.34", false},
		"v0.21.0":                 {"1.34", false},
		"v1.38.0-beta.0":          {"1.37", false},
		"v1.100.0":                {"1.37", false},
		"v2.0.0":                  {"1.37", false},
		"":                        {"1.37", false},
		"v1":                      {"1.37", false},
		"v1.":                     {"1.37", false},
		"v1.x":                    {"1.37", false},
		"vx.37":                   {"1.37", false},
		"main":                    {"1.37", false},
		"v1.99999999999999999999": {"1.37", false},
	}
	for version, want := range tests {
		t.Run(version, func(t *testing.T) {
			set := evaluator.NewSet(version, nil)
			if set.Rules() != want.rules || set.Exact() != want.exact {
				t.Errorf("got %s, %t; want %s, %t", set.Rules(), set.Exact(), want.rules, want.exact)
			}
		})
	}
}

func TestSetKinds(t *testing.T) {
	all := []schema.GroupResource{
		podKind, serviceKind, claimKind, deployKind,
		{Resource: "configmaps"},
		{Resource: "events"},
		{Group: "resource.k8s.io", Resource: "resourceclaims"},
	}
	tests := map[corev1.ResourceName]string{
		"pods":                     "pods",
		"count/pods":               "pods",
		"cpu":                      "pods",
		"requests.cpu":             "pods",
		"limits.memory":            "pods",
		"ephemeral-storage":        "pods",
		"limits.ephemeral-storage": "pods",
		"hugepages-2Mi":            "pods",
		"requests.hugepages-2Mi":   "pods",
		"requests.example.com/gpu": "pods resourceclaims.resource.k8s.io", // a device class may stand for it
		"services":                 "services",
		"count/services":           "services",
		"services.nodeports":       "services",
		"services.loadbalancers":   "services",
		"persistentvolumeclaims":   "persistentvolumeclaims",
		"requests.storage":         "persistentvolumeclaims",
		"configmaps":               "configmaps",
		"count/configmaps":         "configmaps",
		"count/deployments.apps":   "deployments.apps",
		"gold.storageclass.storage.k8s.io/requests.storage":          "persistentvolumeclaims",
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims":    "persistentvolumeclaims",
		"requests.gold.storageclass.storage.k8s.io/requests.storage": "persistentvolumeclaims pods resourceclaims.resource.k8s.io",
		"count/resourceclaims.resource.k8s.io":                       "resourceclaims.resource.k8s.io",

		"requests.deviceclass.resource.kubernetes.io/big":   "pods resourceclaims.resource.k8s.io",
		"big.deviceclass.resource.k8s.io/devices":           "resourceclaims.resource.k8s.io",
		"requests.big.deviceclass.resource.k8s.io/devices":  "pods resourceclaims.resource.k8s.io",
		"hugepages-big.deviceclass.resource.k8s.io/devices": "pods resourceclaims.resource.k8s.io", // a class may have any name

		"count/events":             "", // never counted
		"secrets":                  "", // not served here
		"count/deployments":        "",
		"count/services.":          "",
		"count/":                   "",
		"limits.example.com/gpu":   "",
		"limits.hugepages-2Mi":     "",
		"requests.kubernetes.io/x": "",
		"storage":                  "",
		"example.com/gpu":          "",
		"deployments.apps":         "",
		"":                         "",
	}
	set := served(all...)
	for name, want := range tests {
		var got []string
		for _, kind := range set.Kinds(name) {
			got = append(got, kind.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %q", name, got, want)
		}
	}
	for name := range tests {
		if got := served().Kinds(name); len(got) > 0 {
			t.Errorf("%q: %v without a served kind", name, got)
		}
	}
}

func TestSetFor(t *testing.T) {
	set := served(podKind, podKind, serviceKind, claimKind, deployKind)
	for _, kind := range []schema.GroupResource{podKind, serviceKind, claimKind, deployKind} {
		found, ok := set.For(kind)
		if !ok || found.Resource() != kind {
			t.Errorf("%v: got %v, %t", kind, found, ok)
		}
		if want := kind != deployKind; set.Special(kind) != want {
			t.Errorf("%v: special is %t, want %t", kind, !want, want)
		}
		if found.Covers("requests.deviceclass.resource.kubernetes.io/big") != (kind == podKind) {
			t.Errorf("%v: wrong about the implicit resource of a device class", kind)
		}
		if name := corev1.ResourceName("count/" + kind.String()); !found.Covers(name) {
			t.Errorf("%v does not cover %s", kind, name)
		}
	}
	if !set.Special(deviceClassKind) || evaluator.NewSet("v1.35.4", nil).Special(deviceClassKind) {
		t.Error("device classes decide charges since 1.36, and not before")
	}
	absent := schema.GroupResource{Resource: "secrets"}
	if found, ok := set.For(absent); ok || found != nil || set.Special(absent) {
		t.Errorf("%v: got %v, %t", absent, found, ok)
	}
}

func TestSetLeavesOutWhatIsNeverCounted(t *testing.T) {
	kinds := []string{
		"bindings", "componentstatuses", "events", "events.events.k8s.io", "deviceclasses.resource.k8s.io",
		"tokenreviews.authentication.k8s.io", "selfsubjectreviews.authentication.k8s.io",
		"subjectaccessreviews.authorization.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io",
		"localsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
	}
	counted := []string{"events.example.com", "bindings.example.com", "widgets.authorization.k8s.io"}
	var all []schema.GroupResource
	for _, name := range slices.Concat(kinds, counted) {
		all = append(all, schema.ParseGroupResource(name))
	}
	set := served(all...)
	for i, kind := range all {
		if _, ok := set.For(kind); ok != (i >= len(kinds)) {
			t.Errorf("%v: counted is %t", kind, ok)
		}
	}
}
