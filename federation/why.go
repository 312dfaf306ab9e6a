package federation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Explanation says in plain words how one limit of a FleetQuota stands.
type Explanation struct {
	Resource corev1.ResourceName
	Hard     resource.Quantity
	Record   *resource.Quantity // the limit on record, while it is above Hard
	Granted  *resource.Quantity // what all may use together; nil: nothing is divided
	Free     *resource.Quantity // what nobody was granted
	Used     *resource.Quantity // nil: not known
	Holdings []Holding          // by member
	Stands   []string           // whether the limit is enforced, and what blocks a change, the most important first
}

// Holding is one member's part of an [Explanation].
type Holding struct {
	Member  string
	Phase   v1alpha1.Phase
	Used    *resource.Quantity // nil: not known
	Limit   *resource.Quantity // of its local quota, as last sent; nil: not bounded by us
	Granted *resource.Quantity // what counts against the global limit; nil: nothing
	Planned *resource.Quantity // what it shall have, while that is not so yet
	Why     string

	row     *v1alpha1.Grant
	reason  string
	unknown bool // the member does not count it
}

// Explain explains the limit of one resource, by any of its names. The grant is
// nil when there is none. The error says what may be asked instead.
func Explain(quota *v1alpha1.FleetQuota, grant *v1alpha1.FleetGrant, name corev1.ResourceName) (Explanation, error) {
	limit := Governed(quota.Spec.Hard)
	name, found := called(limit, name)
	if !found {
		return Explanation{}, fmt.Errorf("%s/%s does not limit %s: spec.hard has %s", quota.Namespace, quota.Name, name, listed(slices.Sorted(maps.Keys(limit))))
	}
	e := Explanation{Resource: name, Hard: limit[name], Used: pick(quota.Status.Used, name)}
	var record Record
	if grant != nil {
		record.Spec = grant.Spec
		e.count(record)
	}
	for i := range quota.Status.Clusters {
		e.Holdings = append(e.Holdings, holdingOf(&quota.Status.Clusters[i], record, name))
	}
	for i := range record.Spec.Members {
		row := &record.Spec.Members[i]
		if !slices.ContainsFunc(e.Holdings, func(h Holding) bool { return h.Member == row.Cluster }) {
			e.Holdings = append(e.Holdings, holdingOf(&v1alpha1.ClusterUsage{Name: row.Cluster}, record, name))
		}
	}
	slices.SortFunc(e.Holdings, func(a, b Holding) int { return strings.Compare(a.Member, b.Member) })
	for i := range e.Holdings {
		e.Holdings[i].Why = e.why(&e.Holdings[i], quota.Spec.Distribution)
	}
	e.stand(quota)
	return e, nil
}

func pick(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if q, ok := find(list, name); ok {
		return &q
	}
	return nil
}

// count adds up what the record has granted.
func (e *Explanation) count(record Record) {
	granted := record.Granted()[e.Resource]
	granted.Format = e.Hard.Format
	e.Granted = &granted
	free := e.Hard.DeepCopy()
	free.Sub(granted)
	if free.Sign() < 0 {
		free = resource.Quantity{Format: e.Hard.Format}
	}
	e.Free = &free
	if limit := record.Spec.Hard[e.Resource]; compare(limit, e.Hard) > 0 {
		e.Record = &limit
	}
}

func holdingOf(usage *v1alpha1.ClusterUsage, record Record, name corev1.ResourceName) Holding {
	h := Holding{
		Member: usage.Name, Phase: usage.Phase, Used: pick(usage.Used, name), Planned: pick(usage.Planned, name),
		row: record.Row(usage.Name), reason: usage.Reason, unknown: slices.Contains(usage.Unknown, name),
	}
	if h.row != nil {
		h.Limit, h.Granted = pick(h.row.Target, name), pick(h.row.Granted, name)
	}
	return h
}

// why says why a member has what it has.
func (e *Explanation) why(h *Holding, d *v1alpha1.Distribution) string {
	text := h.troubled()
	switch {
	case h.row == nil && d == nil:
		return "not limited by this quota"
	case text != "":
		return text
	case h.row == nil && d.Paused:
		return "distribution is paused"
	case h.row == nil && !h.answers():
		return "not limited yet: it does not answer"
	case h.row == nil:
		return "not limited yet"
	}
	if text := unusual(h.row.State); text != "" {
		return text + h.silence()
	}
	return e.held(h)
}

// troubled is what keeps a member from its share, where somebody may have to act.
func (h *Holding) troubled() string {
	switch Trouble(h.reason) {
	case TroubleNoNamespace:
		return "holds nothing: the namespace does not exist there"
	case TroubleFenced:
		return "holds nothing: its FleetMember says that it is fenced; take the annotation away when it is back"
	case TroubleForeign:
		return "not limited: a quota of this name exists there that others made; spec.distribution.adoptExisting takes it over"
	case TroubleScopes:
		return "not limited: the quota of this name there counts other objects; rename or delete it"
	case TroubleForbidden:
		return "the member does not let the hub write its quotas: join it again with --role distribute"
	case TroubleEnding:
		return "the namespace is being deleted there: nothing can be made in it until it is gone"
	case TroubleCluster:
		return "another cluster bears this name now: the one that holds the share keeps it until the FleetMember is fenced"
	case TroubleDoesNotFit, TroubleTampered: // the row says it
	}
	return ""
}

