package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// A member whose store is put back to an older state may use its share of then,
// until the hub has written there again.
func TestFaultGrantOfRestoredMember(t *testing.T) {
	t.Parallel()
	tide := shared.addMember(t, "tide", withNative())
	x := shared.tenant(t, "east", "tide")
	x.quota("compute", list("pods", "10"), in("east", "tide"), divided(v1alpha1.Balanced))
	x.holds("tide", "compute", "pods", "5")
	x.becomes("compute", enforced)
	data, backup := filepath.Join(tide.Dir(), "data"), filepath.Join(t.TempDir(), "data")
	x.must(tide.Stop(t.Context()))
	x.must(os.CopyFS(backup, os.DirFS(data)))
	x.must(tide.Restart(t.Context()))
	for i := range 8 {
		x.eventually(time.Minute, func(ctx context.Context) error {
			return x.Member("east").Create(ctx, x.namespace, pod(fmt.Sprintf("p%d", i)))
		})
	}
	x.becomesWithin(time.Minute, "compute", enforced, memberUses("east", "pods", "8"))

	x.must(tide.Stop(t.Context()))
	x.must(os.RemoveAll(data))
	x.must(os.CopyFS(data, os.DirFS(backup)))
	before, err := x.Hub.Quota.Grants(x.namespace).Get(t.Context(), "compute", metav1.GetOptions{})
	x.must(err)
	x.must(tide.Restart(t.Context()))
	x.eventually(time.Minute, func(ctx context.Context) error {
		q, err := x.local(ctx, "tide", "compute")
		if err != nil {
			return err
		}
		if hard := q.Status.Hard["pods"]; hard.Value() > 2 {
			return fmt.Errorf("tide may still use %s", hard.String())
		}
		after, err := x.Hub.Quota.Grants(x.namespace).Get(ctx, "compute", metav1.GetOptions{})
		if err == nil && after.Spec.Revision <= before.Spec.Revision {
			err = errors.New("nothing was written there")
		}
		return err
	})
	x.becomesWithin(time.Minute, "compute", enforced)
}

// An older record that is put back is not believed: nothing is raised until each
// member has confirmed a new write, and then all is as before.
func TestFaultGrantRecordPutBack(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted, weighing("east", 3)))
	x.holds("east", "compute", "pods", "3")
	x.holds("west", "compute", "pods", "1")
	x.becomes("compute", enforced)
	api := x.Hub.Quota.Grants(x.namespace)
	old, err := api.Get(t.Context(), "compute", metav1.GetOptions{})
	x.must(err)
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.Members[0].Cluster = "west" })
	x.holds("west", "compute", "pods", "3")
	x.holds("east", "compute", "pods", "1")
	x.becomes("compute", enforced)
	x.eventually(soon, func(ctx context.Context) error {
		now, err := api.Get(ctx, "compute", metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec = old.Spec
		_, err = api.Update(ctx, now, metav1.UpdateOptions{})
		return err
	})
	x.eventually(soon, func(ctx context.Context) error {
		now, err := api.Get(ctx, "compute", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range now.Spec.Members {
			row := &now.Spec.Members[i]
			if want := map[string]int64{"east": 1, "west": 3}[row.Cluster]; row.State != "" || row.Granted.Pods().Value() != want {
				return fmt.Errorf("%s holds %s, state %q", row.Cluster, row.Granted.Pods(), row.State)
			}
		}
		return nil
	})
	x.holds("west", "compute", "pods", "3")
	x.holds("east", "compute", "pods", "1")
	x.becomes("compute", enforced)
}

// A member whose API server does not admit by quota uses what it likes, and that is
// shown.
func TestFaultWithoutQuotaAdmission(t *testing.T) {
	t.Parallel()
	wild := shared.addMember(t, "wild", withNative(), func(s *fleet.Spec) {
		s.ExtraArgs = append(s.ExtraArgs, "--disable-admission-plugins=ResourceQuota,ServiceAccount")
	})
	x := shared.tenant(t, "wild")
	x.quota("compute", list("pods", "2"), only("wild"), divided(v1alpha1.Weighted))
	x.holds("wild", "compute", "pods", "2")
	for i := range 3 {
		x.must(wild.Create(t.Context(), x.namespace, pod(fmt.Sprintf("p%d", i))))
	}
	x.becomes("compute", condition(v1alpha1.ConditionWithinHard, "False", "Exceeded"), memberUses("wild", "pods", "3"))
	x.eventually(soon, func(ctx context.Context) error {
		events, err := x.eventsOn(ctx, "FleetQuota", x.namespace, "compute")
		if err == nil && events["Warning Exceeded"] == 0 {
			err = fmt.Errorf("events: %v", events)
		}
		return err
	})
}
