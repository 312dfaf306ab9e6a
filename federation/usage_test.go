package federation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

type names = []corev1.ResourceName

func TestPart(t *testing.T) {
	const widgets = "count/widgets.example.com"
	stale := federation.Reach{Phase: v1alpha1.Stale, LastContact: noon, Reason: "ConnectionLost"}
	unreachable := federation.Reach{Phase: v1alpha1.Unreachable, LastContact: noon, Reason: "Timeout"}
	counted := func(l *federation.Ledger) *federation.Book {
		l.Mark("eu", live)
		book := l.Open("eu", served, nil)
		book.Replace(pods, atNoon(pod("p", requests("cpu", "500m"))))
		return book
	}
	cases := map[string]struct {
		do   func(*federation.Ledger)
		ask  names
		want federation.Part
	}{
		"a member never heard of": {
			func(*federation.Ledger) {},
			names{"pods", "cpu"},
			federation.Part{Phase: v1alpha1.NeverSynced, Unknown: names{"cpu", "pods"}},
		},
		"a member never reached says why": {
			func(l *federation.Ledger) {
				l.Mark("eu", federation.Reach{Phase: v1alpha1.NeverSynced, Reason: "Unauthorized"})
			},
			names{"pods"},
			federation.Part{Phase: v1alpha1.NeverSynced, Unknown: names{"pods"}, Reason: "Unauthorized"},
		},
		"a live member that is not engaged yet": {
			func(l *federation.Ledger) { l.Mark("eu", live) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.NeverSynced, Unknown: names{"pods"}, Reason: "Syncing"},
		},
		"a first list that is not complete": {
			func(l *federation.Ledger) {
				l.Mark("eu", live)
				l.Open("eu", served, nil).Set(pods, charged(pods, pod("p"), noon))
			},
			names{"pods"},
			federation.Part{Phase: v1alpha1.NeverSynced, Unknown: names{"pods"}, Reason: "Syncing"},
		},
		"some lists are complete": {
			func(l *federation.Ledger) { counted(l) },
			names{"services", "pods", widgets},
			federation.Part{Phase: v1alpha1.Partial, Used: list("pods", "1"), Unknown: names{widgets, "services"}, Reason: "Syncing"},
		},
		"all is current": {
			func(l *federation.Ledger) { counted(l) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "1")},
		},
		"one amount asked under two names": {
			func(l *federation.Ledger) { counted(l) },
			names{"cpu", "requests.cpu"},
			federation.Part{Phase: v1alpha1.Live, Used: list("cpu", "500m", "requests.cpu", "500m")},
		},
		"what nothing uses is zero": {
			func(l *federation.Ledger) { counted(l) },
			names{"limits.memory"},
			federation.Part{Phase: v1alpha1.Live, Used: list("limits.memory", "0")},
		},
		"nothing is asked": {
			func(l *federation.Ledger) { counted(l) }, nil,
			federation.Part{Phase: v1alpha1.Live},
		},
		"nothing is asked of a silent member": {
			func(l *federation.Ledger) { l.Mark("eu", unreachable) }, nil,
			federation.Part{Phase: v1alpha1.Unreachable, Reason: "Timeout", LastObserved: noon},
		},
		"a kind that fails keeps its last number": {
			func(l *federation.Ledger) {
				book := counted(l)
				book.Replace(services, nothing)
				book.Fail(services, "Forbidden")
			},
			names{"services", "pods"},
			federation.Part{Phase: v1alpha1.Partial, Used: list("pods", "1", "services", "0"), Unknown: names{"services"}, Reason: "Forbidden"},
		},
		"a kind that failed from the start has no number": {
			func(l *federation.Ledger) { counted(l).Fail(services, "Forbidden") },
			names{"services", "pods"},
			federation.Part{Phase: v1alpha1.Partial, Used: list("pods", "1"), Unknown: names{"services"}, Reason: "Forbidden"},
		},
		"everything failed from the start": {
			func(l *federation.Ledger) { counted(l).Fail(services, "Forbidden") },
			names{"services"},
			federation.Part{Phase: v1alpha1.Partial, Unknown: names{"services"}, Reason: "Forbidden"},
		},
		"a kind that can be counted again": {
			func(l *federation.Ledger) {
				book := counted(l)
				book.Fail(pods, "Forbidden")
				book.Fail(pods, "")
			},
			names{"pods"},
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "1")},
		},
		"a kind that is not served": {
			func(l *federation.Ledger) { counted(l) },
			names{widgets, "pods"},
			federation.Part{Phase: v1alpha1.Partial, Used: list("pods", "1"), Unknown: names{widgets}, Reason: "NotServed"},
		},
		"a kind that is served no more": {
			func(l *federation.Ledger) {
				counted(l).Learn(evaluator.NewSet("v1.37.2", []schema.GroupResource{services}))
			},
			names{"pods"},
			federation.Part{Phase: v1alpha1.Partial, Unknown: names{"pods"}, Reason: "NotServed"},
		},
		"a silent member keeps its numbers": {
			func(l *federation.Ledger) { counted(l); l.Mark("eu", stale) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), LastObserved: noon, Reason: "ConnectionLost"},
		},
		"a member silent for long keeps its numbers, and what it had none of": {
			func(l *federation.Ledger) { counted(l).Close(); l.Mark("eu", unreachable) },
			names{"pods", "services"},
			federation.Part{Phase: v1alpha1.Unreachable, Used: list("pods", "1"), Unknown: names{"services"}, LastObserved: noon, Reason: "Timeout"},
		},
		"a silent member without a number": {
			func(l *federation.Ledger) { counted(l); l.Mark("eu", stale) },
			names{"services"},
			federation.Part{Phase: v1alpha1.NeverSynced, Unknown: names{"services"}, Reason: "ConnectionLost"},
		},
		"a member that is engaged anew": {
			func(l *federation.Ledger) { counted(l); l.Open("eu", served, nil) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Reason: "Reconnecting"},
		},
		"engaged anew and silent: the contact was not with these numbers": {
			func(l *federation.Ledger) { counted(l); l.Open("eu", served, nil); l.Mark("eu", stale) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Reason: "ConnectionLost"},
		},
		"a kind that failed before the member was engaged anew": {
			func(l *federation.Ledger) { counted(l).Fail(pods, "Forbidden"); l.Open("eu", served, nil) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Unknown: names{"pods"}, Reason: "Reconnecting"},
		},
		"the namespace is missing": {
			func(l *federation.Ledger) {
				book := counted(l)
				book.Replace(pods, nothing)
				book.Replace(federation.Namespaces, namespaces("b"))
			},
			names{"pods"},
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "0"), Reason: "NamespaceMissing"},
		},
		"the namespace is there": {
			func(l *federation.Ledger) { counted(l).Replace(federation.Namespaces, namespaces("a")) },
			names{"pods"},
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "1")},
		},
		"whether the namespace is there is not known": {
			func(l *federation.Ledger) {
				book := counted(l)
				book.Replace(federation.Namespaces, namespaces("b"))
				book.Fail(federation.Namespaces, "Forbidden")
			},
			names{"pods"},
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "1")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ledger := federation.NewLedger(nil)
			c.do(ledger)
			c.want.Member = "eu"
			if c.want.Used == nil {
				c.want.Used = list()
			}
			got := ledger.Part(ask(c.ask...), "eu")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsageSumsWhatIsKnown(t *testing.T) {
	ledger := federation.NewLedger(nil)
	for name, memory := range map[string]string{"eu": "100000Gi", "us": "50000Gi", "ap": "1n"} {
		ledger.Mark(name, live)
		ledger.Open(name, served, nil).Replace(pods, atNoon(pod("p", requests("memory", memory))))
	}
	ledger.Mark("us", federation.Reach{Phase: v1alpha1.Unreachable, LastContact: noon})
	for range 3 { // a sum that wrote to its parts would grow
		usage := ledger.Usage(ask("memory", "services"), []string{"eu", "us", "none", "ap"})
		want := list("memory", "150000Gi")
		quantity := want["memory"]
		quantity.Add(resource.MustParse("1n"))
		want["memory"] = quantity
		if !federation.Equal(usage.Used, want) {
			t.Errorf("used %v, want %v: services are unknown everywhere, not zero", usage.Used, want)
		}
		var order []string
		for _, part := range usage.Parts {
			order = append(order, part.Member)
		}
		if !cmp.Equal(order, []string{"eu", "us", "none", "ap"}) {
			t.Errorf("parts of %v", order)
		}
	}
}

