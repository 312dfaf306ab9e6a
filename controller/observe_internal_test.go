package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
)

// A device class costs nothing, but decides what claims cost: its page hands on
// its record, also after a list that arrived as a stream.
func TestAPageHandsRecordsOn(t *testing.T) {
	claims, classes := resourcev1.Resource("resourceclaims"), resourcev1.Resource("deviceclasses")
	set := evaluator.NewSet("v1.37.2", []schema.GroupResource{claims, corev1.Resource("pods")})
	ledger := federation.NewLedger(nil)
	e := &engagement{hub: &hub{charges: wire.NewCharges(0)}, set: set, book: ledger.Open("eu", set, nil), conn: &clusters.Connection{}, turn: newTurn(newGate(1))}

	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "big", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3,
	}}}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "big"}}
	class.Spec.ExtendedResourceName = new("example.com/gpu")

	for kind, object := range map[schema.GroupResource]runtime.Object{claims: claim, classes: class, corev1.Resource("pods"): nil} {
		page := &page{engagement: e, kind: kind, reader: e.reader(kind)}
		stream := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
		if object != nil {
			stream.Add(object)
		}
		stream.Action(watch.Bookmark, initialEventsEnd())
		if _, err := page.receive(stream); err != nil {
			t.Fatal(err)
		}
		if err := page.Replace(nil, "7"); err != nil {
			t.Fatal(err)
		}
	}
	used := ledger.Part(federation.Question{Namespace: "team", Resources: []corev1.ResourceName{"requests.example.com/gpu"}}, "eu").Used
	if got := used["requests.example.com/gpu"]; got.Value() != 3 {
		t.Errorf("got %v, want 3 devices under the name that their class gives them", used)
	}
}
