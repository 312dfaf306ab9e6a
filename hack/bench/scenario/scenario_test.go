package scenario_test

import (
	"os"
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/hack/bench/scenario"
)

// A small scenario, to see that all of it works and that totals are right.
func TestTheHubCountsASyntheticFleet(t *testing.T) {
	result, err := scenario.Run(t.Context(), scenario.Options{
		Members: 3, Pods: 200, Namespaces: 4, Rates: []int{200}, Churn: 2 * time.Second, Rest: time.Second,
		Patience: 2 * time.Minute, Out: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Rates) != 1 || result.Rates[0].Made == 0 || result.Rates[0].Writes == 0 || result.RSS == 0 || result.SyncCPU == 0 {
		t.Errorf("something was not measured: %+v", result)
	}
}
