package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// The cases of this file are those in which Kubernetes' own controller is slow
// or wrong. Where the hub keeps the quotas they must be right soon; what the
// native controller makes of the same is told in the log, for whoever wants to
// know.

// side is a member in which a case is played.
type side struct {
	*tenant

	member string
}

// onBothSides plays a case in a member whose quotas the hub keeps, and in one
// where Kubernetes' own controller does.
func onBothSides(t *testing.T, play func(s *side)) {
	t.Helper()
	t.Parallel()
	for name, member := range map[string]string{"ours": ours, "native": native} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(&side{tenant: shared.tenant(t, member), member: member})
		})
	}
}

// shows waits until the status of the quota q has these amounts, in names and
// quantities in turn. Of the native controller it only tells.
func (s *side) shows(when string, pairs ...string) {
	s.t.Helper()
	if s.member == ours {
		began := time.Now()
		s.localUses(s.member, "q", pairs...)
		s.t.Logf("%s: ours is right after %.1f s", when, time.Since(began).Seconds())
		return
	}
	const patience = 8 * time.Second
	s.tells(patience, when, "q", pairs...)
}

// tells logs what the native controller makes of a quota, and whether that is
// right.
func (s *side) tells(patience time.Duration, when, quota string, pairs ...string) {
	s.t.Helper()
	began := time.Now()
	err := scene.Eventually(s.t.Context(), patience, func(ctx context.Context) error {
		q, err := s.Member(s.member).Kubernetes.CoreV1().ResourceQuotas(s.namespace).Get(ctx, quota, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return same("used", q.Status.Used, list(pairs...))
	})
	if err != nil {
		s.t.Logf("%s: native is wrong: %v, want %s", when, err, text(list(pairs...)))
		return
	}
	s.t.Logf("%s: native is right after %.1f s", when, time.Since(began).Seconds())
}

// limits makes a quota and waits until it is answered.
func (s *side) limits(quota *corev1.ResourceQuota) {
	s.t.Helper()
	s.create(s.member, quota)
	s.must(answered(quota.Name).do(s.t.Context(), s.Member(s.member), s.namespace))
}

// does plays steps.
func (s *side) does(steps ...step) {
	s.t.Helper()
	_, err := play(s.t.Context(), s.Member(s.member), s.namespace, steps)
	s.must(err)
}

// ofClass narrows a quota to pods by their priority class.
func ofClass(q *corev1.ResourceQuota, operator corev1.ScopeSelectorOperator, classes ...string) *corev1.ResourceQuota {
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: classes},
	}}
	return q
}

// A scopeSelector may change, unlike scopes, and then other pods are counted.
func TestLocalQuotaWhoseScopeSelectorChanges(t *testing.T) {
	onBothSides(t, func(s *side) {
		s.create(s.member, pod("a", priority("gold")), pod("b", priority("gold")), pod("c", priority("silver")), pod("d"))
		s.limits(ofClass(resourceQuota("q", "pods", "10"), corev1.ScopeSelectorOpIn, "gold"))
		s.shows("gold", "pods", "2")
		selects := func(operator corev1.ScopeSelectorOperator, classes ...string) {
			s.t.Helper()
			api := s.Member(s.member).Kubernetes.CoreV1().ResourceQuotas(s.namespace)
			s.eventually(soon, func(ctx context.Context) error {
				q, err := api.Get(ctx, "q", metav1.GetOptions{})
				if err != nil {
					return err
				}
				_, err = api.Update(ctx, ofClass(q, operator, classes...), metav1.UpdateOptions{})
				return err
			})
		}
		selects(corev1.ScopeSelectorOpIn, "silver")
		s.shows("the selector is changed to silver", "pods", "1")
		selects(corev1.ScopeSelectorOpIn, "silver", "gold")
		s.shows("to both", "pods", "3")
		selects(corev1.ScopeSelectorOpNotIn, "gold")
		s.shows("to what is not gold", "pods", "2")
		s.does(deletion(pods, "d"))
		s.shows("and a pod is deleted", "pods", "1")
	})
}

