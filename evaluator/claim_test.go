package evaluator_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator"
)

type claimOption func(*corev1.PersistentVolumeClaim)

func claim(options ...claimOption) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	for _, option := range options {
		option(c)
	}
	return c
}

func asking(size string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = list("storage", size) }
}

func allocated(resources corev1.ResourceList) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Status.AllocatedResources = resources }
}

func inClass(name string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func annotated(class string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: class}
	}
}

// attributes sets the class of volume attributes: wanted, current, under way to.
func attributes(wanted, current, target string) claimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeAttributesClassName = &wanted
		c.Status.CurrentVolumeAttributesClassName = &current
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target}
	}
}

func TestClaimCharge(t *testing.T) {
	const ofGold = "gold.storageclass.storage.k8s.io/"
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  corev1.ResourceList // beside one of count/persistentvolumeclaims
	}{
		"a claim that asks for nothing costs itself": {
			claim: claim(),
		},
		"the storage it asks for": {
			claim: claim(asking("10Gi")),
			want:  list("requests.storage", "10Gi"),
		},
		"both once more for its class": {
			claim: claim(asking("10Gi"), inClass("gold")),
			want:  list("requests.storage", "10Gi", ofGold+"requests.storage", "10Gi", ofGold+"persistentvolumeclaims", "1"),
		},
		"a class without storage": {
			claim: claim(inClass("gold")),
			want:  list(ofGold+"persistentvolumeclaims", "1"),
		},
		"the annotation names the class": {
			claim: claim(annotated("gold"), inClass("silver")),
			want:  list(ofGold+"persistentvolumeclaims", "1"),
		},
		"an empty annotation hides the class": {
			claim: claim(annotated(""), inClass("gold")),
		},
		"the empty class is none": {
			claim: claim(inClass("")),
		},
		"an expansion that has allocated more": {
			claim: claim(asking("10Gi"), allocated(list("storage", "20Gi"))),
			want:  list("requests.storage", "20Gi"),
		},
		"an expansion that has allocated less": {
			claim: claim(asking("10Gi"), allocated(list("storage", "5Gi"))),
			want:  list("requests.storage", "10Gi"),
		},
		"an allocation of something else": {
			claim: claim(asking("10Gi"), allocated(list("cpu", "20Gi"))),
			want:  list("requests.storage", "10Gi"),
		},
		"an allocation without a request": {
			claim: claim(allocated(list("storage", "20Gi"))),
		},
		"fractions of a byte are rounded up": {
			claim: claim(asking("1500m")),
			want:  list("requests.storage", "2"),
		},
		"an allocation is rounded up too": {
			claim: claim(asking("1"), allocated(list("storage", "2100m"))),
			want:  list("requests.storage", "3"),
		},
		"an allocation within the rounding is not more": {
			claim: claim(asking("1500m"), allocated(list("storage", "1700m"))),
			want:  list("requests.storage", "2"),
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			want := list("count/persistentvolumeclaims", "1")
			maps.Copy(want, test.want)
			got := charge(t, claimKind, test.claim)
			wantAmounts(t, got.Amounts, want)
			if got.Class != (evaluator.Class{Kind: evaluator.ScopedClaim}) || !got.Until.IsZero() || got.After != nil {
				t.Errorf("got %+v, want no attributes class and no end", got)
			}
		})
	}
	if err := forKind(t, claimKind).Constraints(nil, []corev1.ResourceName{"requests.storage"}); err != nil {
		t.Error(err)
	}
}

func TestClaimChargeSharesNoQuantity(t *testing.T) {
	object := claim(asking("100000Gi"), allocated(list("storage", "200000Gi")), inClass("gold"))
	before := object.DeepCopy()
	got := charge(t, claimKind, object)
	for i := range got.Amounts {
		got.Amounts[i].Quantity.Add(list("x", "50000Gi")["x"])
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the claim changed:\n%s", diff)
	}
	wantAmounts(t, got.Amounts[2:3], list("gold.storageclass.storage.k8s.io/requests.storage", "250000Gi"))
	wantAmounts(t, got.Amounts[3:], list("requests.storage", "250000Gi"))
}

func TestClaimClass(t *testing.T) {
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		in    []string
		out   []string
	}{
		"a claim without a class":        {claim: claim(), out: []string{"fast", ""}},
		"empty names are no names":       {claim: claim(attributes("", "", "")), out: []string{"fast", ""}},
		"the class that it wants":        {claim: claim(attributes("fast", "", "")), in: []string{"fast"}, out: []string{"slow"}},
		"the class that it has":          {claim: claim(attributes("", "fast", "")), in: []string{"fast"}, out: []string{"slow"}},
		"the class that it is given":     {claim: claim(attributes("", "", "fast")), in: []string{"fast"}, out: []string{"slow"}},
		"all classes that it refers to":  {claim: claim(attributes("c", "a", "b")), in: []string{"a", "b", "c"}, out: []string{"d"}},
		"a class referred to repeatedly": {claim: claim(attributes("a", "a", "a")), in: []string{"a"}, out: []string{"b"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			class := charge(t, claimKind, test.claim).Class
			for _, name := range test.in {
				if !only(t, corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpIn, name).Matches(class) {
					t.Errorf("%+v is not in %q", class, name)
				}
			}
			for _, name := range test.out {
				if only(t, corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpIn, name).Matches(class) {
					t.Errorf("%+v is in %q", class, name)
				}
			}
		})
	}
	if a, b := charge(t, claimKind, claim(attributes("a", "b", ""))), charge(t, claimKind, claim(attributes("b", "a", "a"))); a.Class != b.Class {
		t.Errorf("the same names make two classes: %+v and %+v", a.Class, b.Class)
	}
}
