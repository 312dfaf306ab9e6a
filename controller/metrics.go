package controller

import (
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// metrics are the hub's own. What the ledger knows is read from the last
// reports when it is scraped; nothing is kept beside them.
type metrics struct {
	up     *prometheus.GaugeVec
	writes *prometheus.CounterVec
	probes *prometheus.HistogramVec

	violations prometheus.Counter

	quota, stale, drift *prometheus.Desc
	drifting            func() iter.Seq2[string, drifted] // member -> what differs there

	mu      sync.Mutex                                         // guards reports
	reports map[types.NamespacedName]v1alpha1.FleetQuotaStatus // quota -> what was last reported
}

func newMetrics(drifting func() iter.Seq2[string, drifted]) *metrics {
	return &metrics{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetquota_member_up", Help: "1 while the member answers, 0 while it does not.",
		}, []string{"member_cluster"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetquota_member_writes_total", Help: "Writes to a member, by what was written and how that ended.",
		}, []string{"member_cluster", "operation", "result"}),
		probes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetquota_member_probe_duration_seconds",
			Help:    "How long a member took to answer a probe.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"member_cluster", "result"}),
		violations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fleetquota_grant_violations_total",
			Help: "Records of grants that were not written because they would have granted more than the limit: always 0, or there is a bug.",
		}),
		quota: prometheus.NewDesc("fleetquota_quota", "A global quota's limit, its use over all members, and what these are granted, by resource; in cores, bytes or objects.",
			[]string{"namespace", "quota", "resource", "type"}, nil),
		stale: prometheus.NewDesc("fleetquota_quota_stale_members", "How many of a global quota's members have numbers that are not live.",
			[]string{"namespace", "quota"}, nil),
		drift: prometheus.NewDesc("fleetquota_local_drift", "What a local quota's status says is used, less what is counted, where another controller keeps it and it differs.",
			[]string{"member_cluster", "namespace", "quota", "resource"}, nil),
		drifting: drifting,
		reports:  map[types.NamespacedName]v1alpha1.FleetQuotaStatus{},
	}
}

// Describe is for prometheus.
func (m *metrics) Describe(descs chan<- *prometheus.Desc) {
	m.up.Describe(descs)
	m.writes.Describe(descs)
	m.probes.Describe(descs)
	m.violations.Describe(descs)
	descs <- m.quota
	descs <- m.stale
	descs <- m.drift
}

// Collect is for prometheus.
func (m *metrics) Collect(samples chan<- prometheus.Metric) {
	m.up.Collect(samples)
	m.writes.Collect(samples)
	m.probes.Collect(samples)
	m.violations.Collect(samples)
	for member, d := range m.drifting() {
		samples <- prometheus.MustNewConstMetric(m.drift, prometheus.GaugeValue, d.by.AsApproximateFloat64(), member, d.quota.Namespace, d.quota.Name, string(d.resource))
	}
	m.mu.Lock()
	reports := maps.Clone(m.reports)
	m.mu.Unlock()
	for key, status := range reports {
		for kind, list := range map[string]corev1.ResourceList{"hard": status.Hard, "used": status.Used, "granted": status.Granted} {
			for name, quantity := range list {
				samples <- prometheus.MustNewConstMetric(m.quota, prometheus.GaugeValue, quantity.AsApproximateFloat64(), key.Namespace, key.Name, string(name), kind)
			}
		}
		if s := status.Summary; s != nil {
			samples <- prometheus.MustNewConstMetric(m.stale, prometheus.GaugeValue, float64(s.Members-s.Live), key.Namespace, key.Name)
		}
	}
}

// reported notes what a quota's status is or is about to be.
func (m *metrics) reported(key types.NamespacedName, status v1alpha1.FleetQuotaStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reports[key] = status
}

func (m *metrics) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reports, key)
}

// observed notes whether a member answers.
func (m *metrics) observed(state clusters.State) {
	up := 0.0
	if state.Reach == clusters.Live {
		up = 1
	}
	m.up.WithLabelValues(state.Member.Name).Set(up)
}

// probed notes the result of a probe.
func (m *metrics) probed(member string, result clusters.ProbeResult, took time.Duration) {
	m.probes.WithLabelValues(member, string(result)).Observe(took.Seconds())
}

// gone drops the series of a member.
func (m *metrics) gone(member string) {
	of := prometheus.Labels{"member_cluster": member}
	m.up.DeletePartialMatch(of)
	m.writes.DeletePartialMatch(of)
	m.probes.DeletePartialMatch(of)
}

// wrote counts a write to a member.
func (m *metrics) wrote(member, operation string, err error) {
	result := "error"
	switch {
	case err == nil:
		result = "success"
	case apierrors.IsConflict(err):
		result = "conflict"
	case apierrors.IsForbidden(err):
		result = "forbidden"
	}
	m.writes.WithLabelValues(member, operation, result).Inc()
}
