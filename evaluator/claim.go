package evaluator

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// volumeClaims charges persistent volume claims and the storage that they ask
// for, in total and once more under the name of their storage class.
type volumeClaims struct{}

// Resource is the kind that volumeClaims charges.
func (volumeClaims) Resource() schema.GroupResource {
	return corev1.Resource("persistentvolumeclaims")
}

// Covers says whether claims are part of the amount.
func (volumeClaims) Covers(name corev1.ResourceName) bool {
	const claimsOfClass = storageClassInfix + string(corev1.ResourcePersistentVolumeClaims)
	const storageOfClass = storageClassInfix + string(corev1.ResourceRequestsStorage)
	return oneOf(Canonical(name), countClaims, corev1.ResourceRequestsStorage) ||
		strings.HasSuffix(string(name), claimsOfClass) || strings.HasSuffix(string(name), storageOfClass)
}

// Charge says what a claim costs.
func (volumeClaims) Charge(obj runtime.Object, _ time.Time) (Charge, error) {
	claim, err := as[corev1.PersistentVolumeClaim](obj)
	if err != nil {
		return Charge{}, err
	}
	amounts := Amounts{count(countClaims, 1)}
	class := storageClass(claim)
	if class != "" {
		amounts = append(amounts, count(ofStorageClass(class, corev1.ResourcePersistentVolumeClaims), 1))
	}
	if storage, asked := claimedStorage(claim); asked {
		amounts = append(amounts, Amount{Name: corev1.ResourceRequestsStorage, Quantity: storage})
		if class != "" {
			amounts = append(amounts, Amount{Name: ofStorageClass(class, corev1.ResourceRequestsStorage), Quantity: storage.DeepCopy()})
		}
	}
	return Charge{
		Amounts: ordered(amounts),
		Class:   Class{Kind: ScopedClaim, VolumeAttributesClasses: attributesClasses(claim)},
	}, nil
}

// Constraints is nil: a claim may be created as it is.
func (volumeClaims) Constraints(runtime.Object, []corev1.ResourceName) error {
	return nil
}

// ofStorageClass is the name of an amount that counts one storage class alone.
func ofStorageClass(class string, name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(class+storageClassInfix) + name
}

// storageClass is the claim's class. The old annotation wins, even when empty.
func storageClass(claim *corev1.PersistentVolumeClaim) string {
	if class, found := claim.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return class
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// claimedStorage is what the claim holds in whole bytes: what it asks for, or
// what an expansion has allocated if that is more. An allocation without a
// request is nothing.
func claimedStorage(claim *corev1.PersistentVolumeClaim) (storage resource.Quantity, asked bool) {
	request, asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !asked {
		return resource.Quantity{}, false
	}
	storage = wholeBytes(Bound(request))
	allocated, found := claim.Status.AllocatedResources[corev1.ResourceStorage]
	allocated = Bound(allocated)
	if found && allocated.Cmp(storage) > 0 {
		storage = wholeBytes(allocated)
	}
	return storage, true
}

// wholeBytes is a copy of the quantity, rounded up: quota refuses fractions.
func wholeBytes(quantity resource.Quantity) resource.Quantity {
	rounded := quantity.DeepCopy()
	if rounded.RoundUp(0) {
		return quantity.DeepCopy() // nothing was lost: keep the original form
	}
	return rounded
}

// attributesClasses lists the volume attributes classes that a claim refers to:
// the wanted one, the current one, and the one a change is under way to.
func attributesClasses(claim *corev1.PersistentVolumeClaim) string {
	var names []string
	for _, name := range []*string{claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName} {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	if change := claim.Status.ModifyVolumeStatus; change != nil && change.TargetVolumeAttributesClassName != "" {
		names = append(names, change.TargetVolumeAttributesClassName)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), classSeparator)
}