// A service gives back the node ports that it has no more.
func TestLocalQuotaWhenTheNumberOfPortsChanges(t *testing.T) {
	onBothSides(t, func(s *side) {
		ports := func(n int) step {
			list := `{"name":"one","port":91}`
			for i := 1; i < n; i++ {
				list += fmt.Sprintf(`,{"name":"more%d","port":%d}`, i, 91+i)
			}
			return patching(services, "s", `{"spec":{"ports":[`+list+`]}}`)
		}
		s.create(s.member, service("s", corev1.ServiceTypeNodePort, 1))
		s.limits(resourceQuota("q", "services", "5", "services.nodeports", "10", "services.loadbalancers", "5"))
		s.shows("one port", "services", "1", "services.nodeports", "1", "services.loadbalancers", "0")
		s.does(ports(4))
		s.shows("four ports", "services", "1", "services.nodeports", "4", "services.loadbalancers", "0")
		s.does(ports(2))
		s.shows("two of them again", "services", "1", "services.nodeports", "2", "services.loadbalancers", "0")
		s.does(patching(services, "s", `{"spec":{"type":"LoadBalancer"}}`))
		s.shows("the same as a load balancer", "services", "1", "services.nodeports", "2", "services.loadbalancers", "1")
		s.does(patching(services, "s", `{"spec":{"allocateLoadBalancerNodePorts":false,"ports":[{"name":"one","port":91,"nodePort":0}]}}`))
		s.shows("without node ports", "services", "1", "services.nodeports", "0", "services.loadbalancers", "1")
	})
}

// While a pod is resized it costs the largest of what is asked for, what the
// kubelet has allocated and what the container has, and what is infeasible
// costs nothing.
func TestLocalQuotaWhileAPodIsResized(t *testing.T) {
	onBothSides(t, func(s *side) {
		for _, object := range scriptStage() {
			if err := s.Member(s.member).Create(t.Context(), "", object); !apierrors.IsAlreadyExists(err) {
				s.must(err)
			}
		}
		s.limits(resourceQuota("q", "requests.cpu", "10"))
		onStage := func(p *corev1.Pod) { p.Spec.NodeName = scriptNode }
		s.does(step{do: creation(pod("p", requests("cpu", "100m"), limits("cpu", "4"), onStage))})
		status := func(allocated, actual int64, pending string) step {
			return patching(pods, "p", `{"status":`+statusOf(allocated, actual, pending)+`}`, "status")
		}
		s.does(status(100, 100, ""))
		s.shows("it runs", "requests.cpu", "100m")
		s.does(resizing("p", "900m", "4"))
		s.shows("more is asked for", "requests.cpu", "900m")
		s.does(status(100, 100, "Deferred"))
		s.shows("the kubelet defers it", "requests.cpu", "900m")
		s.does(status(100, 100, "Infeasible"))
		s.shows("the kubelet finds it infeasible", "requests.cpu", "100m")
		s.does(resizing("p", "300m", "4"), status(300, 100, ""), status(300, 300, ""))
		s.shows("less is asked for, and given", "requests.cpu", "300m")
		s.does(resizing("p", "200m", "4"))
		s.shows("still less is asked for", "requests.cpu", "300m")
		s.does(status(200, 300, ""))
		s.shows("it is allocated", "requests.cpu", "300m")
		s.does(status(200, 200, ""))
		s.shows("the container has it", "requests.cpu", "200m")
		s.does(resizing("p", "50m", "4"), status(200, 50, ""))
		s.shows("the container has less than is allocated", "requests.cpu", "200m")
		s.does(status(50, 50, ""))
		s.shows("no more than that is allocated", "requests.cpu", "50m")
	})
}