func unusual(state v1alpha1.GrantState) string {
	switch state {
	case v1alpha1.Recovering:
		return "the record was lost: it may hold anything until it confirms a new write"
	case v1alpha1.Repairing:
		return "others have deleted, edited or replaced its local quota: nothing is raised anywhere until it confirms a new write"
	case v1alpha1.Releasing:
		return "leaves the distribution: the marks on its local quota are being removed"
	}
	return ""
}

// held is why, of a member with a row that is as usual.
func (e *Explanation) held(h *Holding) string {
	switch {
	case h.Granted == nil && h.unknown:
		return "the member does not count this resource, so its limit is not in force there"
	case h.Granted == nil || h.Limit == nil:
		return "its local quota is not confirmed yet" + h.silence()
	case compare(*h.Limit, *h.Granted) < 0:
		return e.giving(h)
	case h.reason == reasonPaused:
		return "is paused at the hub: keeps what it holds"
	case h.Planned != nil && compare(*h.Planned, *h.Limit) > 0:
		return fmt.Sprintf("is to get %s%s", h.Planned, e.waits(h))
	case h.Planned != nil && compare(*h.Planned, *h.Limit) < 0:
		return fmt.Sprintf("is to go down to %s%s", h.Planned, h.silence())
	}
	return h.keeps()
}

// keeps is why, of a member that shall have what it has.
func (h *Holding) keeps() string {
	switch {
	case !h.answers():
		return "does not answer: keeps what it holds until it does"
	case h.Limit.IsZero():
		return "its share is 0"
	case h.Used != nil && compare(*h.Used, *h.Limit) >= 0:
		return "has its share, and uses all of it"
	}
	return "has its share"
}

// giving is why a member still counts with more than its local limit.
func (e *Explanation) giving(h *Holding) string {
	text := fmt.Sprintf("was lowered to %s and still counts with %s", h.Limit, h.Granted)
	switch {
	case !h.answers():
		return text + h.silence()
	case h.Used != nil && compare(*h.Used, *h.Limit) > 0:
		return text + ": it uses more than its limit until objects there end"
	}
	return text + ": its API server has not confirmed the limit yet"
}

// waits says for whom a member waits that is to get more.
func (e *Explanation) waits(h *Holding) string {
	if !h.answers() {
		return h.silence()
	}
	var blocking, giving []string
	for i := range e.Holdings {
		other := &e.Holdings[i]
		switch {
		case other.row == nil || other == h:
		case other.row.State == v1alpha1.Recovering || other.row.State == v1alpha1.Repairing:
			blocking = append(blocking, other.Member)
		case other.gives():
			giving = append(giving, other.Member)
		}
	}
	switch {
	case len(blocking) > 0:
		return ": waits until it is known again what " + listed(blocking) + " may use"
	case len(giving) > 0:
		return ": waits for " + listed(giving) + " to give back"
	case e.Free != nil && e.Free.Sign() > 0:
		return ": under way"
	}
	return ": waits until use falls elsewhere"
}

// gives says that a member holds more than it shall have.
func (h *Holding) gives() bool {
	return h.Granted != nil && (h.Limit != nil && compare(*h.Limit, *h.Granted) < 0 || h.Planned != nil && compare(*h.Planned, *h.Granted) < 0)
}

func (h *Holding) answers() bool {
	switch h.Phase {
	case v1alpha1.Stale, v1alpha1.Unreachable, v1alpha1.NeverSynced, v1alpha1.Leaving:
		return false
	case v1alpha1.Live, v1alpha1.Partial:
	}
	return true // or its row is not in the status
}

// reasonPaused is the reason of a member whose Secret says that nothing is to be
// sent there.
const reasonPaused = "Paused"

// silence ends what is said of a member that does not answer.
func (h *Holding) silence() string {
	if h.answers() {
		return ""
	}
	return "; it does not answer"
}

// stand says how the limit stands as a whole.
func (e *Explanation) stand(quota *v1alpha1.FleetQuota) {
	if quota.Status.ObservedGeneration < quota.Generation {
		e.Stands = append(e.Stands, "The hub has not taken up the latest spec yet.")
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionEnforced} {
		c := meta.FindStatusCondition(quota.Status.Conditions, kind)
		switch {
		case c == nil:
			e.Stands = append(e.Stands, kind+" is unknown: the hub has not reported on this quota yet.")
		case kind == v1alpha1.ConditionEnforced || c.Status != "True":
			e.Stands = append(e.Stands, fmt.Sprintf("%s is %s (%s): %s.", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if silent := e.silent(); len(silent) > 0 {
		e.Stands = append(e.Stands, fmt.Sprintf(
			"%s cannot be told to give back. If nothing can be used there any more, say so: kubectl annotate fleetmember NAME %s=true",
			listed(silent), v1alpha1.AnnotationFenced))
	}
}

// silent are the members that hold something and do not answer.
func (e *Explanation) silent() []string {
	var names []string
	for i := range e.Holdings {
		if h := &e.Holdings[i]; h.row != nil && !h.answers() && h.reason != reasonPaused {
			names = append(names, h.Member)
		}
	}
	return names
}
