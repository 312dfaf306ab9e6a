package synthetic

import (
	corev1 "k8s.io/api/core/v1"
)

// Add makes the next pod and returns its number.
func (m *Member) Add() uint32 {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	return m.create().number
}

// Finish lets a pod end.
func (m *Member) Finish(number uint32) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	p, _ := m.pods.history.objects.Get(pod{number: number})
	m.finish(p)
}

// Remove deletes a pod.
func (m *Member) Remove(number uint32) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	for at, n := range m.live {
		if n == number {
			m.remove(at)
			return
		}
	}
}

// Pod is a pod as it is sent while it runs.
func (m *Member) Pod(number uint32) *corev1.Pod { return m.sent(number, running) }

// Finished is a pod as it is sent when it has ended.
func (m *Member) Finished(number uint32) *corev1.Pod { return m.sent(number, finished) }

func (m *Member) sent(number uint32, st state) *corev1.Pod {
	p := pod{number: number, created: 1_700_000_000, state: st}
	decoded := &corev1.Pod{}
	if err := decoded.Unmarshal(m.shape.object(m.number, p, form{protobuf: true}).write(nil)); err != nil {
		panic(err)
	}
	return decoded
}

// Quota is a ResourceQuota as it is at first.
func (m *Member) Quota(namespace string) *corev1.ResourceQuota { return m.quota(namespace) }

// Service is a Service as it is at first.
func (m *Member) Service(namespace string, i int) *corev1.Service { return m.service(namespace, i) }