func TestAQuestionIsNotChanged(t *testing.T) {
	asked := names{"pods", "cpu"}
	federation.NewLedger(nil).Part(ask(asked...), "eu")
	if !cmp.Equal(asked, names{"pods", "cpu"}) {
		t.Errorf("now %v", asked)
	}
}

func TestRecall(t *testing.T) {
	written := noon.Add(-time.Hour)
	before := noon.Add(-2 * time.Hour)
	row := func(phase v1alpha1.Phase, used corev1.ResourceList) v1alpha1.ClusterUsage {
		return v1alpha1.ClusterUsage{Name: "eu", Phase: phase, Used: used}
	}
	since := func(row v1alpha1.ClusterUsage) v1alpha1.ClusterUsage {
		row.LastObservedTime = metaTime(before)
		return row
	}
	starting := federation.Part{Phase: v1alpha1.NeverSynced, Used: list(), Unknown: names{"pods", "services"}, Reason: "Syncing"}
	silent := federation.Part{Phase: v1alpha1.NeverSynced, Used: list(), Unknown: names{"pods", "services"}, Reason: "Timeout"}
	cases := map[string]struct {
		part federation.Part
		row  v1alpha1.ClusterUsage
		want federation.Part
	}{
		"after a restart, numbers that were live are as old as the status": {
			starting, row(v1alpha1.Live, list("pods", "3", "services", "1")),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "3", "services", "1"), LastObserved: written, Reason: "Syncing"},
		},
		"numbers that were old keep their time": {
			starting, since(row(v1alpha1.Stale, list("pods", "3", "services", "1"))),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "3", "services", "1"), LastObserved: before, Reason: "Syncing"},
		},
		"a member that has not answered since the restart is unreachable": {
			silent, since(row(v1alpha1.Stale, list("pods", "3", "services", "1"))),
			federation.Part{Phase: v1alpha1.Unreachable, Used: list("pods", "3", "services", "1"), LastObserved: before, Reason: "Timeout"},
		},
		"a member that was unreachable and answers again is only stale": {
			starting, since(row(v1alpha1.Unreachable, list("pods", "3", "services", "1"))),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "3", "services", "1"), LastObserved: before, Reason: "Syncing"},
		},
		"what the row does not know stays unknown": {
			starting, row(v1alpha1.Partial, list("pods", "3")),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "3"), Unknown: names{"services"}, LastObserved: written, Reason: "Syncing"},
		},
		"a last number that was unknown stays unknown": {
			starting,
			v1alpha1.ClusterUsage{Name: "eu", Phase: v1alpha1.Partial, Used: list("pods", "3", "services", "1"), Unknown: names{"services"}},
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "3", "services", "1"), Unknown: names{"services"}, LastObserved: written, Reason: "Syncing"},
		},
		"a row without numbers": {starting, row(v1alpha1.NeverSynced, nil), starting},
		"a row of another member": {
			starting, v1alpha1.ClusterUsage{Name: "us", Phase: v1alpha1.Live, Used: list("pods", "3")}, starting,
		},
		"a row that asks other things": {starting, row(v1alpha1.Live, list("secrets", "3")), starting},
		"a live member is not told its past": {
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "0")},
			row(v1alpha1.Live, list("pods", "3")),
			federation.Part{Phase: v1alpha1.Live, Used: list("pods", "0")},
		},
		"a number of the ledger is newer than the row": {
			federation.Part{Phase: v1alpha1.Partial, Used: list("pods", "1"), Unknown: names{"services"}, Reason: "Forbidden"},
			row(v1alpha1.Live, list("pods", "3", "services", "1")),
			federation.Part{Phase: v1alpha1.Partial, Used: list("pods", "1", "services", "1"), Unknown: names{"services"}, Reason: "Forbidden"},
		},
		"a silent member that was half counted is as old as its oldest number": {
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Unknown: names{"services"}, LastObserved: noon},
			row(v1alpha1.Live, list("pods", "3", "services", "1")),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1", "services", "1"), LastObserved: written},
		},
		"a silent member's failing kind stays unknown though others are recalled": {
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Unknown: names{"pods", "services"}, LastObserved: noon},
			row(v1alpha1.Live, list("pods", "3", "services", "1")),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1", "services", "1"), Unknown: names{"pods"}, LastObserved: written},
		},
		"a member that is engaged anew has the time of the row": {
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Reason: "Reconnecting"},
			since(row(v1alpha1.Stale, list("pods", "1"))),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), Reason: "Reconnecting", LastObserved: before},
		},
		"a time of the ledger's own stays": {
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), LastObserved: noon},
			since(row(v1alpha1.Stale, list("pods", "1"))),
			federation.Part{Phase: v1alpha1.Stale, Used: list("pods", "1"), LastObserved: noon},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.part.Member, c.want.Member = "eu", "eu"
			was := c.part
			was.Used, was.Unknown = c.part.Used.DeepCopy(), append(names(nil), c.part.Unknown...)
			usage := federation.Usage{Used: c.part.Used.DeepCopy(), Parts: []federation.Part{c.part}}

			got := usage.Recall([]v1alpha1.ClusterUsage{c.row}, written)

			if diff := cmp.Diff([]federation.Part{c.want}, got.Parts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !federation.Equal(got.Used, c.want.Used) {
				t.Errorf("sum %v, want %v", got.Used, c.want.Used)
			}
			if diff := cmp.Diff(was, usage.Parts[0]); diff != "" {
				t.Errorf("the receiver was changed:\n%s", diff)
			}
			if again := got.Recall([]v1alpha1.ClusterUsage{c.row}, written); !cmp.Equal(got.Parts, again.Parts) {
				t.Errorf("a second time it is %+v", again.Parts)
			}
		})
	}
}
