package federation_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// The model of a ledger keeps the objects themselves and adds up exact numbers
// each time it is asked. It has no sums, no timers and no classes.

type modelObject struct {
	obj interface {
		runtime.Object
		metav1.Object
	}
	at time.Time // when it was last looked at
}

// modelPage is one kind in one engagement.
type modelPage struct {
	objects map[string]modelObject // namespace/name -> object
	synced  bool
	trouble string
}

type modelMember struct {
	book  *federation.Book                    // nil: none is open
	now   map[schema.GroupResource]*modelPage // of the open book
	kept  map[schema.GroupResource]*modelPage // of the last engagement that counted the kind
	began bool                                // there was a book
}

func newModelMember() *modelMember {
	return &modelMember{now: map[schema.GroupResource]*modelPage{}, kept: map[schema.GroupResource]*modelPage{}}
}

func (m *modelMember) page(kind schema.GroupResource) *modelPage {
	if m.now[kind] == nil {
		m.now[kind] = &modelPage{objects: map[string]modelObject{}}
	}
	return m.now[kind]
}

func (m *modelMember) close() {
	for kind, page := range m.now {
		if page.synced {
			m.kept[kind] = page
		}
	}
	m.book, m.now = nil, map[schema.GroupResource]*modelPage{}
}

// part is what the ledger should say of a live member.
func (m *modelMember) part(q federation.Question) (used map[corev1.ResourceName]*big.Rat, unknown names, phase v1alpha1.Phase) {
	used = map[corev1.ResourceName]*big.Rat{}
	old, syncing := false, false
	for _, key := range q.Resources {
		kinds := served.Kinds(key)
		if !m.began {
			kinds, syncing = nil, true
		}
		if len(kinds) == 0 {
			unknown = append(unknown, key)
			continue
		}
		now, page := m.now[kinds[0]], m.kept[kinds[0]]
		fails := now != nil && now.trouble != ""
		switch {
		case now != nil && now.synced:
			page = now
		case page != nil:
			old = old || !fails
			fails = fails || page.trouble != ""
		default:
			syncing = syncing || !fails
		}
		if page != nil {
			used[key] = page.recount(kinds[0], q, key)
		}
		if page == nil || fails {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	switch {
	case len(used) == 0 && syncing:
		phase = v1alpha1.NeverSynced
	case old:
		phase = v1alpha1.Stale
	case len(unknown) > 0:
		phase = v1alpha1.Partial
	default:
		phase = v1alpha1.Live
	}
	return used, unknown, phase
}

func (p *modelPage) recount(kind schema.GroupResource, q federation.Question, key corev1.ResourceName) *big.Rat {
	sum := new(big.Rat)
	for _, o := range p.objects {
		charge := charged(kind, o.obj, o.at).Charge
		if o.obj.GetNamespace() != q.Namespace || !q.Selector.Matches(charge.Class) {
			continue
		}
		for _, amount := range charge.Amounts {
			if amount.Name == evaluator.Canonical(key) {
				sum.Add(sum, rational(amount.Quantity))
			}
		}
	}
	return sum
}

func rational(q resource.Quantity) *big.Rat {
	own := q.DeepCopy()
	r, ok := new(big.Rat).SetString(own.AsDec().String())
	if !ok {
		panic("not a number: " + own.String())
	}
	return r
}

// What is drawn.

var amounts = rapid.SampledFrom([]string{
	"0", "1n", "1", "250m", "1500m", "0.3", "1Gi", "1G", "100000Gi", "50000Gi", "7Ei", "9223372036854775807", "1E", "900E", "12345678901234567890.5",
})

func maybe(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, what) }

func drawObject(t *rapid.T, kind schema.GroupResource, now time.Time) modelObject {
	meta := metav1.ObjectMeta{
		Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"k", "l", "m", "n"}).Draw(t, "name"),
	}
	o := modelObject{at: now}
	switch kind {
	case pods:
		p := &corev1.Pod{ObjectMeta: meta}
		p.Spec.Containers = []corev1.Container{{Name: "main"}}
		if maybe(t, "requests") {
			requests("cpu", amounts.Draw(t, "cpu"), "memory", amounts.Draw(t, "memory"), "example.com/gpu", "2")(p)
		}
		if maybe(t, "high") {
			priority("high")(p)
		}
		if maybe(t, "terminating") {
			p.Spec.ActiveDeadlineSeconds = new(int64(5))
		}
		if maybe(t, "deleted") {
			deleted(now.Add(time.Duration(rapid.IntRange(-5, 20).Draw(t, "seconds"))*time.Second), 2)(p)
		}
		if rapid.IntRange(0, 4).Draw(t, "finished") == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		o.obj = p
	case services:
		s := &corev1.Service{ObjectMeta: meta}
		s.Spec.Type = rapid.SampledFrom([]corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}).Draw(t, "type")
		s.Spec.Ports = make([]corev1.ServicePort, rapid.IntRange(1, 3).Draw(t, "ports"))
		o.obj = s
	case claims:
		c := &corev1.PersistentVolumeClaim{ObjectMeta: meta}
		c.Spec.Resources.Requests = list("storage", amounts.Draw(t, "storage"))
		if maybe(t, "gold") {
			c.Spec.StorageClassName = new("gold")
			c.Spec.VolumeAttributesClassName = new("fast")
		}
		o.obj = c
	default:
		o.obj = &corev1.ConfigMap{ObjectMeta: meta}
	}
	return o
}

