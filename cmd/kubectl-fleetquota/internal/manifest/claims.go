package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// claims makes what pods of one kind claim for themselves alone.
func (e *expansion) claims(o *Object, pod *corev1.Pod, pods []string) {
	if len(pods) == 0 {
		return
	}
	e.volumes(o, &pod.Spec, pods)
	e.devices(o, pod, pods)
}

// volumes makes the claims for the ephemeral volumes of pods.
func (e *expansion) volumes(o *Object, spec *corev1.PodSpec, pods []string) {
	for i := range spec.Volumes {
		source := spec.Volumes[i].Ephemeral
		if source == nil || source.VolumeClaimTemplate == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{Spec: *source.VolumeClaimTemplate.Spec.DeepCopy()}
		claim.Annotations = source.VolumeClaimTemplate.Annotations
		names := make([]string, 0, len(pods))
		for _, pod := range pods {
			names = append(names, pod+"-"+spec.Volumes[i].Name)
		}
		e.add(o, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), claim, names)
	}
}

// devices makes the claims for devices of pods, except for those that they have
// already.
func (e *expansion) devices(o *Object, pod *corev1.Pod, pods []string) {
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		has := slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
			return s.Name == claim.Name
		})
		if claim.ResourceClaimTemplateName == nil || has {
			continue
		}
		template := e.template(o.Namespace, *claim.ResourceClaimTemplateName)
		if template == nil {
			e.in.Notes = append(e.in.Notes, o.Problem("the ResourceClaimTemplate "+*claim.ResourceClaimTemplateName+
				" is not in the files: its claims are not counted"))
			continue
		}
		names := make([]string, 0, len(pods))
		for _, name := range pods {
			names = append(names, name+"/"+claim.Name) // no name of another: a server adds random letters
		}
		e.add(o, resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), &resourcev1.ResourceClaim{Spec: *template.Spec.Spec.DeepCopy()}, names)
	}
}

// template finds a template of claims in the files; nil where there is none.
func (e *expansion) template(namespace, name string) *resourcev1.ResourceClaimTemplate {
	for _, o := range e.in.Objects {
		if template, ok := o.Value.(*resourcev1.ResourceClaimTemplate); ok && o.Namespace == namespace && o.Names[0] == name {
			return template
		}
	}
	return nil
}
