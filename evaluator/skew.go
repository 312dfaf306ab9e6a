package evaluator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// The minor versions of Kubernetes 1 whose rules are known.
const (
	oldestMinor = 34
	newestMinor = 37
)

// rules is what differs between minor versions of Kubernetes, with the feature
// gates that they set by default:
//
//	                                      1.34      1.35      1.36      1.37
//	resized pods are summed               by container ------------>    by list
//	status without actual resources       is not read -------------->   counts
//	request, resize infeasible, no status counts ------------------->   does not
//	empty pod-level resources             decide QoS --------------->   do not
//	implicit resources of device classes  unknown   count ---------------------->
//	claims cost extended resources        never ----------->  always ----------->
type rules struct {
	minor int

	// perContainer sums, for each container, the most of what it asks for, was
	// allocated and has. The newer rule sums each of the three over the pod, and
	// takes the most of the sums.
	perContainer bool
	// anyPodLevel lets pod-level resources decide the quality of service even if
	// they are empty, and takes less than nothing for nothing.
	anyPodLevel bool
	// implicitResources counts requests.deviceclass.resource.kubernetes.io/CLASS.
	implicitResources bool
	// extendedClaims charges resource claims under the names of the extended
	// resources that their device classes stand for.
	extendedClaims bool
}

// version is the minor version that the rules are those of.
func (r rules) version() string {
	return fmt.Sprintf("1.%d", r.minor)
}

// rulesFor chooses the rules for a version, and says whether they are that
// version's own.
func rulesFor(version string) (chosen rules, exact bool) {
	minor, understood := parseMinor(version)
	nearest := min(max(minor, oldestMinor), newestMinor)
	return rules{
		minor:             nearest,
		perContainer:      nearest < 37,
		anyPodLevel:       nearest < 37,
		implicitResources: nearest >= 35,
		extendedClaims:    nearest >= 36,
	}, understood && nearest == minor
}

// sum is what the pod requests and is limited to. The pod must be [detached].
func (r rules) sum(pod *corev1.Pod) (requests, limits corev1.ResourceList) {
	options := resourcehelper.PodResourcesOptions{
		UseStatusResources: true, // a resized pod costs what it asks for or what it still holds, whichever is more
	}
	if r.perContainer {
		pod = settled(pod)
		options.UseStatusResources = false
	}
	return resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options)
}

// settled is the pod as if each container asked for the most of what it asks
// for, was allocated and has. Only containers whose status says what they have
// differ; of the init containers, only sidecars.
func settled(pod *corev1.Pod) *corev1.Pod {
	statuses := make(map[string]*corev1.ContainerStatus, len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses))
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			statuses[list[i].Name] = &list[i]
		}
	}
	infeasible := resourcehelper.IsPodResizeInfeasible(pod)
	settle := func(containers []corev1.Container, concerned func(*corev1.Container) bool) []corev1.Container {
		changed := slices.Clone(containers)
		for i := range changed {
			status := statuses[changed[i].Name]
			if status == nil || status.Resources == nil || !concerned(&changed[i]) {
				continue
			}
			asked := changed[i].Resources
			if infeasible {
				asked = corev1.ResourceRequirements{}
			}
			changed[i].Resources = corev1.ResourceRequirements{
				Requests: most(asked.Requests, status.Resources.Requests, status.AllocatedResources),
				Limits:   most(asked.Limits, status.Resources.Limits),
			}
		}
		return changed
	}
	copied := *pod
	copied.Spec.Containers = settle(pod.Spec.Containers, func(*corev1.Container) bool { return true })
	copied.Spec.InitContainers = settle(pod.Spec.InitContainers, func(c *corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	return &copied
}

// most is the largest quantity of each resource.
func most(lists ...corev1.ResourceList) corev1.ResourceList {
	largest := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			if found, ok := largest[name]; !ok || quantity.Cmp(found) > 0 {
				largest[name] = quantity.DeepCopy()
			}
		}
	}
	return largest
}

// podLevelDecides says whether the pod-level resources decide the quality of
// service of a pod, and not its containers.
func (r rules) podLevelDecides(pod *corev1.Pod) bool {
	if r.anyPodLevel {
		return pod.Spec.Resources != nil
	}
	return resourcehelper.IsPodLevelResourcesSet(pod)
}

// something says whether a request or limit is one.
func (r rules) something(quantity resource.Quantity) bool {
	if r.anyPodLevel {
		return quantity.Sign() > 0
	}
	return !quantity.IsZero()
}

// parseMinor reads the minor version out of "v1.37.2", "1.36+" or "1.34.4-eks".
// Another major version is a minor version before all or after all of 1; so is a
// version that is not understood, because new clusters are likelier than old.
func parseMinor(version string) (minor int, understood bool) {
	const before, after = 0, newestMinor + 1
	major, rest, found := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if !found {
		return after, false
	}
	digits := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = rest[:end]
	}
	minor, err := strconv.Atoi(digits)
	if err != nil {
		return after, false
	}
	switch major {
	case "0":
		return before, true
	case "1":
		return minor, true
	}
	return after, false
}
