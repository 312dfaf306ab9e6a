package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// A member that joins is summed, one that is relabelled moves from quota to
// quota, one that is paused keeps its numbers, and one whose Secret is deleted
// is gone after its grace.
func TestMemberJoinsMovesPausesAndLeaves(t *testing.T) {
	t.Parallel()
	mint := shared.addCluster(t, "mint")
	x := shared.tenant(t, "east", "mint")
	x.create("east", pod("a"), pod("b"))
	x.create("mint", pod("a"), pod("b"), pod("c"))
	hard := list("pods", "10", "count/widgets.example.com", "10")
	x.quota("both", hard, in("east", "mint"))
	x.quota("moved", hard, in("moved"))
	x.becomes("both", complete, rows("east"), uses("pods", "2"))
	x.becomes("moved", rows(), condition("UsageComplete", "False", "NoMembers"))

	register := func(r scene.Registration) {
		t.Helper()
		r.Name = "mint"
		x.must(x.Register(t.Context(), mint, r))
	}
	here := map[string]string{"region": "mint"}
	register(scene.Registration{Labels: here})
	x.becomes("both", complete, rows("east", "mint"), uses("pods", "5"), memberUses("mint", "pods", "3"))
	member := x.member("mint", memberCondition("Ready", "True", "Live"), memberCondition("CredentialsValid", "True", "Accepted"),
		memberCondition("Synced", "True", "Counted"))
	if member.Status.Version != x.version("mint") || member.Status.UID == "" || member.Status.CredentialExpirationTime == nil ||
		member.Status.LastContactTime != nil || member.Spec.SecretName != "mint" {
		t.Errorf("the FleetMember of a live member is %+v, %+v", member.Spec, member.Status)
	}

	// The hub keeps the FleetMember as the Secret has it.
	_, err := x.Hub.Quota.Members().Patch(t.Context(), "mint", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"region":"moved","foreign":"true"}},"spec":{"secretName":"other"}}`), metav1.PatchOptions{})
	x.must(err)
	asRegistered := func(m *v1alpha1.FleetMember) error {
		if m.Labels["region"] != "mint" || m.Labels["foreign"] != "" || m.Spec.SecretName != "mint" {
			return fmt.Errorf("labels %v, Secret %s", m.Labels, m.Spec.SecretName)
		}
		return nil
	}
	x.member("mint", asRegistered)
	x.must(x.Hub.Quota.Members().Delete(t.Context(), "mint", metav1.DeleteOptions{}))
	x.member("mint", asRegistered, memberCondition("Ready", "True", "Live"))
	x.becomes("both", complete, rows("east", "mint"), uses("pods", "5"))

	register(scene.Registration{Labels: map[string]string{"region": "moved"}})
	x.becomes("moved", complete, rows("mint"), uses("pods", "3"))
	x.becomes("both", complete, rows("east"), uses("pods", "2"))
	x.member("mint", func(m *v1alpha1.FleetMember) error {
		if m.Labels["region"] != "moved" {
			return fmt.Errorf("labels %v", m.Labels)
		}
		return nil
	})
	register(scene.Registration{Labels: here})
	x.becomes("both", complete, rows("east", "mint"), uses("pods", "5"))

	register(scene.Registration{Labels: here, Annotations: map[string]string{"fleetquota.io/skip-reconcile": "true"}})
	x.member("mint", memberCondition("Ready", "False", "Paused"))
	x.create("mint", pod("d"))
	x.becomes("both", notLive("mint"), uses("pods", "5"), condition("UsageComplete", "False", "MembersNotLive"))
	register(scene.Registration{Labels: here})
	x.becomes("both", complete, rows("east", "mint"), uses("pods", "6"))

	// The Secret comes back within its grace: nothing happens.
	seen := x.watch("both")
	x.must(x.DeleteSecret(t.Context(), "mint"))
	time.Sleep(2 * time.Second)
	register(scene.Registration{Labels: here})
	time.Sleep(2 * time.Second)
	seen.stop()
	seen.always(t, rows("east", "mint"), uses("pods", "6"))

	began := time.Now()
	x.must(x.DeleteSecret(t.Context(), "mint"))
	x.becomesWithin(45*time.Second, "both", complete, rows("east"), uses("pods", "2"))
	if took := time.Since(began); took < 25*time.Second {
		t.Errorf("the member left after %s, before its grace was over", took)
	}
	x.eventually(soon, func(ctx context.Context) error {
		_, err := x.Hub.Quota.Members().Get(ctx, "mint", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the FleetMember is still there"), err)
	})
}

// notLive wants a member's row to be of the last known numbers, and to say when
// they were observed.
func notLive(member string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		row := rowOf(q, member)
		if row == nil {
			return fmt.Errorf("no row of %s", member)
		}
		if row.Phase != v1alpha1.Stale && row.Phase != v1alpha1.Unreachable || row.LastObservedTime == nil {
			return fmt.Errorf("%s is %s, observed at %s", member, row.Phase, row.LastObservedTime)
		}
		return nil
	}
}

// unknown wants exactly these resources of a member's row to be unknown, its
// phase to be Partial, and its reason to be one of some.
func unknown(member string, names []string, reasons ...string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		if err := phase(member, v1alpha1.Partial, reasons...)(q); err != nil {
			return err
		}
		var have []string
		for _, name := range rowOf(q, member).Unknown {
			have = append(have, string(name))
		}
		if !slices.Equal(have, names) {
			return fmt.Errorf("%s: unknown %v, want %v", member, have, names)
		}
		return nil
	}
}

// A custom resource is counted from when it is served and may be listed; when
// it goes its own key is unknown, and nothing else is disturbed.
func TestCustomResourcesComeAndGo(t *testing.T) {
	t.Parallel()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	const key = "count/gadgets.example.com"
	x := shared.tenant(t)
	x.create("west", pod("a"), resourceQuota("local", "pods", "10", key, "10"))
	x.quota("all", list("pods", "10", key, "10"), in("west"))
	x.becomes("all", unknown("west", []string{key}, "NotServed"), uses("pods", "1"), absent(key),
		condition("UsageComplete", "False", "ResourcesUnknown"), condition("WithinHard", "Unknown", "UsageUnknown"))

	x.localUses("west", "local", "pods", "1")

	x.quota("busy", list("pods", "10"), in("west"))
	t.Cleanup(x.fidget("busy"))
	west := x.Member("west")
	x.must(west.Apply(t.Context(), crd(gadgets)))
	x.becomes("all", unknown("west", []string{key}, "Forbidden"), uses("pods", "1"))
	x.must(west.Allow(t.Context(), gadgets.GroupResource()))
	x.eventually(time.Minute, func(ctx context.Context) error { // the local quota refuses it until its use is known
		return west.Create(ctx, x.namespace, custom(gadgets, "a"))
	})
	x.create("west", custom(gadgets, "b"))
	x.becomesWithin(time.Minute, "all", complete, uses("pods", "1", key, "2"), condition("WithinHard", "True", "Within"))
	x.localUses("west", "local", "pods", "1", key, "2")

	x.must(x.removeCRD(west, gadgets))
	x.create("west", pod("b"))
	x.becomesWithin(time.Minute, "all", unknown("west", []string{key}), uses("pods", "2"), condition("UsageComplete", "False", "ResourcesUnknown"))
	x.localUsesAmong("west", "local", "pods", "2")
	x.delete("west", pods, "a")
	x.becomes("all", unknown("west", []string{key}), uses("pods", "1"))
	x.localUsesAmong("west", "local", "pods", "1")

	x.eventually(soon, func(ctx context.Context) error { return west.Apply(ctx, crd(gadgets)) })
	x.eventually(soon, func(ctx context.Context) error { return west.Create(ctx, x.namespace, custom(gadgets, "c")) })
	x.becomesWithin(time.Minute, "all", complete, uses("pods", "1", key, "1"))
	x.localUses("west", "local", "pods", "1", key, "1")
	x.must(x.removeCRD(west, gadgets))
}

// fidget changes the spec of a FleetQuota again and again, as users of a busy
// hub do, until it is told to stop.
func (x *tenant) fidget(name string) (stop func()) {
	ctx, cancel := context.WithCancel(x.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for limit := 10; ctx.Err() == nil; limit++ {
			patch := fmt.Appendf(nil, `{"spec":{"hard":{"pods":"%d"}}}`, limit)
			_, err := x.Hub.Quota.Quotas(x.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				x.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// absent wants a resource to have no number in the sum.
func absent(name string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		if used, ok := narrowed(q.Status.Used, list(name, "0"))[corev1.ResourceName(name)]; ok {
			return fmt.Errorf("%s is %s, want it absent", name, used.String())
		}
		return nil
	}
}

// The count of a custom resource goes on when it is served in another version.
func TestCustomResourceChangesItsVersion(t *testing.T) {
	t.Parallel()
	gizmos := schema.GroupVersionResource{Group: "gizmo.example.com", Version: "v1", Resource: "gizmos"}
	const key = "count/gizmos.gizmo.example.com"
	x := shared.tenant(t)
	west := x.Member("west")
	definition := crd(gizmos)
	x.must(errors.Join(west.Apply(t.Context(), definition), west.Allow(t.Context(), gizmos.GroupResource())))
	x.eventually(soon, func(ctx context.Context) error { return west.Create(ctx, x.namespace, custom(gizmos, "a")) })
	x.quota("all", list("pods", "10", key, "10"), in("west"))
	x.create("west", resourceQuota("local", key, "10"))
	x.becomesWithin(time.Minute, "all", complete, uses(key, "1"))
	x.localUses("west", "local", key, "1")

	x.must(west.Apply(t.Context(), secondVersion(definition)))
	gizmos.Version = "v2"
	x.eventually(soon, func(ctx context.Context) error { return west.Create(ctx, x.namespace, custom(gizmos, "b")) })
	x.becomesWithin(90*time.Second, "all", complete, uses(key, "2"))
	x.localUses("west", "local", key, "2")
	x.delete("west", gizmos, "a")
	x.localUses("west", "local", key, "1")
	x.becomes("all", complete, uses(key, "1"))
}

// secondVersion serves a custom resource in another version from now on.
func secondVersion(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	changed := definition.DeepCopy()
	second := changed.Spec.Versions[0].DeepCopy()
	second.Name = "v2"
	changed.Spec.Versions[0].Served, changed.Spec.Versions[0].Storage = false, false
	changed.Spec.Versions = append(changed.Spec.Versions, *second)
	return changed
}

// Rotated credentials leave no gap: with a new token no status ever says that
// the member is anything but live, and no number changes.
func TestFaultCredentialsAreRotatedWithoutAGap(t *testing.T) {
	t.Parallel()
	rota := shared.addMember(t, "rota")
	x := shared.tenant(t, "rota")
	x.create("rota", pod("a"), pod("b"), configMap("a"))
	x.quota("all", list("pods", "10"), only("rota"))
	x.becomes("all", complete, uses("pods", "2"))
	live := phase("rota", v1alpha1.Live, "")

	t.Log("a new token of the same account")
	seen := x.watch("all")
	x.must(x.Register(t.Context(), rota, registration("rota")))
	time.Sleep(3 * time.Second)

	t.Log("a token of another account, and then the old one dies")
	other := registration("rota")
	other.Account = "fleetquota-second"
	x.must(x.Register(t.Context(), rota, other))
	time.Sleep(2 * time.Second)
	accounts := rota.Kubernetes.CoreV1().ServiceAccounts(scene.Namespace)
	x.must(accounts.Delete(t.Context(), "fleetquota-hub", metav1.DeleteOptions{}))
	time.Sleep(12 * time.Second) // at least one probe
	x.create("rota", pod("c"))
	x.becomes("all", complete, uses("pods", "3"))
	seen.stop()
	seen.always(t, live, complete, usesAtLeast("pods", "2"))
	x.change("all", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "10", "configmaps", "10") })
	x.becomes("all", complete, uses("configmaps", "1", "pods", "3")) // a list that only the new token allows

	t.Log("the token dies first, and the new one comes when that was noticed")
	seen = x.watch("all")
	x.must(accounts.Delete(t.Context(), "fleetquota-second", metav1.DeleteOptions{}))
	x.member("rota", memberCondition("CredentialsValid", "False", "Unauthorized"))
	x.must(x.Register(t.Context(), rota, registration("rota")))
	x.member("rota", memberCondition("CredentialsValid", "True", "Accepted"), memberCondition("Ready", "True", "Live"))
	x.create("rota", pod("d"))
	x.becomes("all", complete, uses("pods", "4"))
	seen.stop()
	seen.always(t, live, usesAtLeast("pods", "3"))

	t.Log("a client certificate instead: the member is connected anew, and its numbers stay")
	seen = x.watch("all")
	certificate := registration("rota")
	certificate.Account, certificate.Certificate = "fleetquota-by-certificate", true
	x.must(x.Register(t.Context(), rota, certificate))
	time.Sleep(3 * time.Second)
	x.create("rota", pod("e"))
	x.becomes("all", complete, uses("pods", "5"))
	seen.stop()
	seen.always(t, rows("rota"), usesAtLeast("pods", "4"))
	x.member("rota", memberCondition("CredentialsValid", "True", "Accepted"), memberCondition("Ready", "True", "Live"))
}