// questions ask for everything, in every namespace, under each scope.
func questions() []federation.Question {
	selectors := []evaluator.Selector{{}}
	for _, r := range []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopeTerminating, Operator: corev1.ScopeSelectorOpExists},
		{ScopeName: corev1.ResourceQuotaScopeNotTerminating, Operator: corev1.ScopeSelectorOpExists},
		{ScopeName: corev1.ResourceQuotaScopeBestEffort, Operator: corev1.ScopeSelectorOpExists},
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}},
		{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"fast"}},
	} {
		selector, err := evaluator.NewSelector(nil, &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{r}})
		if err != nil {
			panic(err)
		}
		selectors = append(selectors, selector)
	}
	var all []federation.Question
	for _, ns := range []string{"a", "b"} {
		for _, selector := range selectors {
			for _, resources := range []names{
				{"pods", "cpu", "requests.cpu", "memory", "count/pods", "requests.example.com/gpu"},
				{"services", "services.nodeports", "services.loadbalancers", "configmaps", "count/configmaps"},
				{"requests.storage", "gold.storageclass.storage.k8s.io/requests.storage", "count/widgets.example.com", "pods"},
			} {
				all = append(all, federation.Question{Namespace: ns, Resources: resources, Selector: selector})
			}
		}
	}
	return all
}

// world is a ledger beside its model.
type world struct {
	ledger  *federation.Ledger
	told    moves
	members map[string]*modelMember
	late    []*federation.Book // handles that nobody should use any more
	time    time.Time
	given   []given
}

// given is a charge that the ledger was given, and a copy of then.
type given struct{ now, then evaluator.Amounts }

func newWorld() *world {
	w := &world{members: map[string]*modelMember{"eu": newModelMember(), "us": newModelMember()}, time: noon}
	w.ledger = federation.NewLedger(w.told.note)
	for name := range w.members {
		w.ledger.Mark(name, live)
	}
	return w
}

// hand is an object as it is handed to a book, noted.
func (w *world) hand(kind schema.GroupResource, o modelObject) federation.Object {
	object := charged(kind, o.obj, o.at)
	for charge := &object.Charge; charge != nil; charge = charge.After {
		then := slices.Clone(charge.Amounts)
		for i := range then {
			then[i].Quantity = then[i].Quantity.DeepCopy()
		}
		w.given = append(w.given, given{charge.Amounts, then})
	}
	return object
}

func key(o modelObject) string { return o.obj.GetNamespace() + "/" + o.obj.GetName() }

