package evaluator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetquota/fleetquota/evaluator"
)

func TestCountedObjectsCostOne(t *testing.T) {
	tests := map[string]runtime.Object{
		"an object":             &corev1.ConfigMap{},
		"only its metadata":     &metav1.PartialObjectMetadata{},
		"nothing known of it":   nil,
		"nothing in particular": (*corev1.ConfigMap)(nil),
	}
	for sentence, object := range tests {
		t.Run(sentence, func(t *testing.T) {
			got := charge(t, deployKind, object)
			wantAmounts(t, got.Amounts, list("count/deployments.apps", "1"))
			if got.Class != (evaluator.Class{}) || !got.Until.IsZero() || got.After != nil {
				t.Errorf("got %+v, want no class and no end", got)
			}
		})
	}
	if err := forKind(t, deployKind).Constraints(nil, []corev1.ResourceName{"count/deployments.apps"}); err != nil {
		t.Error(err)
	}
}
