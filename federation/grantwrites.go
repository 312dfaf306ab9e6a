package federation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// mend looks at the quota of a member that takes part. Where the record knows
// nothing of it, or others have changed it, it writes to it, never more than is
// there, so that all that is under way is refused; what then shows that write is
// believed.
func (p *pass) mend(cluster string) {
	seen, read := p.o.Seen[cluster]
	if !read {
		return
	}
	row := p.Row(cluster)
	switch {
	case seen.NoNamespace:
		p.trouble[cluster] = TroubleNoNamespace
	case seen.Ending:
		p.trouble[cluster] = TroubleEnding
	case !seen.Present:
		p.create(p.enter(cluster, row))
	case seen.OtherScopes:
		p.trouble[cluster] = TroubleScopes
	case p.foreign(row, seen):
		p.drop(cluster)
		p.trouble[cluster] = TroubleForeign
	case row == nil, row.State == v1alpha1.Releasing, !p.plain(row, seen):
		p.fence(p.enter(cluster, row), seen)
	case p.loose(row, seen):
		p.fence(row, seen)
	}
}

// foreign says that a quota was made by others, and is theirs: it bears no mark,
// and nothing was ever believed of it.
func (p *pass) foreign(row *v1alpha1.Grant, seen Seen) bool {
	return seen.Mark == "" && !p.o.Adopt && (row == nil || len(row.Granted) == 0)
}

// plain says that the quota is the one that the row speaks of, and as we have
// left it.
func (p *pass) plain(row *v1alpha1.Grant, seen Seen) bool {
	revision, ours := p.revision(seen.Mark)
	if !ours || revision > row.Revision || row.QuotaUID != seen.UID || seen.Hidden {
		return false
	}
	return revision < row.Revision || !p.edited(row, seen)
}

// edited says that spec.hard is not as the row's last write has left it, of what
// is bounded there.
func (p *pass) edited(row *v1alpha1.Grant, seen Seen) bool {
	for key := range row.Granted {
		hard, there := seen.Hard[key]
		if !there || compare(hard, row.Target[key]) != 0 {
			return true
		}
	}
	return false
}

// loose says that a resource of a plain quota is not bounded, and that only
// another fence will bound it: the last was lost, lacks the resource, or leaves
// more than fits.
func (p *pass) loose(row *v1alpha1.Grant, seen Seen) bool {
	if !p.Current(row, seen) {
		return row.State != "" || Unbounded(*row, p.o.Limit)
	}
	for key := range p.o.Limit {
		if _, bounded := row.Granted[key]; bounded {
			continue
		}
		hard, there := seen.Hard[key]
		if !there || row.State != v1alpha1.Recovering && !p.o.Shared && compare(hard, p.room(key, row)) > 0 {
			return true
		}
	}
	return false
}

// enter gives a member a row, or marks the one that it has as not to be believed.
func (p *pass) enter(cluster string, row *v1alpha1.Grant) *v1alpha1.Grant {
	if row == nil {
		p.Spec.Members = append(p.Spec.Members, v1alpha1.Grant{Cluster: cluster, ClusterUID: p.o.Seen[cluster].Cluster})
		slices.SortFunc(p.Spec.Members, func(a, b v1alpha1.Grant) int { return strings.Compare(a.Cluster, b.Cluster) })
		return p.Row(cluster)
	}
	row.ClusterUID = cmp.Or(row.ClusterUID, p.o.Seen[cluster].Cluster)
	switch {
	case row.State == v1alpha1.Recovering:
		row.Granted = nil
		clear(p.sums)
	case len(row.Granted) > 0:
		row.State = v1alpha1.Repairing
	case row.State == v1alpha1.Releasing:
		row.State = ""
	}
	return row
}

func (p *pass) drop(cluster string) {
	clear(p.sums)
	p.Spec.Members = slices.DeleteFunc(p.Spec.Members, func(row v1alpha1.Grant) bool { return row.Cluster == cluster })
}

// create makes the quota, with nothing to use.
func (p *pass) create(row *v1alpha1.Grant) {
	row.QuotaUID, row.Target = "", corev1.ResourceList{}
	for key := range p.o.Limit {
		row.Target[key] = resource.Quantity{Format: resource.DecimalSI}
	}
	p.write(row, Seen{}, WriteCreate)
}

// fence writes to a quota and raises nothing in it.
func (p *pass) fence(row *v1alpha1.Grant, seen Seen) {
	row.QuotaUID = seen.UID
	for key := range p.o.Limit {
		most, bounded := row.Granted[key]
		switch {
		case bounded:
		case p.o.Shared:
			most = seen.Hard[key]
		default:
			most = p.room(key, row)
		}
		assign(&row.Target, key, smaller(seen.Hard[key], most))
	}
	p.write(row, seen, WritePatch)
}

