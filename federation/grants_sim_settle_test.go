package federation_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// wishes are what people ask for: a FleetQuota, and what they say of members.
// They are replaced, never changed.
type wishes struct {
	spec     v1alpha1.FleetQuotaSpec
	selected []bool // by member
	fenced   []bool // by member: it can use nothing
}

func (p *wishes) clone() *wishes {
	return &wishes{spec: *p.spec.DeepCopy(), selected: slices.Clone(p.selected), fenced: slices.Clone(p.fenced)}
}

// wish draws all that is asked for anew.
func (w *grantWorld) wish() {
	n := len(w.members)
	p := &wishes{spec: v1alpha1.FleetQuotaSpec{Hard: corev1.ResourceList{}}, selected: make([]bool, n), fenced: make([]bool, n)}
	for k := range 1 + w.random.IntN(2) {
		p.spec.Hard[simNames[k]] = w.amount(k, 3, 10)
	}
	for i := range n {
		p.selected[i] = w.random.IntN(6) > 0
	}
	p.spec.Distribution = w.distribution(p.spec.Hard)
	w.wishes = p
}

// amount is from least to least + more - 1 units.
func (w *grantWorld) amount(k, least, more int) resource.Quantity {
	return simQuantity(k, (least+w.random.IntN(more))*simUnits[k])
}

// distribution draws a mode, and shares for it that do not exceed the limit.
func (w *grantWorld) distribution(hard corev1.ResourceList) *v1alpha1.Distribution {
	d := &v1alpha1.Distribution{
		Mode:          []v1alpha1.DistributionMode{"Balanced", "Balanced", "Weighted", "Weighted", "Static", "Shared"}[w.random.IntN(6)],
		AdoptExisting: w.coin(), WhenRemoved: v1alpha1.LeaveQuotas,
		CreateNamespaces: w.random.IntN(4) == 0,
	}
	if w.coin() {
		d.WhenRemoved = v1alpha1.DeleteQuotas
	}
	left := perKeyOf(hard)
	for i, m := range w.members {
		if d.Mode != v1alpha1.Static && w.coin() {
			continue
		}
		share := v1alpha1.MemberShare{Cluster: m.name}
		own := nothingThere
		for k, most := range left {
			if most > 0 {
				own[k] = simUnits[k] * w.random.IntN(most/simUnits[k]+1)
				left[k] -= own[k]
			}
		}
		switch {
		case d.Mode == v1alpha1.Static:
			share.Hard = own.list()
		case w.coin():
			share.Weight = new(int32(w.random.IntN(3)))
		case w.coin():
			share.Min = own.list()
		default:
			share.Max = own.list()
		}
		if i > 0 || w.coin() {
			d.Members = append(d.Members, share)
		}
	}
	return d
}

// change is one change of what people ask for.
func (w *grantWorld) change(a int, i int) {
	p := w.wishes.clone()
	d, k := p.spec.Distribution, w.random.IntN(simKeys)
	_, limited := p.spec.Hard[simNames[k]]
	switch {
	case a == actSelect:
		p.selected[i] = !p.selected[i]
	case a == actFence: // what is fenced is cut off, until that is taken back
		p.fenced[i] = !p.fenced[i]
		w.members[i].cut = p.fenced[i]
	case a == actLimit && limited, a == actKey && !limited:
		p.spec.Hard[simNames[k]] = w.amount(k, 0, 13)
	case a == actKey && len(p.spec.Hard) > 1:
		delete(p.spec.Hard, simNames[k])
	case a == actMode && d != nil, a == actDivide && d == nil:
		p.spec.Distribution = w.distribution(p.spec.Hard)
	case a == actDivide && w.random.IntN(3) == 0:
		p.spec.Distribution = nil
	case a == actPolicy && d != nil:
		switch w.random.IntN(4) {
		case 0:
			d.Paused = !d.Paused
		case 1:
			d.CreateNamespaces = !d.CreateNamespaces
		case 2:
			d.AdoptExisting = !d.AdoptExisting
		default:
			d.WhenRemoved = map[v1alpha1.RemovalPolicy]v1alpha1.RemovalPolicy{
				v1alpha1.LeaveQuotas: v1alpha1.DeleteQuotas, v1alpha1.DeleteQuotas: v1alpha1.LeaveQuotas,
			}[d.WhenRemoved]
		}
	default:
		return
	}
	w.wishes = p
	w.tell("people want %v divided as %+v, of %v, fenced %v", perKeyOf(p.spec.Hard), p.spec.Distribution, p.selected, p.fenced)
}

