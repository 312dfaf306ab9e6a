package evaluator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/evaluator"
)

func TestCanonical(t *testing.T) {
	tests := map[corev1.ResourceName]corev1.ResourceName{
		"cpu":                      "requests.cpu",
		"memory":                   "requests.memory",
		"ephemeral-storage":        "requests.ephemeral-storage",
		"hugepages-2Mi":            "requests.hugepages-2Mi",
		"services":                 "count/services",
		"persistentvolumeclaims":   "count/persistentvolumeclaims",
		"configmaps":               "count/configmaps",
		"secrets":                  "count/secrets",
		"replicationcontrollers":   "count/replicationcontrollers",
		"resourcequotas":           "count/resourcequotas",
		"pods":                     "pods",
		"count/pods":               "count/pods",
		"requests.cpu":             "requests.cpu",
		"limits.cpu":               "limits.cpu",
		"requests.hugepages-2Mi":   "requests.hugepages-2Mi",
		"requests.storage":         "requests.storage",
		"requests.example.com/gpu": "requests.example.com/gpu",
		"services.nodeports":       "services.nodeports",
		"count/deployments.apps":   "count/deployments.apps",
		"deployments.apps":         "deployments.apps",
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims": "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
	}
	for name, want := range tests {
		if got := evaluator.Canonical(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestCanonicalNamesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := corev1.ResourceName(rapid.StringMatching(`(requests\.|limits\.|count/|hugepages-)?(cpu|memory|pods|services|x\.y/z)`).Draw(t, "name"))
		once := evaluator.Canonical(name)
		if twice := evaluator.Canonical(once); twice != once {
			t.Errorf("%s became %s, then %s", name, once, twice)
		}
	})
}
