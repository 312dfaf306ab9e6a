package wire_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/evaluator/wire"
)

// The second reading finds what the first has remembered.
func TestAnyObjectCostsWhatItCostsWhole(t *testing.T) {
	objects := uint64(1000)
	if testing.Short() {
		objects = 100
	}
	charges := wire.NewCharges(0)
	for _, version := range versions {
		set := setOf(version)
		for _, k := range kinds {
			if _, counted := set.For(k.GroupResource); !counted && !set.Special(k.GroupResource) {
				continue
			}
			reader := charges.Reader(k.GroupResource, set)
			for seed := range objects {
				drawn, full := k.make(), k.make()
				filler(seed).Fill(drawn)
				data := encoded(t, drawn)
				if err := full.Unmarshal(data); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got, err := reader.Read(data)
					if err != nil {
						t.Fatal(err)
					}
					if !wantAsWhole(t, set, k.GroupResource, full, got) {
						t.Fatalf("seed %d: %v", seed, full)
					}
				}
				wantAsWhole(t, set, k.GroupResource, full, reader.Of(full))
			}
		}
	}
}

func TestWhatItReturnsSharesNothingWithTheMessage(t *testing.T) {
	set := setOf("v1.37.2")
	for _, k := range kinds {
		reader := wire.NewCharges(0).Reader(k.GroupResource, set)
		for seed := range uint64(100) {
			drawn, full := k.make(), k.make()
			filler(seed).Fill(drawn)
			data := encoded(t, drawn)
			if err := full.Unmarshal(data); err != nil {
				t.Fatal(err)
			}
			got, err := reader.Read(data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range data {
				data[i] = 'x'
			}
			wantAsWhole(t, set, k.GroupResource, full, got)
		}
	}
}

// field is one field of bytes.
func field(number protowire.Number, contents ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), slices.Concat(contents...))
}

func number(n protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), value)
}

// The numbers of fields of a pod.
const (
	podMeta, podSpec, podStatus   = 1, 2, 3
	metaName                      = 1
	specContainers, specDeadline  = 2, 5
	containerName, containerNeeds = 1, 8
	requests                      = 2
	statusPhase                   = 1
)

func asking(name, amount string) []byte {
	return field(requests, field(1, []byte(name)), field(2, field(1, []byte(amount))))
}

func TestMessagesThatNoServerWrites(t *testing.T) {
	named := field(podMeta, field(metaName, []byte("p")))
	cpu := field(podSpec, field(specContainers, field(containerName, []byte("c")), field(containerNeeds, asking("cpu", "1"))))
	for name, c := range map[string]struct {
		data    []byte
		refused bool
	}{
		"empty":                                {},
		"plain":                                {data: slices.Concat(named, cpu)},
		"parts in another order":               {data: slices.Concat(field(podStatus, field(statusPhase, []byte("Failed"))), cpu, named)},
		"a spec that comes twice":              {data: slices.Concat(cpu, named, cpu)},
		"needs that come twice":                {data: field(podSpec, field(specContainers, field(containerNeeds, asking("cpu", "1")), field(containerNeeds, asking("memory", "2"))))},
		"a resource that comes twice":          {data: field(podSpec, field(specContainers, field(containerNeeds, asking("cpu", "1"), asking("cpu", "2"))))},
		"a phase that comes twice":             {data: field(podStatus, field(statusPhase, []byte("Failed")), field(statusPhase, []byte("Running")))},
		"a name that comes twice":              {data: slices.Concat(field(podMeta, field(metaName, []byte("p"))), field(podMeta, field(metaName, []byte("q"))))},
		"fields that nobody knows":             {data: slices.Concat(field(99, []byte("x")), number(98, 1), named, cpu, field(podSpec, field(999, cpu)))},
		"a tag that is longer than it must be": {data: slices.Concat([]byte{0x92, 0x80, 0x00}, cpu[1:])},
		"an empty container":                   {data: field(podSpec, field(specContainers))},
		"a negative deadline":                  {data: field(podSpec, number(specDeadline, 1<<64-1))},
		"a spec that is a number":              {data: number(podSpec, 1), refused: true},
		"a container that is a number":         {data: field(podSpec, number(specContainers, 1)), refused: true},
		"a deadline that is a text":            {data: field(podSpec, field(specDeadline, []byte("5"))), refused: true},
		"a message that is cut off":            {data: cpu[:len(cpu)-1], refused: true},
		"a length that does not fit":           {data: []byte{0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, refused: true},
		"a number that does not end":           {data: slices.Concat([]byte{0x10}, slices.Repeat([]byte{0xff}, 20)), refused: true},
		"a quantity that is none":              {data: field(podSpec, field(specContainers, field(containerNeeds, asking("cpu", "lots")))), refused: true},
		"a group":                              {data: []byte{0x13, 0x14}, refused: true},
		"the end of a group":                   {data: []byte{0x14}, refused: true},
		"the field 0":                          {data: []byte{0x02, 0x00}, refused: true},
		"a condition whose type is not a text": {data: field(podStatus, field(2, number(1, 1))), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range versions {
				set := setOf(version)
				got, err := wire.NewCharges(0).Reader(corev1.Resource("pods"), set).Read(c.data)
				if (err != nil) != c.refused || err != nil && !errors.Is(err, wire.ErrMalformed) {
					t.Fatalf("got the error %v, want one: %t", err, c.refused)
				}
				if err != nil {
					continue
				}
				full := &corev1.Pod{}
				if err := full.Unmarshal(c.data); err != nil {
					t.Fatal(err)
				}
				wantAsWhole(t, set, corev1.Resource("pods"), full, got)
			}
		})
	}
}