// settle ends all faults, and lets one hub work until nothing changes any more
// and each member has its share. It says after how many passes that was.
func (w *grantWorld) settle() int {
	const most = 60
	w.calm()
	h := w.hubs[0]
	w.forget(h)
	var why string
	for pass := range most {
		w.rest()
		w.refresh(h, always)
		before, letters := w.record, len(w.mail)
		for w.turn(h); h.resume != nil; w.turn(h) {
			w.check()
		}
		if w.broken != "" {
			return pass
		}
		if w.now = w.now.Add(time.Second); w.record != before || len(w.mail) > letters || pass == 0 {
			why = "the hub still writes"
			continue
		}
		if why = w.unsettled(h); why == "" {
			return pass
		}
	}
	w.fail("not settled after %d passes: %s; record %v, people want %v, %+v, of %v", most, why, w.record,
		perKeyOf(w.wishes.spec.Hard), w.wishes.spec.Distribution, w.wishes.selected)
	return most
}

// calm ends what keeps members from their shares, but for what people still ask for.
func (w *grantWorld) calm() {
	w.tell("faults stop")
	w.odds[actCut], w.odds[actLose] = 0, 0
	p := w.wishes.clone()
	if d := p.spec.Distribution; d != nil {
		d.Paused = false
		if d.Mode == v1alpha1.Static { // the limit may have been lowered since the shares were written
			for d.Members = nil; len(d.Members) == 0; {
				if drawn := w.distribution(p.spec.Hard); drawn.Mode == v1alpha1.Static {
					d.Members = drawn.Members
				}
			}
		}
	}
	w.wishes = p
	for i, m := range w.members {
		m.cut, m.dead = p.fenced[i], false
		if m.quota.scopes { // only a person can put that right
			m.remove()
			m.doubt()
		}
	}
	for _, h := range w.hubs {
		w.forget(h)
	}
}

// rest lets arrive what is on its way and every status follow, and ends what runs
// above the shares.
func (w *grantWorld) rest() {
	for tries := 0; len(w.mail) > 0 && tries < 1000; tries++ {
		w.deliver()
		w.check()
	}
	w.mail = slices.DeleteFunc(w.mail, func(l *letter) bool { return l.to != nil && l.to.cut })
	for _, m := range w.members {
		row := w.row(m)
		for k, name := range simNames {
			if row == nil {
				continue
			}
			most, told := perKeyOf(row.Target)[k], row.Target != nil
			if _, bounded := row.Granted[name]; told && bounded && most != absent {
				m.running[k] = min(m.running[k], most)
			} else {
				m.running[k] /= 2
			}
		}
		m.sync()
		w.check()
	}
}

// unsettled says what is not as people want it; empty: nothing.
func (w *grantWorld) unsettled(h *hub) string {
	d := w.wishes.spec.Distribution
	if d == nil && (w.record != nil || w.noted != "") {
		return "the record is still there"
	}
	if d != nil && (w.record == nil || w.noted != w.record.ID) {
		return "there is no record"
	}
	free := true // nothing but people keeps a member from its share
	var parts []federation.Part
	for i, m := range w.members {
		if d == nil || !w.wishes.selected[i] || w.wishes.fenced[i] {
			if why := w.left(m, i); why != "" {
				return m.name + ": " + why
			}
			continue
		}
		part := federation.Part{Member: m.name, Phase: v1alpha1.Live}
		if !m.namespace {
			part.Reason = federation.ReasonNamespaceMissing
		}
		parts = append(parts, part)
		row := w.record.Row(m.name)
		switch {
		case !m.namespace:
			if row != nil {
				return m.name + ": it has a row and no namespace"
			}
		case m.quota.uid != "" && m.quota.mark == "" && !d.AdoptExisting:
			free = false
			if row != nil {
				return m.name + ": it has a row and the quota of others"
			}
		default:
			if why := w.waits(m, row); why != "" {
				return m.name + ": " + why
			}
		}
	}
	if d == nil || !free {
		return ""
	}
	return w.unlike(h, parts)
}

