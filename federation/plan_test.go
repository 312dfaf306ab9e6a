package federation_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Whoever takes part is in the plan, so that its local quota is looked after, also
// while nothing can be planned for it.
func TestDivideForgetsNobody(t *testing.T) {
	t.Parallel()
	record := federation.Record{Spec: v1alpha1.FleetGrantSpec{Members: []v1alpha1.Grant{
		{Cluster: "a", State: v1alpha1.Recovering},
		{Cluster: "b", Granted: list("pods", "4"), Target: list("pods", "4")},
	}}}
	parties := []federation.Party{{Cluster: "a"}, {Cluster: "b"}, {Cluster: "c"}, {Cluster: "d", Silent: true}}
	spec := v1alpha1.FleetQuotaSpec{Hard: list("pods", "10"), Distribution: &v1alpha1.Distribution{Mode: v1alpha1.Weighted}}
	planned := func(plan federation.Plan) map[string]bool {
		shares := map[string]bool{}
		for _, share := range plan.Shares {
			shares[share.Cluster] = len(share.Hard) > 0
		}
		return shares
	}
	plan, err := federation.Divide(spec, record, parties, nil, time.Time{})
	if got := planned(plan); err != nil || len(got) != 4 || got["a"] || !got["b"] || !got["c"] || got["d"] {
		t.Errorf("planned for %v: %v", got, err)
	}

	spec.Distribution = &v1alpha1.Distribution{Mode: v1alpha1.Static, Members: []v1alpha1.MemberShare{{Cluster: "b", Hard: list("pods", "11")}}}
	plan, err = federation.Divide(spec, record, parties, nil, time.Time{})
	var names []string
	for _, share := range plan.Shares {
		names = append(names, share.Cluster)
	}
	if exceed := (*federation.SharesExceedError)(nil); !errors.As(err, &exceed) || !slices.Equal(names, []string{"a", "b"}) || len(plan.Shares[0].Hard)+len(plan.Shares[1].Hard) > 0 {
		t.Errorf("planned %v: %v", plan.Shares, err)
	}
}
