package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// namespace is where the pods of all figures are.
const namespace = sample.Namespace

// podKind is the kind that the figures are about.
func podKind() schema.GroupResource { return corev1.Resource("pods") }

// podKeys are what the quotas of the figures ask of pods.
func podKeys() []corev1.ResourceName {
	return []corev1.ResourceName{
		"pods", "count/pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
	}
}
