package wire

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decodable is an object of the API that can be read from its message.
type decodable interface {
	runtime.Object
	Unmarshal(message []byte) error
}

// table says how the objects of one kind are read.
type table struct {
	kind  schema.GroupVersionKind
	make  func() decodable
	whole *message
	// single: what decides a charge differs for every object of the kind, so
	// that there is nothing to look up.
	single bool
}

// tables is all that is known of kinds.
func tables() map[schema.GroupResource]*table {
	return map[schema.GroupResource]*table{
		corev1.Resource("pods"): {
			kind: corev1.SchemeGroupVersion.WithKind("Pod"), make: func() decodable { return &corev1.Pod{} },
			whole: compile[corev1.Pod](podFields()),
		},
		corev1.Resource("services"): {
			kind: corev1.SchemeGroupVersion.WithKind("Service"), make: func() decodable { return &corev1.Service{} },
			whole: compile[corev1.Service](serviceFields()),
		},
		corev1.Resource("persistentvolumeclaims"): {
			kind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), make: func() decodable { return &corev1.PersistentVolumeClaim{} },
			whole: compile[corev1.PersistentVolumeClaim](volumeClaimFields()),
		},
		resourcev1.Resource("resourceclaims"): {
			kind: resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), make: func() decodable { return &resourcev1.ResourceClaim{} },
			whole: compile[resourcev1.ResourceClaim](deviceClaimFields()), single: true,
		},
		resourcev1.Resource("deviceclasses"): {
			kind: resourcev1.SchemeGroupVersion.WithKind("DeviceClass"), make: func() decodable { return &resourcev1.DeviceClass{} },
			whole: compile[resourcev1.DeviceClass](deviceClassFields()), single: true,
		},
	}
}

// fields is what is cut out of a message, by the names that its fields have in
// the API. What is not named is skipped.
type fields map[string]field

// field says what becomes of every occurrence of a field.
type field struct {
	how  how
	of   fields   // of a message that is looked into
	only []string // looked into only where the first of its fields has one of these values
	part part     // it also is this part of the object's identity
	own  bool     // cut out only of an object that is decoded by itself
	lone bool     // an object that has it is decoded by itself
}

type how uint8

const (
	skip    how = iota
	keep        // all of it
	inside      // what its own fields say
	present     // only that it is there: it becomes empty
	nonzero     // only whether the number is 0: any other becomes 1
)

// part is one of what makes an object's identity.
type part uint8

const (
	nothing part = iota
	itsName
	itsNamespace
	itsVersion
	itsCreation
	parts // how many there are
)

func kept() field                  { return field{how: keep} }
func within(of fields) field       { return field{how: inside, of: of} }
func entries(keys ...string) field { return field{how: inside, of: entryFields(), only: keys} }

// itself makes it a field that is cut out only of an object that is decoded by
// itself.
func (f field) itself(p part) field {
	f.own, f.part = true, p
	return f
}

func entryFields() fields { return fields{entryKey: kept(), entryValue: kept()} }

// The fields of an entry of a map.
const (
	entryKey   = "key"
	entryValue = "value"
)

// metadata is what is read of every object, and more. Only a bookmark has the
// annotation.
func metadata(more fields) field {
	all := fields{
		"name":              kept().itself(itsName),
		"namespace":         kept().itself(itsNamespace),
		"resourceVersion":   {part: itsVersion},
		"creationTimestamp": {part: itsCreation},
		"annotations":       entries(metav1.InitialEventsAnnotationKey),
	}
	maps.Copy(all, more)
	return within(all)
}

func podFields() fields {
	resources := within(fields{"requests": kept(), "limits": kept()})
	container := within(fields{"name": kept(), "resources": resources, "restartPolicy": kept()})
	status := within(fields{"name": kept(), "allocatedResources": kept(), "resources": resources})
	term := within(fields{"namespaces": {how: present}, "namespaceSelector": {how: present}})
	affinity := within(fields{
		"requiredDuringSchedulingIgnoredDuringExecution":  term,
		"preferredDuringSchedulingIgnoredDuringExecution": within(fields{"podAffinityTerm": term}),
	})
	return fields{
		"metadata": metadata(fields{
			"uid":                        kept().itself(nothing),
			"deletionTimestamp":          {how: keep, own: true, lone: true},
			"deletionGracePeriodSeconds": kept().itself(nothing),
		}),
		"spec": within(fields{
			"containers":            container,
			"initContainers":        container,
			"overhead":              kept(),
			"resources":             resources,
			"activeDeadlineSeconds": kept(),
			"priorityClassName":     kept(),
			"affinity":              within(fields{"podAffinity": affinity, "podAntiAffinity": affinity}),
		}),
		"status": within(fields{
			"phase":    kept(),
			"qosClass": kept(),
			"conditions": {
				how: inside, only: []string{string(corev1.PodResizePending)},
				of: fields{"type": kept(), "reason": kept()},
			},
			"containerStatuses":           status,
			"initContainerStatuses":       status,
			"extendedResourceClaimStatus": kept().itself(nothing),
		}),
	}
}

func serviceFields() fields {
	return fields{
		"metadata": metadata(nil),
		"spec": within(fields{
			"type":                          kept(),
			"allocateLoadBalancerNodePorts": kept(),
			"ports":                         within(fields{"nodePort": {how: nonzero}}),
		}),
	}
}

func volumeClaimFields() fields {
	return fields{
		"metadata": metadata(fields{
			"annotations": entries(metav1.InitialEventsAnnotationKey, corev1.BetaStorageClassAnnotation),
		}),
		"spec": within(fields{
			"storageClassName":          kept(),
			"volumeAttributesClassName": kept(),
			"resources":                 within(fields{"requests": kept()}),
		}),
		"status": within(fields{
			"allocatedResources":               kept(),
			"currentVolumeAttributesClassName": kept(),
			"modifyVolumeStatus":               within(fields{"targetVolumeAttributesClassName": kept()}),
		}),
	}
}

func deviceClaimFields() fields {
	devices := fields{"deviceClassName": kept(), "allocationMode": kept(), "count": kept()}
	return fields{
		"metadata": metadata(fields{
			"annotations":       entries(metav1.InitialEventsAnnotationKey, resourcev1.ExtendedResourceClaimAnnotation),
			"creationTimestamp": kept().itself(itsCreation),
			"ownerReferences":   kept(),
		}),
		"spec": within(fields{"devices": within(fields{
			"requests": within(fields{"exactly": within(devices), "firstAvailable": within(devices)}),
		})}),
	}
}

func deviceClassFields() fields {
	return fields{
		"metadata": metadata(nil),
		"spec":     within(fields{"extendedResourceName": kept()}),
	}
}