// left says what is still there of a member that takes part no more.
func (w *grantWorld) left(m *member, i int) string {
	if w.record == nil {
		return ""
	}
	_, ours := numberOf(w.record.Record, m.quota.mark)
	switch {
	case w.record.Row(m.name) != nil:
		return "it takes no part, and has a row"
	case ours && m.quota.label && !w.wishes.fenced[i]:
		return "it takes no part, and has a marked quota"
	}
	return ""
}

// waits says what a member waits for.
func (w *grantWorld) waits(m *member, row *v1alpha1.Grant) string {
	q := &m.quota
	if row == nil || row.State != "" || q.mark != markOf(w.record.Record, row) || row.QuotaUID != q.uid || !q.label {
		return "its quota is not believed"
	}
	target, granted := perKeyOf(row.Target), perKeyOf(row.Granted)
	for k, limit := range perKeyOf(w.wishes.spec.Hard) {
		if limit == absent {
			if target[k] != absent || granted[k] != absent {
				return fmt.Sprintf("%s is governed no more", simNames[k])
			}
			continue
		}
		if q.hard[k] != target[k] || q.limit[k] != target[k] || granted[k] != max(target[k], q.used[k]) {
			return fmt.Sprintf("%s is not in force", simNames[k])
		}
		if !m.covered[k] && !m.doubted {
			return fmt.Sprintf("%s is not covered", simNames[k])
		}
	}
	return ""
}

// unlike says how the record is unlike the plan, and the status unlike the record.
func (w *grantWorld) unlike(h *hub, parts []federation.Part) string {
	spec := w.wishes.spec
	shared := spec.Distribution.Mode == v1alpha1.Shared
	if !federation.Equal(w.record.Spec.Hard, spec.Hard) && !shared {
		return "the limit on record is not that of the people"
	}
	var all []federation.Party
	for _, part := range parts {
		if m := w.member(part.Member); m.namespace {
			all = append(all, federation.Party{Cluster: part.Member, Used: m.quota.used.list()})
		}
	}
	plan, err := federation.Divide(spec, w.record.Record, all, h.memories, w.now)
	if err != nil {
		return err.Error()
	}
	for _, share := range plan.Shares {
		if !federation.Equal(share.Hard, w.record.Row(share.Cluster).Target) {
			return share.Cluster + ": it does not have its share"
		}
	}
	if missing := w.notGiven(); missing != "" {
		return missing
	}
	quota := &v1alpha1.FleetQuota{Spec: spec}
	e := federation.Enforcement{Grant: &v1alpha1.FleetGrant{Spec: w.record.Spec}, Trouble: h.told}
	for _, c := range federation.Report(quota, federation.Usage{Parts: parts}, e, w.now).Conditions {
		if c.Type == v1alpha1.ConditionEnforced && (c.Status == metav1.ConditionTrue) == shared {
			return fmt.Sprintf("Enforced is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// notGiven says what of the limit nobody has, where all of it can be given.
func (w *grantWorld) notGiven() string {
	d := w.wishes.spec.Distribution
	if d.Mode == v1alpha1.Static || d.Mode == v1alpha1.Shared || len(d.Members) > 0 || len(w.record.Spec.Members) == 0 {
		return ""
	}
	if granted := w.record.Granted(); !federation.Equal(granted, w.wishes.spec.Hard) {
		return fmt.Sprintf("%v are granted", perKeyOf(granted))
	}
	return ""
}