// A pod that was deleted and whose grace is over counts as an object alone,
// though nothing happens to it.
func TestLocalQuotaOfAPodStuckBeyondItsGrace(t *testing.T) {
	onBothSides(t, func(s *side) {
		s.limits(resourceQuota("q", "pods", "10", "count/pods", "10"))
		s.does(step{do: creation(pod("stuck", scheduled, finalizer), pod("other"))})
		s.shows("both run", "pods", "2", "count/pods", "2")
		grace := int64(1)
		s.must(s.Member(s.member).Kubernetes.CoreV1().Pods(s.namespace).Delete(t.Context(), "stuck", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
		s.shows("one is stuck", "pods", "1", "count/pods", "2")
	})
}

// A namespace that is deleted and made anew begins with nothing, although its
// quota has the same name.
func TestLocalQuotaOfARecreatedNamespace(t *testing.T) {
	onBothSides(t, func(s *side) {
		for life, hard := range []string{"5", "1", "2"} {
			s.limits(resourceQuota("q", "pods", hard, "configmaps", "10"))
			s.does(step{do: creation(pod("a"), configMap("a"))})
			s.shows(fmt.Sprintf("life %d", life+1), "pods", "1", "configmaps", "1")
			if life == 1 {
				s.does(step{do: creation(pod("b")), refused: exceeded})
			}
			s.recreate()
		}
	})
}

// recreate deletes the namespace with all that is in it, as the namespace
// controller would, which does not run here, and makes it anew.
func (s *side) recreate() {
	s.t.Helper()
	ctx, member, now := s.t.Context(), s.Member(s.member), int64(0)
	namespaces := member.Kubernetes.CoreV1().Namespaces()
	s.must(namespaces.Delete(ctx, s.namespace, metav1.DeleteOptions{}))
	for _, resource := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("resourcequotas"), pods, corev1.SchemeGroupVersion.WithResource("configmaps"),
	} {
		s.must(member.Dynamic.Resource(resource).Namespace(s.namespace).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}))
	}
	s.eventually(soon, func(ctx context.Context) error {
		ns, err := namespaces.Get(ctx, s.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ns.Spec.Finalizers = nil
		_, err = namespaces.Finalize(ctx, ns, metav1.UpdateOptions{})
		return errors.Join(errors.New("the namespace is still there"), err)
	})
	s.must(member.CreateNamespace(ctx, s.namespace))
	s.eventually(soon, func(ctx context.Context) error { // until the server has learnt that it is another one
		if err := member.Create(ctx, s.namespace, secret("first")); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

// What a custom resource holds is nobody's business: its objects are counted
// whatever they look like, and whatever they are called.
func TestLocalQuotaBesideGarbageInACustomResource(t *testing.T) {
	onBothSides(t, func(s *side) {
		garbage := func(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
			u := custom(resource, name)
			size := map[string]any{"requests": map[string]any{"cpu": "lots", "memory": "-1Gi", "storage": map[string]any{}}}
			u.Object["spec"] = map[string]any{"resources": size, "containers": []any{map[string]any{"name": 1.5, "resources": size}}, "ports": "many"}
			u.Object["status"] = map[string]any{"allocatedResources": "1e1000000", "capacity": map[string]any{"storage": "NaN"}}
			return u
		}
		hard := []string{"pods", "10", "count/widgets.example.com", "10"}
		if s.member == ours {
			fake := schema.GroupVersionResource{Group: "garbage.example.com", Version: "v1", Resource: "pods"}
			hard = append(hard, "count/pods.garbage.example.com", "10")
			member := s.Member(s.member)
			s.must(errors.Join(member.Apply(t.Context(), crd(fake)), member.Allow(t.Context(), fake.GroupResource())))
			s.eventually(soon, func(ctx context.Context) error { return member.Create(ctx, s.namespace, garbage(fake, "a")) })
		}
		s.create(s.member, garbage(widgets, "a"), custom(widgets, "b"))
		s.limits(resourceQuota("q", hard...))
		s.does(step{do: creation(pod("a"))})
		shows := func(widgets, fakes string) {
			s.t.Helper()
			want := []string{"pods", "1", "count/widgets.example.com", widgets}
			if s.member == ours {
				want = append(want, "count/pods.garbage.example.com", fakes)
			}
			s.shows("garbage", want...)
		}
		shows("2", "1")
		s.does(patching(widgets, "a", `{"spec":{"resources":{"requests":{"cpu":"1..5"}}}}`), deletion(widgets, "b"))
		shows("1", "1")
	})
}

// What the hub may not list is the only thing that it does not count, until it
// may.
func TestLocalQuotaOnAKindThatMayNotBeListed(t *testing.T) {
	t.Parallel()
	doodads := schema.GroupVersionResource{Group: "doodad.example.com", Version: "v1", Resource: "doodads"}
	const key = "count/doodads.doodad.example.com"
	x := shared.tenant(t, ours)
	member := x.Member(ours)
	x.must(member.Apply(t.Context(), crd(doodads)))
	x.eventually(soon, func(ctx context.Context) error { return member.Create(ctx, x.namespace, custom(doodads, "a")) })
	x.create(ours, resourceQuota("q", "pods", "10", "configmaps", "10", key, "10"))
	x.localUses(ours, "q", "pods", "0", "configmaps", "0")
	x.eventually(soon, func(ctx context.Context) error { return member.Create(ctx, x.namespace, pod("a"), configMap("a")) })
	x.localUses(ours, "q", "pods", "1", "configmaps", "1")
	for range 3 { // fails after it was charged
		if err := member.Create(t.Context(), x.namespace, pod("a")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a second pod of one name: %v", err)
		}
	}
	x.localUses(ours, "q", "pods", "1", "configmaps", "1")
	x.delete(ours, pods, "a")
	x.localUses(ours, "q", "pods", "0", "configmaps", "1")

	x.must(member.Allow(t.Context(), doodads.GroupResource()))
	x.localAgreesWithin(time.Minute, ours, "q")
	x.create(ours, custom(doodads, "b"))
	x.localUses(ours, "q", "pods", "0", "configmaps", "1", key, "2")
}

// An object as large as the API server takes counts as any other, and keeps no
// other from being counted.
func TestLocalQuotaBesideLargeObjects(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, ours)
	x.create(ours, resourceQuota("q", "pods", "10", "services", "10", "services.nodeports", "10"))
	x.localUses(ours, "q", "pods", "0", "services", "0", "services.nodeports", "0")
	const many = 21_000
	large := pod("large", affine)
	terms := &large.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*terms = slices.Repeat([]corev1.PodAffinityTerm{{TopologyKey: "a"}}, many)
	wide := service("wide", corev1.ServiceTypeClusterIP, 0)
	wide.Spec.ClusterIP = corev1.ClusterIPNone
	for port := range int32(many) {
		wide.Spec.Ports = append(wide.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", port), Port: port + 1})
	}
	x.eventually(soon, func(ctx context.Context) error {
		return x.Member(ours).Create(ctx, x.namespace, pod("small"), large, wide)
	})
	x.localUses(ours, "q", "pods", "2", "services", "1", "services.nodeports", "0")
	x.delete(ours, pods, "small")
	x.localUses(ours, "q", "pods", "1", "services", "1", "services.nodeports", "0")
}

// A custom resource that was removed before the hub came has no count that the
// hub could know: what was written stays, of that resource alone, and is put
// right when the resource is there again.
func TestFaultLocalQuotaOnAKindRemovedBeforeTheStart(t *testing.T) {
	t.Parallel()
	const name, key = "husk", "count/gadgets.example.com"
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	husk := shared.addCluster(t, name)
	x := shared.tenant(t, name)
	x.must(husk.Apply(t.Context(), crd(gadgets)))
	x.eventually(soon, func(ctx context.Context) error { return husk.Create(ctx, x.namespace, custom(gadgets, "a")) })
	x.create(name, pod("a"), resourceQuota("old", "pods", "10", key, "5"), resourceQuota("other", "pods", "10"))
	api := husk.Kubernetes.CoreV1().ResourceQuotas(x.namespace)
	old, err := api.Get(t.Context(), "old", metav1.GetOptions{})
	x.must(err)
	old.Status = corev1.ResourceQuotaStatus{Hard: old.Spec.Hard, Used: list("pods", "7", key, "1")} // as somebody left it
	_, err = api.UpdateStatus(t.Context(), old, metav1.UpdateOptions{})
	x.must(err)
	x.must(x.removeCRD(husk, gadgets))

	r := registration(name)
	r.LocalStatus = "Always"
	x.must(x.Register(t.Context(), husk, r))
	x.localUses(name, "other", "pods", "1")
	x.localUses(name, "old", "pods", "1", key, "1")
	x.create(name, resourceQuota("new", "pods", "10", key, "5"))
	x.localUses(name, "new", "pods", "1")
	x.create(name, pod("b"))
	x.localUses(name, "old", "pods", "2", key, "1")
	x.delete(name, pods, "a")
	x.localUses(name, "old", "pods", "1", key, "1")
	x.localUses(name, "new", "pods", "1")

	x.must(errors.Join(husk.Apply(t.Context(), crd(gadgets)), husk.Allow(t.Context(), gadgets.GroupResource())))
	x.localUsesWithin(time.Minute, name, "old", "pods", "1", key, "0")
	x.localUses(name, "new", "pods", "1", key, "0")
}

// removeCRD removes a custom resource and waits until nothing is served.
func (x *tenant) removeCRD(member *scene.Cluster, resource schema.GroupVersionResource) error {
	definitions := member.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	name := resource.GroupResource().String()
	if err := definitions.Delete(x.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return scene.Eventually(x.t.Context(), soon, func(ctx context.Context) error {
		_, err := member.Dynamic.Resource(resource).Namespace(x.namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("%s is still served", name), err)
	})
}

// What a kind of object that changes or breaks does to the native controller is
// told here: the tests of custom resources, and those with Fault in their
// names, have the same for ours.
func TestFaultNativeControllerBesideBrokenKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("some minutes, and nothing about the hub")
	}
	t.Parallel()
	const name = "plain"
	const asks = 75 * time.Second // it asks what is served every 30 s
	member := shared.addCluster(t, name)
	s := &side{tenant: shared.tenant(t, name), member: name}
	serve := func(resource string) (schema.GroupVersionResource, string) {
		t.Helper()
		gvr := schema.GroupVersionResource{Group: resource + ".example.com", Version: "v1", Resource: resource}
		key := "count/" + gvr.GroupResource().String()
		s.must(member.Apply(t.Context(), crd(gvr)))
		s.eventually(soon, func(ctx context.Context) error { return member.Create(ctx, s.namespace, custom(gvr, "a")) })
		s.create(name, resourceQuota(resource, "pods", "10", key, "10"))
		return gvr, key
	}
	s.create(name, pod("a"), pod("b"), pod("c"), pod("d"))
	moved, movedKey := serve("gizmos")
	gone, goneKey := serve("gadgets")
	broken, brokenKey := serve("doodads")
	s.must(member.StartNativeQuota(t.Context()))
	for resource, key := range map[string]string{"gizmos": movedKey, "gadgets": goneKey, "doodads": brokenKey} {
		s.tells(soon, "after the start", resource, "pods", "4", key, "1")
	}

	s.must(member.Apply(t.Context(), secondVersion(crd(moved))))
	moved.Version = "v2"
	s.eventually(soon, func(ctx context.Context) error { return member.Create(ctx, s.namespace, custom(moved, "b")) })
	s.delete(name, moved, "a")
	s.delete(name, moved, "b")
	s.tells(asks, "the version has changed, and the objects are deleted", "gizmos", "pods", "4", movedKey, "0")
	_, lateKey := serve("latecomers")
	s.tells(asks, "the quota was there before its kind was known", "latecomers", "pods", "4", lateKey, "1")

	s.must(member.StopNativeQuota(t.Context()))
	s.must(s.removeCRD(member, gone))
	s.must(member.StartNativeQuota(t.Context()))
	s.delete(name, pods, "a")
	s.tells(soon, "the kind was removed before the start", "gadgets", "pods", "3", goneKey, "0")
	s.tells(soon, "the changed version after the start", "gizmos", "pods", "3", movedKey, "0")

	s.must(member.Apply(t.Context(), unreadable(crd(broken))))
	s.delete(name, pods, "b")
	s.tells(soon, "nobody can convert the objects", "doodads", "pods", "2", brokenKey, "1")
	s.must(member.StopNativeQuota(t.Context()))
	s.must(member.StartNativeQuota(t.Context()))
	s.delete(name, pods, "c")
	s.tells(asks, "nor could they before the start", "doodads", "pods", "1", brokenKey, "1")
	s.tells(time.Second, "a quota that has nothing to do with that", "gizmos", "pods", "1", movedKey, "0")
}
