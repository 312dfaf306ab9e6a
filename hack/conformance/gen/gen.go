// Package gen makes the Worlds that both sides are asked about: objects that are
// legal or nearly so, with every field that an evaluator reads. World i of a seed
// is always the same.
//
// It leaves out what upstream is known to answer wrongly, or not always in the
// same way; TestDifferences
// has such objects:
//
//   - claims for more devices than fit an int64: the amounts of a claim share a
//     big decimal, and what its pod has paid for is taken from all of them
//   - two device classes that name one extended resource: which of them counts
//     is chosen at random
//   - claims of a device class that does not exist, in a quota of its implicit
//     resource: whether they count depends on what else the quota names
package gen

import (
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/hack/conformance/answer"
)

// maker draws one World.
type maker struct {
	*rand.Rand

	now time.Time
	// huge lets quantities be so large that sums of them do not fit an int64.
	huge bool
	// free makes no quotas, and lets claims ask for classes that do not exist.
	free bool
	// far puts all that depends on time far away from now.
	far bool
}

// World makes World i of a seed.
func World(seed, i uint64) *answer.World {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, i))}
	m.now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(m.IntN(5)-2) * 30 * time.Second)
	m.huge, m.free = m.chance(20), m.chance(10)
	world := &answer.World{Now: m.now.Add(time.Duration(m.IntN(3) - 1)), Counts: map[string]int{}}
	m.far = m.chance(40)
	if m.far {
		m.claims(world)
	}
	for range m.IntN(4) {
		world.Pods = append(world.Pods, m.pod(len(world.Pods)))
	}
	for range m.IntN(3) {
		world.Services = append(world.Services, m.service(len(world.Services)))
	}
	for range m.IntN(3) {
		world.VolumeClaims = append(world.VolumeClaims, m.volumeClaim(len(world.VolumeClaims)))
	}
	if m.chance(20) {
		world.Counts[pick(m, answer.Counted()...).String()] = m.IntN(4)
	}
	for range m.IntN(5) {
		world.Required = append(world.Required, pick(m, requirable...))
	}
	if !m.free {
		for range m.IntN(4) {
			world.Quotas = append(world.Quotas, m.quota())
		}
	}
	return world
}

func (m *maker) chance(percent int) bool {
	return m.IntN(100) < percent
}

func pick[T any](m *maker, from ...T) T {
	return from[m.IntN(len(from))]
}

// meta is the metadata of the nth object of a kind.
func (m *maker) meta(letter string, n int) metav1.ObjectMeta {
	name := letter + strconv.Itoa(n)
	return metav1.ObjectMeta{
		Namespace: answer.Namespace, Name: name, UID: types.UID("uid-of-" + name),
		CreationTimestamp: metav1.NewTime(m.now.Add(-time.Duration(m.IntN(3)) * time.Second)),
	}
}

var (
	small = []string{
		"0", "100m", "1", "250m", "1n", "1.5", "500m", "2", "64Mi", "1Gi", "100000Gi", "50000Gi", "1e3", "0.1", "1.5Gi", "3k", "1234567m",
		"123456789123456", "-1",
	}
	large = []string{"7Ei", "1000E", "123456789123456789", "9223372036854775807", "9223372036854775807n", "12345678901234567890123"}
)

func (m *maker) quantity() resource.Quantity {
	if m.huge && m.chance(30) {
		return resource.MustParse(pick(m, large...))
	}
	return resource.MustParse(pick(m, small...))
}

var (
	usual = []corev1.ResourceName{"cpu", "memory", "ephemeral-storage"}
	other = []corev1.ResourceName{
		"hugepages-2Mi", "hugepages-1Gi", "example.com/gpu", "example.com/nic", "requests.example.com/x", "kubernetes.io/batch", "foo.kubernetes.io/bar",
		"deviceclass.resource.kubernetes.io/big", "deviceclass.resource.kubernetes.io/small", "storage", "weird", "hugepages-x/y", "requests.cpu", "pods",
		"-bad.com/x", "attachable-volumes-x", "requests.deviceclass.resource.kubernetes.io/z",
		"example.com/aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg",
	}
	requirable = []corev1.ResourceName{
		"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "pods", "ephemeral-storage", "requests.example.com/gpu",
		"limits.ephemeral-storage",
	}
)

// list draws a list of resources: none at all, an empty one, or a few.
func (m *maker) list() corev1.ResourceList {
	switch {
	case m.chance(15):
		return nil
	case m.chance(8):
		return corev1.ResourceList{}
	}
	list := corev1.ResourceList{}
	for range m.IntN(5) {
		name := pick(m, usual...)
		if m.chance(35) {
			name = pick(m, other...)
		}
		list[name] = m.quantity()
	}
	return list
}

func (m *maker) requirements() corev1.ResourceRequirements {
	both := corev1.ResourceRequirements{Requests: m.list(), Limits: m.list()}
	if m.chance(20) {
		both.Limits = both.Requests.DeepCopy()
	}
	return both
}
