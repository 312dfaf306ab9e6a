package synthetic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// pod is all that is kept of a pod.
type pod struct {
	number  uint32
	version uint32 // its resourceVersion, counted from firstRevision
	created uint32 // in seconds since 1970
	state   state
}

// state is what a pod is doing.
type state byte

const (
	running  state = 0
	finished state = 1
	leaving  state = 2 // it has been deleted, and so has no time left; running or finished
	states   state = 4
)

func (p pod) revision() uint64 { return firstRevision + uint64(p.version) }

// shape is what pods look like.
type shape struct {
	namespaces int
	stamps     [sample.Workloads][states][forms]stamp
	sets       [sample.Workloads]string // what a pod's name begins with, hyphen included
	costs      [sample.Workloads]cost
}

// place is where a pod is: one after the other over all namespaces, and in each
// over all workloads.
func (s *shape) place(number uint32) (namespace, workload int) {
	n := int(number)
	return n % s.namespaces, n / s.namespaces % sample.Workloads
}

// less is the order of keys.
func (s *shape) less(a, b pod) bool {
	na, wa := s.place(a.number)
	nb, wb := s.place(b.number)
	switch {
	case na != nb:
		return na < nb
	case wa != wb:
		return wa < wb
	}
	return a.number < b.number
}

// namespaceName has always eight letters.
func namespaceName(i int) string { return fmt.Sprintf("team-%03d", i) }

const maxNamespaces = 1000

// suffixLength and suffixLetters are those of names that Kubernetes makes up.
// The letters are in order, so that names are in the order of numbers.
const (
	suffixLength  = 5
	suffixLetters = "2456789bcdfghjklmnpqrstvwxz"
	maxNumber     = 14_348_907 // 27^5
)

func appendSuffix(dst []byte, number uint32) []byte {
	var text [suffixLength]byte
	for i := range text {
		text[suffixLength-1-i] = suffixLetters[number%uint32(len(suffixLetters))]
		number /= uint32(len(suffixLetters))
	}
	return append(dst, text[:]...)
}

func (s *shape) key(p pod) (namespace, name string) {
	ns, workload := s.place(p.number)
	return namespaceName(ns), string(appendSuffix([]byte(s.sets[workload]), p.number))
}

// numberOf reads the number from a pod's name.
func (s *shape) numberOf(namespace, name string) (uint32, bool) {
	if len(name) < suffixLength {
		return 0, false
	}
	number := uint32(0)
	for _, letter := range []byte(name[len(name)-suffixLength:]) {
		digit := strings.IndexByte(suffixLetters, letter)
		if digit < 0 {
			return 0, false
		}
		number = number*uint32(len(suffixLetters)) + uint32(digit)
	}
	ns, full := s.key(pod{number: number})
	return number, ns == namespace && full == name
}

// slot is a part of a pod's bytes that no other pod has. All have one length
// each, so that they are written over those of a template.
type slot int

const (
	slotName slot = iota
	slotNamespace
	slotUID
	slotVersion
	slotNode
	slotIP
	slotContainer
	slotTime
	slots
)

// marks stand in a template where the slots are.
func marks() [slots]string {
	return [slots]string{
		"@name", "@nspace@", "@uid@uid@uid@uid@uid@uid@uid@uid@uid", "@revision@", "@node-@@", "@pod-ip@@@@@@@", "@pod-id@",
	}
}

// markedTime stands for the time at which a pod was created; later ones take as
// many bytes.
const markedTime = 1_234_567_890

// stamp is a template in one form with the places of its slots.
type stamp struct {
	data   []byte
	places []place
}

type place struct {
	at   int
	slot slot
}

func newShape(namespaces int) (*shape, error) {
	s := &shape{namespaces: namespaces}
	for workload := range sample.Workloads {
		for st := range states {
			p := template(workload, st)
			s.sets[workload] = p.GenerateName
			s.costs[workload] = costOf(p)
			for _, f := range []form{{}, {protobuf: true}, {metadata: true}, {protobuf: true, metadata: true}} {
				made, err := newStamp(p, f)
				if err != nil {
					return nil, fmt.Errorf("make a template of pods: %w", err)
				}
				s.stamps[workload][st][f.number()] = made
			}
		}
	}
	return s, nil
}

