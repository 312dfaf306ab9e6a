package synthetic

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func testShape(t *testing.T, namespaces int) *shape {
	t.Helper()
	s, err := newShape(namespaces)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAPodIsTheSameInEachForm(t *testing.T) {
	s := testShape(t, 7)
	for st := range states {
		p := pod{number: 123_456, version: 42, created: 1_700_000_000, state: st}
		var fromProtobuf, fromJSON corev1.Pod
		if err := fromProtobuf.Unmarshal(s.object(3, p, form{protobuf: true}).write(nil)); err != nil {
			t.Fatal(err)
		}
		text := s.object(3, p, form{}).write(nil)
		if err := json.Unmarshal(text, &fromJSON); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(fromProtobuf, fromJSON) {
			t.Errorf("state %d: protobuf tells of\n%+v\nand JSON of\n%+v", st, fromProtobuf, fromJSON)
		}
		if strings.Contains(string(text), "@") && strings.Contains(strings.ReplaceAll(string(text), "@sha256", ""), "@") {
			t.Errorf("state %d: a mark is left in %s", st, text)
		}
		namespace, name := s.key(p)
		if fromJSON.Namespace != namespace || fromJSON.Name != name || fromJSON.ResourceVersion != "1000000042" ||
			fromJSON.CreationTimestamp.Unix() != int64(p.created) {
			t.Errorf("state %d: the wrong pod: %+v", st, fromJSON.ObjectMeta)
		}
		if number, ok := s.numberOf(namespace, name); !ok || number != p.number {
			t.Errorf("%s/%s is pod %d", namespace, name, number)
		}
	}
}

func TestNoTwoPodsAreAlike(t *testing.T) {
	s := testShape(t, 7)
	uids, names := map[string]bool{}, map[string]bool{}
	const many = 3000
	for number := range uint32(many) {
		var p corev1.Pod
		if err := p.Unmarshal(s.object(number%3, pod{number: number, created: 1_700_000_000}, form{protobuf: true, metadata: true}).write(nil)); err != nil {
			t.Fatal(err)
		}
		uids[string(p.UID)], names[p.Namespace+"/"+p.Name] = true, true
	}
	if len(uids) != many || len(names) != many {
		t.Errorf("%d pods have %d identities and %d names", many, len(uids), len(names))
	}
}

func TestPodsAreAsLargeAsRealOnes(t *testing.T) {
	const least, most = 3000, 4000
	if size := testShape(t, 7).object(0, pod{}, form{protobuf: true}).size; size < least || size > most {
		t.Errorf("a pod has %d bytes", size)
	}
}

func TestOrderOfPodsIsThatOfTheirKeys(t *testing.T) {
	s := testShape(t, 7)
	var all []pod
	for number := range uint32(2000) {
		all = append(all, pod{number: number * 7})
	}
	slices.SortFunc(all, func(a, b pod) int {
		if s.less(a, b) {
			return -1
		}
		return 1
	})
	var keys []string
	for _, p := range all {
		namespace, name := s.key(p)
		keys = append(keys, namespace+"/"+name)
	}
	if !slices.IsSorted(keys) {
		t.Error("they differ")
	}
}

// The past that history makes by undoing is the one that was.
func TestHistoryKnowsThePast(t *testing.T) {
	o, _ := Options{Pods: 50, Namespaces: 3, History: 40}.complete()
	m := newMember(0, o, testShape(t, o.Namespaces))
	chance := rand.New(rand.NewPCG(1, 2))
	past := map[uint64][]pod{}
	for range 200 {
		m.shake(chance)
		present, _ := m.pods.history.now()
		past[present.revision] = objects(present)
	}
	known := 0
	for _, revision := range slices.Sorted(maps.Keys(past)) {
		then, err := m.pods.history.at(revision)
		if err != nil {
			continue
		}
		known++
		if !slices.Equal(objects(then), past[revision]) {
			t.Errorf("at %d there were\n%v\nand not\n%v", revision, past[revision], objects(then))
		}
	}
	if known < 20 || known > 41 {
		t.Errorf("%d revisions are known", known)
	}
}

func objects[T any](s snapshot[T]) []T {
	var all []T
	s.objects.Ascend(func(obj T) bool {
		all = append(all, obj)
		return true
	})
	return all
}

func TestTruthIsTheSumOfAllPods(t *testing.T) {
	o, _ := Options{Pods: 300, Namespaces: 4, Services: 2}.complete()
	m := newMember(0, o, testShape(t, o.Namespaces))
	chance := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		m.shake(chance)
	}
	sum := map[string]Use{}
	present, _ := m.pods.history.now()
	for _, p := range objects(present) {
		var told corev1.Pod
		if err := told.Unmarshal(m.pods.codec.object(p, form{protobuf: true}).write(nil)); err != nil {
			t.Fatal(err)
		}
		use := sum[told.Namespace]
		use.Stored++
		if told.Status.Phase == corev1.PodRunning {
			c := costOf(&told)
			one := Use{Running: 1, CPU: c.cpu, Memory: c.memory, CPULimit: c.cpuLimit, MemoryLimit: c.memoryLimit}
			use = use.Plus(&one)
		}
		sum[told.Namespace] = use
	}
	for namespace, truth := range m.Truth() {
		want := sum[namespace]
		want.Services = 2
		if truth != want {
			t.Errorf("%s: %+v, and the pods say %+v", namespace, truth, want)
		}
	}
}

func TestChurnDependsOnTheSeedAlone(t *testing.T) {
	play := func() string {
		o, _ := Options{Pods: 100}.complete()
		m := newMember(0, o, testShape(t, o.Namespaces))
		chance := rand.New(rand.NewPCG(5, 5))
		for range 1000 {
			m.shake(chance)
		}
		return fmt.Sprint(m.Truth())
	}
	if first, again := play(), play(); first != again {
		t.Errorf("once %s\nand then %s", first, again)
	}
}

func TestAPodCostsLittle(t *testing.T) {
	const pods, most = 200_000, 64
	o, _ := Options{Pods: pods}.complete()
	s := testShape(t, o.Namespaces)
	before := heap()
	m := newMember(0, o, s)
	if each := (heap() - before) / pods; each > most {
		t.Errorf("a pod costs %d bytes", each)
	}
	runtime.KeepAlive(m)
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