// open draws a member with an open book.
func (w *world) open(t *rapid.T) (string, *modelMember) {
	name := rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "member")
	m := w.members[name]
	if m.book == nil {
		t.Skip("no book is open")
	}
	return name, m
}

func drawKind(t *rapid.T) schema.GroupResource {
	return rapid.SampledFrom([]schema.GroupResource{pods, services, claims, configMaps}).Draw(t, "kind")
}

func (w *world) drawObjects(t *rapid.T, kind schema.GroupResource) (map[string]modelObject, []federation.Object) {
	model := map[string]modelObject{}
	var objects []federation.Object
	for range rapid.IntRange(0, 5).Draw(t, "objects") {
		o := drawObject(t, kind, w.time)
		model[key(o)] = o // of two with one name the later counts
		objects = append(objects, w.hand(kind, o))
	}
	return model, objects
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"Open": func(t *rapid.T) {
			name := rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "member")
			m := w.members[name]
			if m.book != nil {
				w.late = append(w.late, m.book)
			}
			m.close()
			m.book, m.began = w.ledger.Open(name, served, nil), true
		},
		"Close": func(t *rapid.T) {
			_, m := w.open(t)
			m.book.Close()
			w.late = append(w.late, m.book)
			m.close()
		},
		"Set": func(t *rapid.T) {
			_, m := w.open(t)
			kind := drawKind(t)
			o := drawObject(t, kind, w.time)
			m.page(kind).objects[key(o)] = o
			m.book.Set(kind, w.hand(kind, o))
		},
		"Set again": func(t *rapid.T) {
			_, m := w.open(t)
			kind := drawKind(t)
			objects := m.page(kind).objects
			if len(objects) == 0 {
				t.Skip("no object")
			}
			o := objects[rapid.SampledFrom(slices.Sorted(maps.Keys(objects))).Draw(t, "object")]
			w.told.take()
			m.book.Set(kind, w.hand(kind, o))
			if told := w.told.take(); len(told) > 0 {
				t.Errorf("told of %v, but nothing has changed", told)
			}
		},
		"Delete": func(t *rapid.T) {
			_, m := w.open(t)
			kind := drawKind(t)
			o := drawObject(t, kind, w.time)
			delete(m.page(kind).objects, key(o))
			m.book.Delete(kind, o.obj.GetNamespace(), o.obj.GetName())
		},
		"Replace": func(t *rapid.T) {
			_, m := w.open(t)
			kind := drawKind(t)
			model, objects := w.drawObjects(t, kind)
			m.now[kind] = &modelPage{objects: model, synced: true}
			delete(m.kept, kind)
			m.book.Replace(kind, slices.Values(objects))
		},
		"Fail": func(t *rapid.T) {
			_, m := w.open(t)
			kind := drawKind(t)
			trouble := rapid.SampledFrom([]string{"", "Forbidden", "ListFailed"}).Draw(t, "trouble")
			m.page(kind).trouble = trouble
			m.book.Fail(kind, trouble)
		},
		"Drop": func(t *rapid.T) {
			_, m := w.open(t)
			kind := drawKind(t)
			delete(m.now, kind)
			delete(m.kept, kind)
			m.book.Drop(kind)
		},
		"Expire": func(t *rapid.T) {
			_, m := w.open(t)
			w.time = w.time.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "seconds")) * time.Second)
			for _, page := range m.now {
				for name, o := range page.objects {
					o.at = w.time
					page.objects[name] = o
				}
			}
			next := m.book.Expire(w.time)
			if !next.IsZero() && !next.After(w.time) {
				t.Errorf("next is %v, which is not after %v", next, w.time)
			}
		},
		"Erase": func(t *rapid.T) {
			name, m := w.open(t)
			w.late = append(w.late, m.book)
			w.members[name] = newModelMember()
			w.ledger.Erase(name)
			w.ledger.Mark(name, live)
		},
		"write late": func(t *rapid.T) {
			if len(w.late) == 0 {
				t.Skip("every handle is in use")
			}
			book, kind := rapid.SampledFrom(w.late).Draw(t, "book"), drawKind(t)
			_, objects := w.drawObjects(t, kind)
			for _, o := range objects {
				book.Set(kind, o)
			}
			book.Replace(kind, slices.Values(objects))
			book.Fail(kind, "Late")
			book.Expire(w.time.Add(time.Hour))
			book.Drop(kind)
			book.Close()
		},
	}
}

