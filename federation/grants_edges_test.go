package federation_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

const widgets = "count/widgets.example.com"

// inForceAt is a quota that bears a mark, with all of hard in force.
func inForceAt(cluster, mark string, hard corev1.ResourceList, used corev1.ResourceList) federation.Seen {
	limit := hard.DeepCopy()
	for name := range limit {
		if _, counted := used[name]; !counted {
			delete(limit, name)
		}
	}
	return federation.Seen{Cluster: types.UID("cluster-" + cluster), Present: true, UID: types.UID("quota-" + cluster), Mark: mark, Hard: hard, Limit: limit, Used: used}
}

// A resource that a member never counts keeps nothing else from rising, also after
// somebody has touched its quota there.
func TestNextIsNotStoppedByWhatIsNeverCounted(t *testing.T) {
	t.Parallel()
	limit := list("pods", "10", widgets, "6")
	record := federation.Record{ID: "r", Spec: v1alpha1.FleetGrantSpec{Hard: limit, Revision: 2, Members: []v1alpha1.Grant{
		{Cluster: "eu", QuotaUID: "quota-eu", Revision: 1, Granted: list("pods", "5", widgets, "3"), Target: list("pods", "5", widgets, "3")},
		{Cluster: "us", QuotaUID: "quota-us", Revision: 2, State: v1alpha1.Repairing, Granted: list("pods", "4"), Target: list("pods", "4", widgets, "0")},
	}}}
	pass := record.Next(federation.Observation{
		Limit: limit,
		Want:  []federation.Share{{Cluster: "eu", Hard: list("pods", "6", widgets, "6")}, {Cluster: "us"}},
		Seen: map[string]federation.Seen{
			"eu": inForceAt("eu", "r.1", list("pods", "5", widgets, "3"), list("pods", "1", widgets, "1")),
			"us": inForceAt("us", "r.2", list("pods", "4", widgets, "0"), list("pods", "1")),
		},
	})
	eu, us := pass.Spec.Members[0], pass.Spec.Members[1]
	if us.State != "" || eu.Target.Pods().Value() != 6 {
		t.Errorf("eu %v, us %v %s", eu.Target, us.Granted, us.State)
	}
	if err := (federation.Record{Spec: pass.Spec}).Check(); err != nil {
		t.Error(err)
	}
}

// What another cluster of a member's name shows, changes nothing of the share of
// the one before.
func TestNextDoesNotTakeOneClusterForAnother(t *testing.T) {
	t.Parallel()
	limit := list("pods", "10")
	record := federation.Record{ID: "r", Spec: v1alpha1.FleetGrantSpec{Hard: limit, Revision: 2, Members: []v1alpha1.Grant{
		{Cluster: "eu", ClusterUID: "cluster-eu", QuotaUID: "quota-eu", Revision: 1, Granted: list("pods", "4"), Target: list("pods", "4")},
		{Cluster: "us", ClusterUID: "the-one-before", QuotaUID: "quota-us", Revision: 2, Granted: list("pods", "6"), Target: list("pods", "6")},
	}}}
	for name, us := range map[string]federation.Seen{
		"without the namespace": {Cluster: "cluster-us", NoNamespace: true},
		"without the quota":     {Cluster: "cluster-us"},
		"with a copy of it":     inForceAt("us", "r.2", list("pods", "0"), list("pods", "0")),
	} {
		pass := record.Next(federation.Observation{
			Limit: limit,
			Want:  []federation.Share{{Cluster: "eu", Hard: list("pods", "10")}, {Cluster: "us", Hard: list("pods", "0")}},
			Seen:  map[string]federation.Seen{"eu": inForceAt("eu", "r.1", list("pods", "4"), list("pods", "4")), "us": us},
		})
		if len(pass.Writes) > 0 || len(pass.Spec.Members) != 2 || pass.Spec.Members[1].Granted.Pods().Value() != 6 || pass.Trouble["us"] != federation.TroubleCluster {
			t.Errorf("%s: %v, writes %v, trouble %v", name, pass.Spec.Members, pass.Writes, pass.Trouble)
		}
	}
	pass := record.Next(federation.Observation{Limit: limit, Fenced: []string{"us"}})
	if len(pass.Spec.Members) != 1 {
		t.Errorf("fenced, it keeps %v", pass.Spec.Members)
	}
}

// In a namespace that is being deleted nothing is tried, and what the member holds
// stays until it is gone.
func TestNextWaitsForANamespaceToEnd(t *testing.T) {
	t.Parallel()
	limit := list("pods", "10")
	record := federation.Record{ID: "r", Spec: v1alpha1.FleetGrantSpec{Hard: limit, Revision: 2, Members: []v1alpha1.Grant{
		{Cluster: "eu", QuotaUID: "quota-eu", Revision: 1, Granted: list("pods", "3"), Target: list("pods", "3")},
		{Cluster: "us", QuotaUID: "quota-us", Revision: 2, Granted: list("pods", "4"), Target: list("pods", "4")},
	}}}
	pass := record.Next(federation.Observation{
		Limit: limit,
		Want:  []federation.Share{{Cluster: "eu", Hard: list("pods", "6")}, {Cluster: "us", Hard: list("pods", "4")}},
		Seen:  map[string]federation.Seen{"eu": inForceAt("eu", "r.1", list("pods", "3"), list("pods", "3")), "us": {Ending: true}},
	})
	if len(pass.Writes) != 1 || pass.Writes[0].Cluster != "eu" || pass.Spec.Members[1].State != "" || pass.Trouble["us"] != federation.TroubleEnding {
		t.Errorf("%v, writes %v, trouble %v", pass.Spec.Members, pass.Writes, pass.Trouble)
	}
}

func TestGovernedKeepsTheSmallerOfTwoNames(t *testing.T) {
	t.Parallel()
	for _, hard := range []corev1.ResourceList{list("services", "3", "count/services", "5"), list("services", "5", "count/services", "3")} {
		governed := federation.Governed(hard)
		if len(governed) != 1 {
			t.Fatalf("governed: %v", governed)
		}
		for name, limit := range governed {
			if limit.Value() != 3 {
				t.Errorf("%s is %s", name, limit.String())
			}
		}
		if len(hard) != 2 {
			t.Error("hard was changed")
		}
	}
}

func TestDivideSaysThatTooManyShare(t *testing.T) {
	t.Parallel()
	var parties []federation.Party
	for i := range federation.MaxMembers + 1 {
		parties = append(parties, federation.Party{Cluster: fmt.Sprint("m", i)})
	}
	spec := v1alpha1.FleetQuotaSpec{Hard: list("pods", "1000"), Distribution: &v1alpha1.Distribution{Mode: v1alpha1.Weighted}}
	_, err := federation.Divide(spec, federation.Record{}, parties, nil, time.Time{})
	if err == nil || err.Error() != "spec.clusterSelector: 513 members are selected, and at most 512 can share a limit" {
		t.Error(err)
	}
	if _, err := federation.Divide(spec, federation.Record{}, parties[1:], nil, time.Time{}); err != nil {
		t.Error(err)
	}
}
