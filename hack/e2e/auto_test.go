package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// Beside a live native controller Auto writes no status, whatever happens to
// the objects and however wrong that controller is meanwhile. What it sees is
// shown as drift. The long form takes 15 minutes.
func TestFaultAutoNeverFights(t *testing.T) {
	t.Parallel()
	const name = "peaceful"
	patience := 15 * time.Minute
	if testing.Short() {
		patience = 50 * time.Second
	}
	member := shared.addMember(t, name, withNative())
	x := shared.tenant(t, name)
	x.create(name,
		resourceQuota("all", "pods", "12", "requests.cpu", "6", "limits.cpu", "20", "count/pods", "40", "services", "20", "services.nodeports", "30",
			"services.loadbalancers", "10", "persistentvolumeclaims", "10", "requests.storage", "100Gi", "configmaps", "20"),
		resourceQuota("some", "pods", "10", "requests.memory", "10Gi", "count/services", "20"))
	x.localAgrees(name, "all")
	x.localAgrees(name, "some")
	x.member(name, localMode(v1alpha1.LocalAuto), memberCondition(v1alpha1.ConditionLocalStatusAgrees, "True", "Agrees"))
	x.create(name, pod("taken", requests("cpu", "100m", "memory", "64Mi"), limits("cpu", "1")))

	unrest(t, member, x.namespace, patience)
	if writes := x.ourWrites(name, time.Time{}); len(writes) > 0 {
		t.Errorf("the hub wrote beside a live controller: %v", writes)
	}

	x.limit(name, "all", "services.nodeports", "50") // the native controller counts anew
	x.localAgrees(name, "all")
	x.member(name, memberCondition(v1alpha1.ConditionLocalStatusAgrees, "True", "Agrees"))
	x.create(name, service("wide", corev1.ServiceTypeNodePort, 3))
	x.localAgrees(name, "all")
	x.patch(member.Kubernetes.CoreV1().Services(x.namespace).Patch(t.Context(), "wide", types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/spec/ports/2"}]`), metav1.PatchOptions{}))
	drifts := x.member(name, memberCondition(v1alpha1.ConditionLocalStatusAgrees, "False", "Drift"))
	for _, c := range drifts.Status.Conditions {
		if c.Type == v1alpha1.ConditionLocalStatusAgrees && !strings.Contains(c.Message, x.namespace+"/all (services.nodeports)") {
			t.Errorf("the quota is not named: %s", c.Message)
		}
	}
	series := fmt.Sprintf(`fleetquota_local_drift{member_cluster=%q,namespace=%q,quota="all",resource="services.nodeports"}`, name, x.namespace)
	exported := func(want string) {
		t.Helper()
		x.eventually(soon, func(ctx context.Context) error {
			metrics, err := x.hub.Scrape(ctx)
			if err == nil && !strings.Contains(metrics, series+want) {
				err = fmt.Errorf("no %s%s", series, want)
			}
			return err
		})
	}
	exported(" 1\n")
	x.delete(name, services, "wide") // answered with a new count
	x.localAgrees(name, "all")
	x.member(name, memberCondition(v1alpha1.ConditionLocalStatusAgrees, "True", "Agrees"))
	if metrics, err := x.hub.Scrape(t.Context()); err != nil || strings.Contains(metrics, series) {
		t.Errorf("%s is still exported (%v)", series, err)
	}
	if writes := x.ourWrites(name, time.Time{}); len(writes) > 0 {
		t.Errorf("the hub wrote beside a live controller: %v", writes)
	}
}

// patch wants a patch to succeed.
func (x *tenant) patch(_ any, err error) {
	x.t.Helper()
	x.must(err)
}

// unrest creates, changes and deletes objects, in bursts with quiet between, so
// that what is left wrong after a burst stays for a while.
func unrest(t *testing.T, member *scene.Cluster, namespace string, patience time.Duration) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const workers = 6
	var deeds, refusals atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(patience)
	for burst := uint64(0); time.Now().Before(end); burst++ {
		random := rand.New(rand.NewPCG(seed, burst))
		stop := time.Now().Add(time.Duration(2+random.IntN(12)) * time.Second)
		for worker := range uint64(workers) {
			w := &restless{member: member, namespace: namespace, prefix: fmt.Sprintf("b%d-w%d-", burst, worker), random: rand.New(rand.NewPCG(seed+1+worker, burst))}
			group.Go(func() {
				for time.Now().Before(stop) && t.Context().Err() == nil {
					deeds.Add(1)
					switch err := w.act(t.Context()); {
					case apierrors.IsForbidden(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
						refusals.Add(1)
					case err != nil:
						t.Errorf("%v", err)
						return
					}
				}
				if err := w.leave(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		time.Sleep(time.Duration(random.IntN(16)) * time.Second)
	}
	t.Logf("%d deeds, %d refused", deeds.Load(), refusals.Load())
	if deeds.Load()/2 < refusals.Load() {
		t.Errorf("of %d deeds %d were refused: this shows little", deeds.Load(), refusals.Load())
	}
}

// restless is one worker with objects of its own.
type restless struct {
	member    *scene.Cluster
	namespace string
	prefix    string
	random    *rand.Rand
	made      int
	pods      []string
	services  []string
}

// act does one thing at random.
func (w *restless) act(ctx context.Context) error {
	time.Sleep(time.Duration(w.random.IntN(60)) * time.Millisecond)
	api := w.member.Kubernetes.CoreV1()
	w.made++
	name := w.prefix + fmt.Sprint(w.made)
	switch choice := w.random.IntN(20); {
	case choice < 5:
		err := w.member.Create(ctx, w.namespace, pod(name, requests("cpu", "100m", "memory", "64Mi"), limits("cpu", "1"), scheduled))
		if err == nil {
			w.pods = append(w.pods, name)
		}
		return err
	case choice < 7: // fails after admission has charged for it
		return w.member.Create(ctx, w.namespace, pod("taken", requests("cpu", "100m", "memory", "64Mi"), limits("cpu", "1")))
	case choice < 9:
		err := w.member.Create(ctx, w.namespace, service(name, corev1.ServiceTypeNodePort, 1+w.random.IntN(3)))
		if err == nil {
			w.services = append(w.services, name)
		}
		return err
	case choice == 9:
		return w.member.Create(ctx, w.namespace, configMap(name))
	case choice == 10:
		return api.ConfigMaps(w.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	case choice < 14 && len(w.pods) > 0:
		return api.Pods(w.namespace).Delete(ctx, pick(w.random, &w.pods), now())
	case choice == 14 && len(w.pods) > 0:
		_, err := api.Pods(w.namespace).Patch(ctx, w.pods[0], types.StrategicMergePatchType, fmt.Appendf(nil,
			`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"%dm"}}}]}}`, 50+w.random.IntN(400)), metav1.PatchOptions{}, "resize")
		return err
	case choice == 15 && len(w.pods) > 0:
		_, err := api.Pods(w.namespace).Patch(ctx, w.pods[0], types.StrategicMergePatchType, fmt.Appendf(nil,
			`{"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"i","imageID":"i","ready":true,"restartCount":0,`+
				`"allocatedResources":{"cpu":"%[1]dm"},"resources":{"requests":{"cpu":"%[1]dm"}}}]}}`, 50+w.random.IntN(400)), metav1.PatchOptions{}, "status")
		return err
	case choice == 16 && len(w.pods) > 0:
		return finish(ctx, w.member, w.namespace, w.pods[0])
	case choice == 17 && len(w.services) > 0: // one port fewer, which the native controller overlooks
		_, err := api.Services(w.namespace).Patch(ctx, w.services[0], types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/ports/1"}]`), metav1.PatchOptions{})
		return err
	case choice == 18 && len(w.services) > 0:
		kind := []string{"ClusterIP", "NodePort", "LoadBalancer"}[w.random.IntN(3)]
		_, err := api.Services(w.namespace).Patch(ctx, w.services[0], types.MergePatchType, fmt.Appendf(nil, `{"spec":{"type":%q}}`, kind), metav1.PatchOptions{})
		return err
	case choice == 19 && len(w.services) > 0:
		return api.Services(w.namespace).Delete(ctx, pick(w.random, &w.services), now())
	}
	return nil
}

// leave deletes most of what is left, so that the next burst has room.
func (w *restless) leave(ctx context.Context) error {
	api := w.member.Kubernetes.CoreV1()
	var errs []error
	for _, name := range w.pods {
		errs = append(errs, api.Pods(w.namespace).Delete(ctx, name, now()))
	}
	for _, name := range w.services {
		errs = append(errs, api.Services(w.namespace).Delete(ctx, name, now()))
	}
	return errors.Join(errs...)
}

// now deletes without grace.
func now() metav1.DeleteOptions {
	var none int64
	return metav1.DeleteOptions{GracePeriodSeconds: &none}
}

// pick takes one of some names out.
func pick(random *rand.Rand, names *[]string) string {
	i := random.IntN(len(*names))
	name := (*names)[i]
	*names = append((*names)[:i], (*names)[i+1:]...)
	return name
}

// A native controller of another mind: it comes and goes, and counts a pod
// otherwise than the API server and the hub. After three rounds the hub lets it
// be, says so once, and comes back when nobody follows a new limit.
func TestFaultAutoStopsWhenItIsContested(t *testing.T) {
	t.Parallel()
	const name = "contested"
	gates := "--feature-gates=PodLevelResources=false,PodLevelResourcesFixDefaulting=false,PodLevelResourcesFixKubeletQOSClass=false,InPlacePodLevelResourcesVerticalScaling=false"
	member := shared.addMember(t, name, withNative(gates))
	x := shared.tenant(t, name)
	x.create(name, resourceQuota("local", "pods", "50", "limits.cpu", "50"))
	x.localAgrees(name, "local")
	x.create(name, pod("cheap", requests("cpu", "100m"), limits("cpu", "2"), func(p *corev1.Pod) { // 3 by its containers, 2 as a whole
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "image"})
		p.Spec.Containers[1].Resources = corev1.ResourceRequirements{Requests: list("cpu", "100m"), Limits: list("cpu", "1")}
	}, ofPod(list("cpu", "1"), list("cpu", "2"))))
	const rounds = 3
	for i := range rounds + 1 {
		x.create(name, pod(fmt.Sprintf("spare-%d", i), limits("cpu", "1")))
	}
	for round := range rounds {
		x.must(member.StopNativeQuota(t.Context()))
		began := time.Now()
		x.delete(name, pods, fmt.Sprintf("spare-%d", round))
		left := rounds - round
		x.localUsesWithin(15*time.Second, name, "local", "pods", fmt.Sprint(left+1), "limits.cpu", fmt.Sprint(left+2))
		t.Logf("round %d: taken over after %.1f s", round+1, time.Since(began).Seconds())
		x.must(member.StartNativeQuota(t.Context()))
		x.localUses(name, "local", "pods", fmt.Sprint(left+1), "limits.cpu", fmt.Sprint(left+3))
		x.member(name, memberCondition(v1alpha1.ConditionLocalStatusAgrees, "False", "Drift"))
	}
	t.Log("a fourth time it is left alone")
	x.must(member.StopNativeQuota(t.Context()))
	began := time.Now()
	x.delete(name, pods, "spare-3")
	x.member(name, memberCondition(v1alpha1.ConditionLocalStatusAgrees, "False", "Contested"))
	x.eventually(soon, func(ctx context.Context) error {
		told, err := x.eventsOn(ctx, "FleetMember", "default", name)
		if err == nil && told["Warning Contested"] != 1 {
			err = fmt.Errorf("events %v, want Warning Contested once", told)
		}
		return err
	})
	x.must(member.StartNativeQuota(t.Context()))
	x.localUses(name, "local", "pods", "1", "limits.cpu", "3")
	x.must(member.StopNativeQuota(t.Context()))
	x.create(name, pod("late", limits("cpu", "1")))
	x.delete(name, pods, "late")
	time.Sleep(12 * time.Second)
	if writes := x.ourWrites(name, began); len(writes) > 0 {
		t.Errorf("the hub writes a contested status: %v", writes)
	}
	t.Log("a new limit that nobody follows is ours")
	x.limit(name, "local", "pods", "40", "limits.cpu", "50")
	x.localAgreesWithin(15*time.Second, name, "local")
	x.member(name, memberCondition(v1alpha1.ConditionLocalStatusAgrees, "True", "Agrees"))
}