// answers is all that the ledger says, as text.
func (w *world) answers() map[string]string {
	all := map[string]string{}
	for i, q := range questions() {
		for name := range w.members {
			part := w.ledger.Part(q, name)
			text := fmt.Sprint(part.Phase, part.Unknown)
			for _, key := range slices.Sorted(maps.Keys(part.Used)) {
				text += fmt.Sprint(" ", key, "=", rational(part.Used[key]))
			}
			all[fmt.Sprint(name, " ", q.Namespace, " ", i)] = text
		}
	}
	return all
}

func (w *world) want() map[string]string {
	all := map[string]string{}
	for i, q := range questions() {
		for name, m := range w.members {
			used, unknown, phase := m.part(q)
			text := fmt.Sprint(phase, unknown)
			for _, key := range slices.Sorted(maps.Keys(used)) {
				text += fmt.Sprint(" ", key, "=", used[key])
			}
			all[fmt.Sprint(name, " ", q.Namespace, " ", i)] = text
		}
	}
	return all
}

// changes says for which member and namespace an answer has changed.
func changes(before, after map[string]string) map[string]bool {
	found := map[string]bool{}
	for question, answer := range after {
		if before[question] != answer {
			var member, ns string
			_, _ = fmt.Sscan(question, &member, &ns)
			found[member+" "+ns] = true
		}
	}
	return found
}

func TestTheLedgerIsEqualToARecount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		last := w.answers()
		actions := w.actions()
		actions[""] = func(t *rapid.T) {
			answers := w.answers()
			if diff := cmp.Diff(w.want(), answers); diff != "" {
				t.Fatalf("(-recount +ledger):\n%s", diff)
			}
			told := map[string]bool{}
			for _, move := range w.told.take() {
				for _, ns := range []string{"a", "b"} {
					told[move.Member+" "+ns] = told[move.Member+" "+ns] || move.Namespace == "" || move.Namespace == ns
				}
			}
			for where := range changes(last, answers) {
				if !told[where] {
					t.Errorf("numbers of %s moved, and nobody was told", where)
				}
			}
			last = answers
			for _, g := range w.given {
				for i := range g.now {
					if g.now[i].Name != g.then[i].Name || g.now[i].Quantity.Cmp(g.then[i].Quantity) != 0 {
						t.Fatalf("a charge was changed from %v to %v", g.then[i], g.now[i])
					}
				}
			}
		}
		t.Repeat(actions)
	})
}

func TestASumDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var objects []federation.Object
		for i, value := range rapid.SliceOfN(amounts, 1, 12).Draw(t, "memory") {
			objects = append(objects, charged(pods, pod(fmt.Sprint(i), requests("memory", value)), noon))
		}
		sum := func(objects []federation.Object, extra ...federation.Object) corev1.ResourceList {
			ledger := federation.NewLedger(nil)
			book := ledger.Open("eu", served, nil)
			book.Replace(pods, nothing)
			for _, o := range append(slices.Clone(objects), extra...) {
				book.Set(pods, o)
			}
			for _, o := range extra {
				book.Delete(pods, o.Namespace, o.Name)
			}
			return ledger.Usage(ask("memory", "pods"), []string{"eu"}).Used
		}
		want := sum(objects)
		if got := sum(rapid.Permutation(objects).Draw(t, "order")); !federation.Equal(got, want) {
			t.Errorf("%v, in another order %v", want, got)
		}
		gone := charged(pods, pod("gone", requests("memory", amounts.Draw(t, "gone"))), noon)
		if got := sum(objects, gone); !federation.Equal(got, want) {
			t.Errorf("%v, after one that came and went %v", want, got)
		}
	})
}
