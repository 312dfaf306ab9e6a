package main

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// statusSize measures the largest row that the hub has written for a member.
func (f *fleet) statusSize(ctx context.Context, _ options) ([]figure.Row, error) {
	quota, err := f.scene.Hub.Quota.Quotas(namespace).Get(ctx, quotaName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if len(quota.Status.Clusters) != len(memberNames()) {
		return nil, fmt.Errorf("the status has %d rows for %d members", len(quota.Status.Clusters), len(memberNames()))
	}
	largest := 0
	for i := range quota.Status.Clusters {
		text, err := json.Marshal(&quota.Status.Clusters[i])
		if err != nil {
			return nil, err
		}
		largest = max(largest, len(text))
	}
	const most = 600
	name := fmt.Sprintf("status size per member, %d keys", len(quota.Spec.Hard))
	return []figure.Row{{Name: name, Ours: float64(largest), In: figure.Bytes, Target: figure.AtMost(most)}}, nil
}
