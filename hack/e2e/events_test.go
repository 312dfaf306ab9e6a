package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// eventsOn counts the events about an object, by type and reason.
func (x *tenant) eventsOn(ctx context.Context, kind, namespace, name string) (map[string]int, error) {
	list, err := x.Hub.Kubernetes.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	counted := map[string]int{}
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.Kind == kind && e.Regarding.Name == name {
			counted[e.Type+" "+e.Reason] += times(e)
		}
	}
	return counted, nil
}

func times(e *eventsv1.Event) int {
	if e.Series == nil {
		return 1
	}
	return int(e.Series.Count)
}

// Events tell of transitions, once each, and of nothing else.
func TestEventsOnTransitionsOnly(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	expect := func(want map[string]int) {
		t.Helper()
		x.eventually(soon, func(ctx context.Context) error {
			have, err := x.eventsOn(ctx, "FleetQuota", x.namespace, "all")
			if err == nil && fmt.Sprint(have) != fmt.Sprint(want) {
				err = fmt.Errorf("events %v, want %v", have, want)
			}
			return err
		})
	}
	x.quota("all", list("pods", "2"), sharedMembers)
	x.becomes("all", complete)
	expect(map[string]int{}) // all is well: nothing to tell

	x.create("east", pod("a"), pod("b"))
	x.create("west", pod("a"))
	x.becomes("all", condition("WithinHard", "False", "Exceeded"))
	expect(map[string]int{"Warning Exceeded": 1})
	for i := range 3 { // it stays exceeded, with other numbers
		x.create("south", pod(fmt.Sprintf("p%d", i)))
		x.becomes("all", uses("pods", fmt.Sprint(4+i)))
	}
	expect(map[string]int{"Warning Exceeded": 1})
	for i := range 3 {
		x.delete("south", pods, fmt.Sprintf("p%d", i))
	}
	x.delete("east", pods, "a")
	x.becomes("all", condition("WithinHard", "True", "Within"))
	expect(map[string]int{"Warning Exceeded": 1, "Normal Within": 1})

	x.change("all", selecting("region", "nowhere"))
	x.becomes("all", condition("UsageComplete", "False", "NoMembers"))
	expect(map[string]int{"Warning Exceeded": 1, "Normal Within": 1, "Warning NoMembers": 1, "Warning UsageUnknown": 1})
	x.change("all", sharedMembers)
	x.becomes("all", complete, condition("WithinHard", "True", "Within"))
	time.Sleep(2 * time.Second)
	expect(map[string]int{"Warning Exceeded": 1, "Normal Within": 2, "Warning NoMembers": 1, "Warning UsageUnknown": 1, "Normal AllLive": 1})

	// A member that is live from the start was told of once.
	have, err := x.eventsOn(t.Context(), "FleetMember", "default", "east")
	x.must(err)
	if have["Normal Live"] != 1 {
		t.Errorf("events about the member east: %v", have)
	}
	if q, err := x.get(t.Context(), "all"); err != nil || len(q.Status.Conditions) != 4 {
		t.Errorf("conditions %v, %v; want %s and three more", q.Status.Conditions, err, v1alpha1.ConditionReady)
	}
}