// release takes the marks off the quotas of members that take part no more, and
// forgets a member once its quota has none. One that was forgotten is released
// again if a write that was late has made its quota.
func (p *pass) release() {
	kind := WriteRelease
	if p.o.Delete {
		kind = WriteDelete
	}
	for _, cluster := range p.o.Release {
		row, seen := p.Row(cluster), p.o.Seen[cluster]
		_, read := p.o.Seen[cluster]
		_, ours := p.revision(seen.Mark)
		switch {
		case !read, row == nil && !ours:
		case seen.Mark == "":
			p.drop(cluster)
		default:
			row = p.enter(cluster, row)
			row.State, row.QuotaUID = v1alpha1.Releasing, seen.UID
			p.write(row, seen, kind)
		}
	}
}

// lower makes targets follow what members shall have, where that is less. What
// they give back is free once it is confirmed.
func (p *pass) lower(row *v1alpha1.Grant, key corev1.ResourceName, want resource.Quantity) {
	if compare(want, row.Target[key]) < 0 {
		assign(&row.Target, key, want)
	}
}

// raise makes targets follow where that is more, as far as there is room.
func (p *pass) raise(row *v1alpha1.Grant, key corev1.ResourceName, want resource.Quantity) {
	target := want
	if !p.o.Shared {
		target = smaller(want, larger(row.Granted[key], p.room(key, row)))
	}
	if compare(target, row.Target[key]) <= 0 {
		return
	}
	assign(&row.Target, key, target)
	p.grant(row, key, larger(row.Granted[key], target))
}

// retarget gives each member its share, those that shrink first, and sends what
// has changed or was lost.
func (p *pass) retarget() {
	before := map[string]corev1.ResourceList{}
	for _, share := range p.o.Want {
		if row := p.Row(share.Cluster); row != nil && p.steady(row) {
			before[share.Cluster] = maps.Clone(row.Target)
		}
	}
	p.move(before, slices.Collect(maps.Keys(p.o.Limit)), p.lower)
	p.move(before, slices.DeleteFunc(slices.Collect(maps.Keys(p.o.Limit)), p.stopped), p.raise)
	for _, share := range p.o.Want {
		target, ok := before[share.Cluster]
		if !ok {
			continue
		}
		row, seen := p.Row(share.Cluster), p.o.Seen[share.Cluster]
		if !Equal(target, row.Target) || !p.Current(row, seen) || len(p.extra(row, seen)) > 0 {
			p.write(row, seen, WritePatch)
		}
	}
}

// move moves the targets of members towards their shares of some resources.
func (p *pass) move(
	members map[string]corev1.ResourceList, keys []corev1.ResourceName, move func(*v1alpha1.Grant, corev1.ResourceName, resource.Quantity),
) {
	for _, share := range p.o.Want {
		if _, ok := members[share.Cluster]; !ok {
			continue
		}
		row := p.Row(share.Cluster)
		for _, key := range keys {
			want, shared := share.Hard[key]
			if _, bounded := row.Granted[key]; bounded && shared {
				move(row, key, want)
			}
		}
	}
}

// steady says that a row may get another target: its quota was read and is as we
// have left it.
func (p *pass) steady(row *v1alpha1.Grant) bool {
	seen, read := p.o.Seen[row.Cluster]
	return read && seen.Present && !seen.OtherScopes && row.State == "" && p.writes[row.Cluster] == nil && p.plain(row, seen)
}

// extra is what spec.hard still has of what is governed no more.
func (p *pass) extra(row *v1alpha1.Grant, seen Seen) []corev1.ResourceName {
	var names []corev1.ResourceName
	for key, target := range row.Target {
		if _, there := seen.Hard[key]; there && p.ungoverned(key, target) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// write gives the row a revision that was never used, and sends its target with it.
func (p *pass) write(row *v1alpha1.Grant, seen Seen, kind WriteKind) {
	borne, _ := p.revision(seen.Mark)
	p.Spec.Revision = max(p.Spec.Revision, borne) + 1
	row.Revision = p.Spec.Revision
	w := &Write{Cluster: row.Cluster, Kind: kind, UID: seen.UID, Test: seen.Mark}
	if kind == WritePatch || kind == WriteCreate {
		w.Mark, w.Remove = p.mark(row.Revision), p.extra(row, seen)
		w.Set = row.Target.DeepCopy()
		maps.DeleteFunc(w.Set, p.ungoverned)
	}
	p.writes[row.Cluster] = w
}

// sorted is what is to be sent, by member.
func (p *pass) sorted() []Write {
	var all []Write
	for _, cluster := range slices.Sorted(maps.Keys(p.writes)) {
		all = append(all, *p.writes[cluster])
	}
	return all
}