// allocated is the bytes that work allocates.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The API's own decoder makes gigabytes of such messages.
func TestAHostileMessageTakesLittleMemory(t *testing.T) {
	const most = 64 << 20
	many := func(element []byte) []byte { return slices.Repeat(element, 8<<20/len(element)) }
	reader := wire.NewCharges(0).Reader(corev1.Resource("pods"), setOf("v1.37.2"))
	for name, data := range map[string][]byte{
		"of empty containers":  field(podSpec, many([]byte{specContainers<<3 | 2, 0})),
		"of empty volumes":     field(podSpec, many([]byte{1<<3 | 2, 0})),
		"of empty conditions":  field(podStatus, many([]byte{2<<3 | 2, 0})),
		"of empty annotations": field(podMeta, many([]byte{12<<3 | 2, 0})),
		"of empty requests":    field(podSpec, field(specContainers, field(containerNeeds, many([]byte{requests<<3 | 2, 0})))),
	} {
		t.Run(name, func(t *testing.T) {
			if took := allocated(func() { reader.Read(data) }); took > most {
				t.Errorf("%d bytes took %d", len(data), took)
			}
		})
	}
	t.Run("of empty items", func(t *testing.T) {
		if took := allocated(func() { reader.List(many([]byte{2<<3 | 2, 0})) }); took > most {
			t.Errorf("took %d", took)
		}
	})
}

func TestWhatAnAPIServerStoresCanBeRead(t *testing.T) {
	reader := wire.NewCharges(0).Reader(corev1.Resource("pods"), setOf("v1.37.2"))
	pod := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}}
	pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = slices.Repeat([]corev1.PodAffinityTerm{{TopologyKey: "a"}}, 250_000)
	for range 30_000 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "c", Image: "i", TerminationMessagePath: "/dev/log"})
	}
	data, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Read(data); err != nil {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

func TestChargesAreForgottenBeforeTheyAreTooMany(t *testing.T) {
	const most = 1 << 20
	charges := wire.NewCharges(most)
	reader := charges.Reader(corev1.Resource("pods"), setOf("v1.37.2"))
	hot := podOf("hot", "cpu", "1")
	before := heap()
	for i := range 20_000 {
		reader.Read(podOf("c", "cpu", fmt.Sprint(i)))
		if i%100 == 0 {
			reader.Read(hot)
		}
	}
	if grown := heap() - before; grown > 2*most {
		t.Errorf("charges of %d bytes at most take %d", most, grown)
	}
	if took := testing.AllocsPerRun(10, func() { reader.Read(hot) }); took > 5 {
		t.Errorf("what is often asked for was forgotten: %v allocations", took)
	}
	runtime.KeepAlive(charges)
}

func podOf(container, name, amount string) []byte {
	return slices.Concat(field(podMeta, field(metaName, []byte("p"))),
		field(podSpec, field(specContainers, field(containerName, []byte(container)), field(containerNeeds, asking(name, amount)))))
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// What is one object's own must not push out what others share.
func TestWhatIsOneObjectsOwnIsNotRemembered(t *testing.T) {
	gpu := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	for name, data := range map[string]func(i int) []byte{
		"a pod that is being deleted": func(i int) []byte {
			return encoded(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "p", DeletionTimestamp: new(metav1.Unix(int64(i), 0)), DeletionGracePeriodSeconds: new(int64(i)),
			}})
		},
		"a pod that claims depend on": func(i int) []byte {
			return encoded(t, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: gpu}}}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader := wire.NewCharges(0).Reader(corev1.Resource("pods"), setOf("v1.37.2"))
			reader.Read(data(0))
			before := heap()
			for i := range 5000 {
				reader.Read(data(i))
			}
			if grown := heap() - before; grown > 200_000 {
				t.Errorf("5000 pods left %d bytes", grown)
			}
			runtime.KeepAlive(reader)
		})
	}
}

// Members are read at the same time, and remember charges for each other.
func TestReadersOfManyMembers(t *testing.T) {
	charges := wire.NewCharges(64 << 10)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			set := setOf("v1.37.2")
			reader := charges.Reader(corev1.Resource("pods"), set)
			for i := range 300 {
				data, full := podOf("c", "cpu", fmt.Sprint(i)), &corev1.Pod{}
				if err := full.Unmarshal(data); err != nil {
					t.Error(err)
					return
				}
				got, err := reader.Read(data)
				if err != nil || !wantAsWhole(t, set, corev1.Resource("pods"), full, got) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