// template is a pod with marks in place of what differs.
func template(workload int, st state) *corev1.Pod {
	p := sample.Pod(workload)
	mark := marks()
	created := metav1.Unix(markedTime, 0)
	p.Name, p.Namespace = p.GenerateName+mark[slotName], mark[slotNamespace]
	p.UID, p.ResourceVersion = types.UID(mark[slotUID]), mark[slotVersion]
	p.Spec.NodeName = mark[slotNode]
	p.CreationTimestamp, p.Status.StartTime = created, &created
	p.Status.PodIP, p.Status.PodIPs = mark[slotIP], []corev1.PodIP{{IP: mark[slotIP]}}
	for i := range p.ManagedFields {
		p.ManagedFields[i].Time = &created
	}
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime = created
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		prefix := len("containerd://")
		c.ContainerID = c.ContainerID[:prefix] + mark[slotContainer] + c.ContainerID[prefix+len(mark[slotContainer]):]
		c.State.Running.StartedAt = created
	}
	if st&finished != 0 {
		finish(p)
	}
	if st&leaving != 0 {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &created, new(int64)
	}
	return p
}

// finish makes a pod what a kubelet makes of it when all its containers have
// ended well.
func finish(p *corev1.Pod) {
	p.Status.Phase = corev1.PodSucceeded
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason = corev1.ConditionFalse, "PodCompleted"
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		c.Ready, c.Started = false, new(bool)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: p.CreationTimestamp, FinishedAt: p.CreationTimestamp, ContainerID: c.ContainerID,
		}}
	}
}

func newStamp(p *corev1.Pod, f form) (stamp, error) {
	o, err := f.encode(podKind(), p)
	if err != nil {
		return stamp{}, err
	}
	s := stamp{data: o.write(nil)}
	mark := marks()
	when := time.Unix(markedTime, 0).UTC().Format(time.RFC3339)
	if f.protobuf {
		when = string(binary.AppendUvarint(nil, markedTime))
	}
	mark[slotTime] = when
	for i, text := range mark {
		for from := 0; ; {
			found := bytes.Index(s.data[from:], []byte(text))
			if found < 0 {
				break
			}
			s.places = append(s.places, place{at: from + found, slot: slot(i)})
			from += found + len(text)
		}
	}
	if !slices.ContainsFunc(s.places, func(p place) bool { return p.slot == slotTime }) {
		return stamp{}, errors.New("it has no time")
	}
	return s, nil
}

// object is a pod's bytes in a form.
func (s *shape) object(member uint32, p pod, f form) object {
	namespace, workload := s.place(p.number)
	st := &s.stamps[workload][p.state][f.number()]
	return object{kind: f.kindOf(podKind()), size: len(st.data), write: func(dst []byte) []byte {
		var scratch [128]byte
		values := podFields(scratch[:0], member, p, namespace)
		if f.protobuf {
			values[slotTime] = binary.AppendUvarint(scratch[len(scratch)-20:len(scratch)-20], uint64(p.created))
		} else {
			values[slotTime] = time.Unix(int64(p.created), 0).UTC().AppendFormat(scratch[len(scratch)-20:len(scratch)-20], time.RFC3339)
		}
		at := len(dst)
		dst = append(dst, st.data...)
		for _, p := range st.places {
			copy(dst[at+p.at:], values[p.slot])
		}
		return dst
	}}
}

// podFields writes all slots but the time into a scratch of 108 bytes.
func podFields(scratch []byte, member uint32, p pod, namespace int) (values [slots][]byte) {
	b, from := scratch, 0
	end := func(f slot) {
		values[f] = b[from:len(b):len(b)]
		from = len(b)
	}
	b = appendSuffix(b, p.number)
	end(slotName)
	b = appendPadded(append(b, "team-"...), uint64(namespace), 10, 3)
	end(slotNamespace)
	b = appendPadded(b, uint64(member), 16, 8)
	b = append(b, "-7a59-4b0c-9f43-"...)
	b = appendPadded(b, uint64(p.number), 16, 12)
	end(slotUID)
	b = appendPadded(b, p.revision(), 10, 10)
	end(slotVersion)
	b = appendPadded(append(b, "node-"...), uint64(p.number%200), 10, 3)
	end(slotNode)
	b = append(b, "10.1"...)
	b = appendPadded(b, uint64(p.number/10_000%100), 10, 2)
	b = appendPadded(append(b, ".1"...), uint64(p.number/100%100), 10, 2)
	b = appendPadded(append(b, ".1"...), uint64(p.number%100), 10, 2)
	end(slotIP)
	b = appendPadded(b, uint64(p.number), 16, 8)
	end(slotContainer)
	return values
}

// appendPadded appends a number with so many digits, the last ones if it has
// more.
func appendPadded(dst []byte, n uint64, base, digits int) []byte {
	var buffer [20]byte
	text := strconv.AppendUint(buffer[:0], n, base)
	for range digits - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text[max(0, len(text)-digits):]...)
}

func podKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }
