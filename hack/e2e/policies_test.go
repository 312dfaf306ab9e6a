package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/deploy"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// With the policies in a member, nobody but the hub touches a share there, and a
// limit that was lowered binds although no quota controller is alive.
func TestFaultPoliciesKeepShares(t *testing.T) {
	t.Parallel()
	member := shared.addCluster(t, "guarded")
	policies, err := deploy.MemberPolicies()
	if err != nil {
		t.Fatal(err)
	}
	r := registration("guarded")
	r.LocalStatus = "Never"
	x := shared.tenant(t, "guarded")
	x.must(member.Apply(t.Context(), policies...))
	x.must(shared.Register(t.Context(), member, r))
	x.quota("compute", list("pods", "3"), only("guarded"), divided(v1alpha1.Weighted))
	status := func(ctx context.Context, hard, used string) error { // what a native controller would write
		q, err := x.local(ctx, "guarded", "compute")
		if err != nil {
			return err
		}
		q.Status = corev1.ResourceQuotaStatus{Hard: list("pods", hard), Used: list("pods", used)}
		_, err = member.Kubernetes.CoreV1().ResourceQuotas(x.namespace).UpdateStatus(ctx, q, metav1.UpdateOptions{})
		return err
	}
	specIs := func(pods string) {
		t.Helper()
		x.eventually(soon, func(ctx context.Context) error {
			q, err := x.local(ctx, "guarded", "compute")
			if err != nil {
				return err
			}
			return same("spec.hard", q.Spec.Hard, list("pods", pods))
		})
	}
	x.eventually(soon, func(ctx context.Context) error { return status(ctx, "0", "0") })
	specIs("3")
	x.eventually(soon, func(ctx context.Context) error { return status(ctx, "3", "0") })
	x.becomes("compute", enforced)

	api := member.Kubernetes.CoreV1().ResourceQuotas(x.namespace)
	patch := func(body string) error {
		_, err := api.Patch(t.Context(), "compute", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	labelled := resourceQuota("other", "pods", "1")
	labelled.Labels = map[string]string{v1alpha1.LabelShare: "true"}
	for what, err := range map[string]error{
		"a raised limit":       patch(`{"spec":{"hard":{"pods":"5"}}}`),
		"a lowered limit":      patch(`{"spec":{"hard":{"pods":"1"}}}`),
		"a removed label":      patch(`{"metadata":{"labels":{"fleetquota.io/share":null}}}`),
		"a changed annotation": patch(`{"metadata":{"annotations":{"fleetquota.io/grant":"x"}}}`),
		"a deletion":           api.Delete(t.Context(), "compute", metav1.DeleteOptions{}),
		"a share of somebody":  member.Create(t.Context(), x.namespace, labelled),
		"a status above spec":  status(t.Context(), "4", "0"),
	} {
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s is not refused: %v", what, err)
		}
	}
	x.must(patch(`{"metadata":{"annotations":{"team":"a"}}}`))

	x.create("guarded", pod("a"))
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "1") })
	specIs("1")
	x.eventually(soon, func(ctx context.Context) error { // until admission has seen the new spec
		err := member.Create(ctx, x.namespace, pod("b"))
		if err == nil {
			return errors.Join(errors.New("a second pod is not refused"), member.Delete(ctx, pods, x.namespace, "b"))
		}
		if !strings.Contains(err.Error(), "its limit has just been lowered") {
			return fmt.Errorf("refused, but not by the policy: %w", err)
		}
		return nil
	})
	q, err := x.local(t.Context(), "guarded", "compute")
	x.must(err)
	if err := same("status.hard", q.Status.Hard, list("pods", "3")); err != nil {
		t.Errorf("a controller was alive: %v", err)
	}
}
